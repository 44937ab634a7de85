#include "rank/device/command_port.hpp"

#include <algorithm>
#include <thread>

namespace troupe::rank {

thread_local int CommandPort::Passage::depth_ = 0;

namespace {

void set_flag(std::byte* record, std::uint32_t flag) {
  auto* const at = record + offsetof(wire::CommandHeader, flags);
  std::uint32_t flags = 0;
  std::memcpy(&flags, at, sizeof flags);
  flags |= flag;
  std::memcpy(at, &flags, sizeof flags);
}

/// Puts a record of a host that is gone into the ring of the next one.
void pass_on(std::span<const std::byte> record, bool alone, ipc::RingProducer& producer) {
  auto room = producer.reserve(record.size());
  check(room.ok() && !room->empty(), "a fresh ring has no room for the commands of its equal");
  std::memcpy(room->data(), record.data(), record.size());
  if (alone) set_flag(room->data(), wire::kAlone);
  (void)producer.commit();
}

/// Pinned memory and other ranks' slabs are in no table of buffers.
bool in_no_table(const Operand& operand) {
  return (operand.region & (kPinnedRegion | kForeignRegion)) != 0;
}

}  // namespace

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
    buffers_.at(operand.buffer).last_ticket = ticket;
    if (access != Access::read) tickets_.add_written(slot, operand.buffer);
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

void CommandPort::bound_unanswered(ipc::RingControl& bounds) const noexcept {
  const auto oldest = tickets_.retired() + 1;
  bounds.tail = producer_.position();
  bounds.head =
      oldest <= tickets_.submitted() ? tickets_.slot(oldest).position : bounds.tail.load();
}

/// What the dead host says it issued, and what it is seen to have taken: one of them is enough.
class CommandPort::InFlight {
 public:
  explicit InFlight(const wire::PortHeader& header)
      : issued_(header.issued_ticket.load(std::memory_order_acquire)),
        head_(header.command.head.load(std::memory_order_acquire)) {}
  [[nodiscard]] bool contains(std::uint64_t ticket, std::uint64_t position) const noexcept {
    return ticket <= issued_ || position < head_;
  }

