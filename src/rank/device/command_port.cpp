#include "rank/device/command_port.hpp"

#include <algorithm>
#include <thread>

namespace troupe::rank {

thread_local int CommandPort::Passage::depth_ = 0;

Future<void> CommandPort::submit(const detail::CommandView& command) {
  return submit(command, Patience::wait, false);
}
Future<void> CommandPort::try_submit(const detail::CommandView& command) {
  return submit(command, Patience::give_up, false);
}

Future<void> CommandPort::refuse(const detail::CommandView& command, Error error) {
  if (!command.quiet) note_error(error);
  return Future<void>(Result<void>(std::move(error)));
}

Future<void> CommandPort::submit(const detail::CommandView& command, Patience patience,
                                 bool delivers) {
  for (auto pause = std::chrono::microseconds(1);;
       pause = std::min(pause * 2, std::chrono::microseconds(1000))) {
    Hindrance found;
    {
      const std::lock_guard lock(submit_mutex_);
      if (auto admitted = admit(command); !admitted) return refuse(command, admitted.error());
      if (!delivers) found = hindrance(command);
      Future<void> future;
      if (found.way == Way::clear && push(command, future) == Push::done) return future;
    }
    if (found.way == Way::lent) {
      rescue_(found.range);
      continue;
    }
    if (patience == Patience::give_up) {
      return Future<void>(Error{Errc::would_block, 0,
                                found.way == Way::clear ? "the command ring is full"
                                                        : "a transfer into a buffer is under way"});
    }
    poll();  // makes room in the ticket table; the device host makes it in the ring
    std::this_thread::sleep_for(pause);
  }
}

Result<void> CommandPort::admit(const detail::CommandView& command) const {
  if (ended_) return *ended_;
  if (gate_ && !Passage::open()) return *gate_;
  if (command.epoch != 0 && command.epoch != epoch_.load(std::memory_order_acquire)) {
    return Error{Errc::world_reformed, 0, "a collective of epoch " + std::to_string(command.epoch)};
  }
  const auto known = [this](const Operand& operand) {
    return in_no_table(operand) || buffers_.current(operand);
  };
  for (std::size_t i = 0; i < command.use_count; ++i) {
    if (!known(*command.uses[i].operand))
      return Error{Errc::stale, 0, "a buffer's contents are gone"};
  }
  for (const auto& part : command.tail) {
    if (!known(part.data)) return Error{Errc::stale, 0, "a buffer's contents are gone"};
  }
  const auto bytes = wire::record_bytes(command);
  if (command.tail.size() > wire::kMaxTail || bytes > producer_.max_record()) {
    return Error{Errc::invalid, 0,
                 "a command of " + std::to_string(bytes) + " bytes does not fit the ring"};
  }
  return {};
}

CommandPort::Push CommandPort::push(const detail::CommandView& command, Future<void>& future) {
  const auto ticket = tickets_.next();
  if (ticket == 0) return Push::full;
  const auto bytes = wire::record_bytes(command);
  auto room = producer_.reserve(bytes);
  if (room.ok() && room->empty()) {
    keep_unanswered();
    room = producer_.reserve(bytes);
  }
  if (!room.ok()) {
    corrupt_.store(true, std::memory_order_release);
    return Push::full;  // until the host is replaced
  }
  if (room->empty()) return Push::full;
  wire::encode(command, ticket, *room);

  auto& slot = tickets_.slot(ticket);
  slot.position = producer_.position();
  slot.died_in_flight = false;
  slot.quiet = command.quiet;
  const auto note = [&](const Operand& operand, Access access) {
    if (in_no_table(operand)) return;
    auto& entry = buffers_.at(operand.buffer);
    entry.last_ticket = ticket;
    if (access == Access::read) return;
    entry.written = entry.written || entry.known;
    tickets_.add_written(slot, operand.buffer);
  };
  for (std::size_t i = 0; i < command.use_count; ++i)
    note(*command.uses[i].operand, command.uses[i].access);
  for (const auto& part : command.tail)
    note(part.data, part.receive != 0 ? Access::write : Access::read);
  auto* const state = new detail::State<void>(this, detail::StateBase::TwoReferences{});
  future = Future<void>(detail::StatePtr<detail::State<void>>(state));
  tickets_.open(slot, detail::StatePtr<detail::State<void>>(state));
  if (options_.flight != nullptr) {
    // An exchange is the business of some ranks only: it has no place in the world's count.
    const bool of_world = command.epoch != 0 && command.opcode != opcode_of<collective::Exchange>;
    options_.flight->submitted(ticket, command, of_world ? ++collectives_ : 0);
  }
  if (producer_.commit()) link_->command_bell().ring();
  return Push::done;
}

void CommandPort::poll() noexcept {
  Resolved resolved;
  const std::unique_lock lock(reply_mutex_, std::try_to_lock);
  if (!lock.owns_lock()) return;
  last_poll_ns_.store(SteadyClock::time().count(), std::memory_order_relaxed);
  drain_locked(resolved);
}

void CommandPort::drain() {
  Resolved resolved;
  const std::lock_guard lock(reply_mutex_);
  drain_locked(resolved);
}

void CommandPort::before_sleep() noexcept {
  const std::lock_guard lock(reply_mutex_);
  last_poll_ns_.store(0, std::memory_order_relaxed);
  if (link_) replies_.announce_sleep();  // the next reply rings the bell, and the watcher drains
}

void CommandPort::drain_locked(Resolved& resolved) {
  if (!link_) return;
  bool any = false;
  for (;;) {
    const auto record = replies_.front();
    if (!record.ok()) {
      corrupt_.store(true, std::memory_order_release);
      break;
    }
    if (record->empty()) break;
    wire::ReplyHeader reply;
    if (record->size() < sizeof reply) {
      corrupt_.store(true, std::memory_order_release);
      break;
    }
    std::memcpy(&reply, record->data(), sizeof reply);
    Result<void> outcome;
    if (reply.code != 0) {
      const auto text = record->subspan(sizeof reply);
      outcome = Error{
          reply.code <= static_cast<std::uint32_t>(Errc::internal) ? static_cast<Errc>(reply.code)
                                                                   : Errc::internal,
          reply.native, std::string(reinterpret_cast<const char*>(text.data()), text.size())};
    }
    replies_.pop();
    if (reply.count > TicketTable::kSlots) {
      corrupt_.store(true, std::memory_order_release);
      break;
    }
    for (std::uint64_t ticket = reply.first_ticket; ticket < reply.first_ticket + reply.count;
         ++ticket) {
      if (!tickets_.pending(ticket)) continue;
      if (options_.flight != nullptr && !outcome.ok())
        options_.flight->failed(ticket, outcome.code());
      if (!outcome.ok() && !tickets_.slot(ticket).quiet) note_error(outcome.error());
      resolved.add(tickets_.close(ticket), outcome);
    }
    any = true;
  }
  if (any) tickets_.advance();
}

Result<std::uint32_t> CommandPort::add_buffer(std::uint32_t region, std::uint64_t offset,
                                              std::uint64_t bytes, DType dtype) {
  const std::lock_guard lock(submit_mutex_);
  return buffers_.add(region, offset, bytes, dtype);
}

void CommandPort::drop_buffer(std::uint32_t buffer) {
  const std::lock_guard lock(submit_mutex_);
  buffers_.at(buffer).dropped = true;
  dropped_.push_back(buffer);
}

std::vector<std::pair<std::uint32_t, std::uint64_t>> CommandPort::collect_freed() {
  std::vector<std::pair<std::uint32_t, std::uint64_t>> freed;
  const std::lock_guard lock(submit_mutex_);
  std::erase_if(dropped_, [&](std::uint32_t buffer) {
    const auto& entry = buffers_.at(buffer);
    if (entry.holds != 0 || entry.last_ticket > tickets_.retired()) return false;
    freed.emplace_back(entry.region, entry.offset);
    buffers_.remove(buffer);
    return true;
  });
  return freed;
}

void CommandPort::forget_writes() {
  const std::lock_guard lock(submit_mutex_);
  for (std::uint32_t i = 0; i < buffers_.size(); ++i) {
    auto& entry = buffers_.at(i);
    entry.written = entry.known = false;
  }
}

void CommandPort::know_buffers() {
  const std::lock_guard lock(submit_mutex_);
  for (std::uint32_t i = 0; i < buffers_.size(); ++i) buffers_.at(i).known = buffers_.at(i).live;
}

std::vector<CommandPort::Written> CommandPort::writes() const {
  std::vector<Written> list;
  const std::lock_guard lock(submit_mutex_);
  for (std::uint32_t i = 0; i < buffers_.size(); ++i) {
    const auto& entry = buffers_.at(i);
    if (entry.written && entry.live && !entry.dropped)
      list.push_back({i, entry.bytes, entry.dtype});
  }
  return list;
}

void CommandPort::attach(std::shared_ptr<HostLink> link) {
  const std::scoped_lock locks(submit_mutex_, reply_mutex_);
  producer_ = link->producer();
  producer_.keep_from(producer_.position());
  replies_ = link->replies();
  link_ = std::move(link);
}

void CommandPort::keep_unanswered() noexcept {
  const auto oldest = tickets_.retired() + 1;
  producer_.keep_from(oldest <= tickets_.submitted() ? tickets_.slot(oldest).position
                                                     : producer_.position());
}

void CommandPort::note_error(const Error& error) {
  const std::lock_guard lock(error_mutex_);
  if (!error_) error_ = error;
  any_error_.store(true, std::memory_order_release);
}

std::optional<Error> CommandPort::take_error() {
  if (!any_error_.load(std::memory_order_acquire)) return std::nullopt;
  const std::lock_guard lock(error_mutex_);
  any_error_.store(false, std::memory_order_relaxed);
  return std::exchange(error_, std::nullopt);
}

void CommandPort::set_epoch(Epoch epoch) {
  const std::lock_guard lock(submit_mutex_);
  collectives_ = 0;
  epoch_.store(epoch.value, std::memory_order_release);
}

void CommandPort::close_gate(const Error& error) {
  const std::lock_guard lock(submit_mutex_);
  gate_ = error;
}

void CommandPort::open_gate() {
  const std::lock_guard lock(submit_mutex_);
  gate_.reset();
}

}  // namespace troupe::rank