 private:
  std::uint64_t issued_, head_;
};

std::optional<ReplayPlan> CommandPort::plan_replay(const InFlight& in_flight) const {
  if (!options_.replay || gate_) return std::nullopt;
  ReplayPlan plan;
  ipc::RingControl bounds{};
  bound_unanswered(bounds);
  auto records = link_->commands(bounds);
  wire::Command command;
  for (auto expected = tickets_.retired() + 1;; ++expected) {
    const auto record = records.front();
    if (!record.ok()) return std::nullopt;
    if (record->empty()) break;
    if (!command.decode(*record).ok()) return std::nullopt;
    const auto ticket = command.header().ticket;
    if (ticket < expected || ticket > tickets_.submitted()) return std::nullopt;
    for (; expected < ticket; ++expected) {
      if (tickets_.pending(expected)) return std::nullopt;
    }
    if (!in_flight.contains(ticket, records.position())) break;  // nor is any behind it
    plan.add_in_flight(command);
    records.skip();
  }
  return plan;
}

void CommandPort::lose_pinned(const wire::Command& command, Settled& settled) {
  command.for_each_operand([&](std::string_view, const Operand& operand, Access access) {
    if (access != Access::read && (operand.region & kPinnedRegion) != 0)
      settled.lost_pinned.add(operand.region, operand.offset, operand.bytes);
  });
}

CommandPort::Settled CommandPort::move_to(std::shared_ptr<HostLink> next, const Error& error) {
  Resolved resolved;
  const std::scoped_lock locks(submit_mutex_, reply_mutex_);
  Settled settled;
  const auto retired = tickets_.retired();
  drain_locked(resolved);
  settled.completed = static_cast<std::uint32_t>(tickets_.retired() - retired);
  const InFlight in_flight(link_->header());
  auto plan = plan_replay(in_flight);
  const bool died = error.code == Errc::device_lost;  // else it hands over in good health

  auto producer = next->producer();
  producer.keep_from(producer.position());
  // The ring holds all commands that are not answered, in the order of their tickets. What the dead
  // host spoiled is in nobody's hands: it fails, and nothing moves twice.
  ipc::RingControl bounds{};
  bound_unanswered(bounds);
  auto records = link_->commands(bounds);
  wire::Command command;
  auto expected = tickets_.retired() + 1;
  for (;; records.skip()) {
    const auto record = records.front();
    if (!record.ok() || record->empty()) break;
    const bool sound =
        command.decode(*record).ok() && (command.header().flags & wire::kCancelled) == 0;
    const auto ticket = sound ? command.header().ticket : 0;
    if (ticket < expected || !tickets_.pending(ticket)) continue;
    fail_range(expected, ticket - 1, error, settled, resolved);
    expected = ticket + 1;
    auto& slot = tickets_.slot(ticket);
    const bool repeats = in_flight.contains(ticket, records.position());
    auto reason = obstacle(command, settled, error, true);
    if (repeats) {
      const bool culprit = died && std::exchange(slot.died_in_flight, true);
      const bool may = plan && !culprit && !reason && plan->runs_again(command);
      reason = may ? std::nullopt : std::optional(error);
    }
    if (reason) {
      fail(ticket, *reason, settled, resolved);
      lose_pinned(command, settled);
    } else {
      slot.position = producer.position();
      pass_on(*record, repeats && died, producer);
      ++settled.resubmitted;
      settled.repeated += repeats ? 1 : 0;
      if (repeats && options_.flight != nullptr) options_.flight->repeated(ticket);
    }
  }
  fail_range(expected, tickets_.submitted(), error, settled, resolved);
  tickets_.advance();
  corrupt_.store(false, std::memory_order_release);
  producer_ = producer;
  replies_ = next->replies();
  link_ = std::move(next);
  link_->command_bell().ring();
  return settled;
}

CommandPort::Settled CommandPort::settle_in_place(const Error& error) {
  Resolved resolved;
  const std::scoped_lock locks(submit_mutex_, reply_mutex_);
  Settled settled;
  const auto retired = tickets_.retired();
  drain_locked(resolved);
  settled.completed = static_cast<std::uint32_t>(tickets_.retired() - retired);
  fail_in_flight(link_->header().issued_ticket.load(std::memory_order_acquire), error, settled,
                 resolved);
  auto untaken = link_->untaken();
  wire::Command command;
  for (;;) {
    const auto record = untaken.front();
    if (!record.ok() || record->empty()) break;
    if (command.decode(*record).ok()) {
      const auto ticket = command.header().ticket;
      const auto reason = obstacle(command, settled, error, false);
      if (reason && tickets_.pending(ticket)) fail(ticket, *reason, settled, resolved);
      if (!tickets_.pending(ticket)) {
        set_flag(const_cast<std::byte*>(record->data()), wire::kCancelled);
      } else {
        ++settled.resubmitted;
      }
    }
    untaken.skip();
  }
  tickets_.advance();
  return settled;
}

void CommandPort::end(const Error& error) {
  Resolved resolved;
  const std::scoped_lock locks(submit_mutex_, reply_mutex_);
  if (!ended_) ended_ = error;
  drain_locked(resolved);
  Settled settled;
  fail_range(tickets_.retired() + 1, tickets_.submitted(), error, settled, resolved);
  tickets_.advance();
}

void CommandPort::begin_again(std::shared_ptr<HostLink> link) {
  const std::scoped_lock locks(submit_mutex_, reply_mutex_);
  producer_ = link->producer();
  replies_ = link->replies();
  link_ = std::move(link);
  corrupt_.store(false, std::memory_order_release);
  ended_.reset();
}

void CommandPort::fail_in_flight(std::uint64_t issued, const Error& error, Settled& settled,
                                 Resolved& resolved) {
  fail_range(tickets_.retired() + 1, std::min(issued, tickets_.submitted()), error, settled,
             resolved);
}

void CommandPort::fail_range(std::uint64_t first, std::uint64_t last, const Error& error,
                             Settled& settled, Resolved& resolved) {
  for (auto ticket = first; ticket <= last; ++ticket) {
    if (tickets_.pending(ticket)) fail(ticket, error, settled, resolved);
  }
}

void CommandPort::fail(std::uint64_t ticket, const Error& error, Settled& settled,
                       Resolved& resolved) {
  tickets_.for_each_written(ticket, [&](std::uint32_t buffer) {
    buffers_.lose(buffer);
    if (std::find(settled.lost_buffers.begin(), settled.lost_buffers.end(), buffer) ==
        settled.lost_buffers.end()) {
      settled.lost_buffers.push_back(buffer);
    }
  });
  ++settled.failed;
  if (options_.flight != nullptr) options_.flight->failed(ticket, error.code);
  resolved.add(tickets_.close(ticket), error);
}

std::optional<Error> CommandPort::obstacle(const wire::Command& command, const Settled& settled,
                                           const Error& error, bool moves) {
  if (command.header().epoch != 0) return Error{Errc::world_reformed, 0, error.message};
  bool stale = false, apart = false;
  const auto& lost = settled.lost_buffers;
  command.for_each_operand([&](std::string_view, const Operand& operand, Access) {
    apart |= (operand.region & kPinnedRegion) != 0 && (operand.region & kApartRegion) != 0;
    if ((operand.region & kPinnedRegion) != 0) {
      stale |= settled.lost_pinned.overlaps(operand);
    } else {
      stale |= !in_no_table(operand) &&
               std::find(lost.begin(), lost.end(), operand.buffer) != lost.end();
    }
  });
  if (apart && moves)
    return Error{Errc::device_lost, 0, "memory that the next host lacks: " + error.message};
  if (stale) return Error{Errc::stale, 0, "a buffer that it needs was lost: " + error.message};
  return std::nullopt;
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
