#include "rank/device/command_port.hpp"

#include <algorithm>
#include <thread>

namespace troupe::rank_process {

thread_local int CommandPort::Passage::depth_ = 0;

Future<void> CommandPort::submit(const detail::CommandView& command) {
  return submit(command, Patience::wait, false);
}
Future<void> CommandPort::try_submit(const detail::CommandView& command) {
  return submit(command, Patience::give_up, false);
}

Future<void> CommandPort::submit(const detail::CommandView& command, Patience patience,
                                 bool delivers) {
  for (auto pause = std::chrono::microseconds(1);;
       pause = std::min(pause * 2, std::chrono::microseconds(1000))) {
    Hindrance found;
    {
      const std::lock_guard lock(submit_mutex_);
      if (auto admitted = admit(command, delivers); !admitted) {
        if (Passage::open()) passage_waits_ = false;
        return command.quiet ? Future<void>(std::move(admitted)) : refuse(admitted.error());
      }
      if (!delivers) found = hindrance(command);
      Future<void> future;
      const bool its_turn = Passage::open() || !passage_waits_;
      if (its_turn && found.way == Way::clear && push(command, future) == Push::done) {
        if (Passage::open()) passage_waits_ = false;
        return future;
      }
      if (found.way == Way::clear && Passage::open() && patience == Patience::wait)
        passage_waits_ = true;
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

Result<void> CommandPort::admit(const detail::CommandView& command, bool delivers) const {
  if (ended_) return *ended_;
  // Commands that other ranks ask for belong to an epoch and to steps of those ranks: the timeline
  // of this thread does not matter.
  const bool own = !delivers && command.within == 0;
  if (detail::bound_timeline() != timeline_ && own && !Passage::open()) [[unlikely]] {
    if (auto right = check_timeline(command); !right) return right;
  }
  if (gate_ && !Passage::open()) return *gate_;
  const auto epoch = epoch_.load(std::memory_order_acquire);
  if (command.scope.epoch != 0 && command.scope.epoch != epoch) {
    return Error{Errc::world_reformed, 0,
                 std::string(command.info->name) + ": its epoch, " +
                     std::to_string(command.scope.epoch) +
                     ", has ended: call World::wait_active()"};
  }
  if (command.within != 0 && command.within != epoch) {
    return Error{Errc::world_reformed, 0,
                 "a request of epoch " + std::to_string(command.within) + ", which has ended"};
  }
  if (is_unknown(*command.info, command.op.data())) {
    const std::string library(command.info->library());
    const auto why = link_->header().unknown.why(library);
    return Error{Errc::unsupported, 0,
                 std::string(command.info->name) + ": the device host does not have library " +
                     library + (why.empty() ? "" : ": " + why)};
  }
  const auto known = [this](const Operand& operand) {
    return in_no_table(operand) || buffers_.current(operand);
  };
  const auto stale = [&](std::string_view name, const Operand& operand) {
    return Error{Errc::stale, 0,
                 std::string(command.info->name) + ": " + std::string(name) + ": " +
                     buffers_.explain(operand)};
  };
  for (const auto& use : command.uses()) {
    if (!known(*use.range)) return stale(use.name, *use.range);
  }
  for (const auto& part : command.tail) {
    if (!known(part.range)) return stale(command.info->tail, part.range);
  }
  const auto bytes = wire::record_bytes(command);
  if (!fits(command.tail.size(), bytes)) {
    return Error{Errc::invalid, 0,
                 "a command of " + std::to_string(bytes) + " bytes does not fit the ring"};
  }
  return {};
}

CommandPort::Push CommandPort::push(const detail::CommandView& command, Future<void>& future) {
  const auto ticket = tickets_.next();
  const auto bytes = wire::record_bytes(command);
  // All that is unanswered must fit into the ring of another host.
  const auto in_ring = ipc::ring_detail::padded(bytes);
  if (ticket == 0 || tickets_.open_bytes() + in_ring > producer_.capacity()) return Push::full;
  if (!has_credit(*command.info, command.op.data())) return Push::full;
  auto room = producer_.reserve(bytes);
  if (room.ok() && room->empty()) {
    save_taken();
    room = producer_.reserve(bytes);
  }
  if (!room.ok()) {
    corrupt_.store(true, std::memory_order_release);
    return Push::full;  // until the host is replaced
  }
  if (room->empty()) return Push::full;
  wire::encode(command, ticket, *room);

  auto& slot = tickets_.slot(ticket);
  slot.bytes = in_ring;
  slot.position = producer_.position();
  slot.saved = false;
  slot.died_in_flight = false;
  slot.quiet = command.quiet;
  slot.opcode = command.info->opcode;
  for (const auto& use : command.uses()) note_use(slot, ticket, *use.range, use.access);
  for (const auto& part : command.tail) note_use(slot, ticket, part.range, part.access);
  auto* const state = new detail::State<void>(this, detail::StateBase::TwoReferences{});
  future = Future<void>(detail::StatePtr<detail::State<void>>(state));
  tickets_.open(slot, detail::StatePtr<detail::State<void>>(state));
  if (options_.flight != nullptr) {
    // An exchange is the business of some ranks of its communicator only: it does not count.
    const bool counts = command.scope.epoch != 0 && command.info->agreement != nullptr;
    const bool of_world = counts && command.scope.group == 0;
    const bool ahead = of_world && tickets_.pending(last_collective_);
    if (of_world) last_collective_ = ticket;
    options_.flight->submitted(ticket, command, counts ? ++collectives_[command.scope.group] : 0,
                               ahead);
  }
  if (producer_.commit()) link_->command_bell().ring();
  return Push::done;
}

bool CommandPort::is_unknown(const OperationInfo& info, const std::byte* op) const {
  if (!link_) return false;
  const auto unknown = link_->header().unknown.lanes();
  if (unknown == 0) [[likely]]
    return false;
  return (unknown >> static_cast<unsigned>(find_operation(info.opcode).lane(op)) & 1u) != 0;
}

bool CommandPort::has_credit(const OperationInfo& info, const std::byte* op) const {
  const auto held_up = link_->header().held_up.load(std::memory_order_relaxed);
  if (held_up == 0) [[likely]]
    return true;
  const auto lane = find_operation(info.opcode).lane(op);
  if (lane < Lane::first_library || (held_up >> static_cast<unsigned>(lane) & 1u) == 0) return true;
  const auto pending = tickets_.all_pending();
  const auto of_library = std::count_if(pending.begin(), pending.end(), [&](std::uint64_t ticket) {
    const auto* const other = find_operation(tickets_.slot(ticket).opcode).info;
    return other != nullptr && other->library() == info.library();
  });
  return of_library < static_cast<std::ptrdiff_t>(wire::kCredits);
}

void CommandPort::note_use(TicketTable::Slot& slot, std::uint64_t ticket, const Operand& operand,
                           Access access) {
  if ((operand.region & kPinnedRegion) != 0) {
    if (pinned_uses_.size() >= pinned_uses_limit_) {
      std::erase_if(pinned_uses_, [&](const auto& use) { return !tickets_.pending(use.first); });
      pinned_uses_limit_ = std::max(kPinnedUses, 2 * pinned_uses_.size());
    }
    pinned_uses_.emplace_back(ticket, operand);
  } else if (!in_no_table(operand)) {
    auto& entry = buffers_.at(operand.buffer);
    entry.uses.raise();
    entry.written = entry.written || (access != Access::read && entry.known);
    tickets_.add_named(slot, operand.buffer, access != Access::read);
  }
}

std::vector<std::uint64_t> CommandPort::users_of(const Operand& pinned) {
  std::vector<std::uint64_t> users;
  const std::lock_guard lock(submit_mutex_);
  for (const auto& [ticket, used] : pinned_uses_) {
    const bool overlaps = used.region == pinned.region &&
                          used.offset < pinned.offset + pinned.bytes &&
                          pinned.offset < used.offset + used.bytes;
    if (overlaps && tickets_.pending(ticket)) users.push_back(ticket);
  }
  return users;
}

detail::StatePtr<detail::State<void>> CommandPort::close(std::uint64_t ticket) {
  tickets_.for_each_named(ticket,
                          [&](std::uint32_t buffer, bool) { buffers_.at(buffer).uses.lower(); });
  return tickets_.close(ticket);
}

void CommandPort::poll() noexcept {
  Resolved resolved(*this);
  {
    const std::unique_lock lock(reply_mutex_, std::try_to_lock);
    if (!lock.owns_lock()) return;
    if (polls_++ % kPollsPerClock == 0)
      last_poll_ns_.store(SteadyClock::time().count(), std::memory_order_relaxed);
    drain_locked(resolved);
  }
  lose_spoilt(resolved);
}

void CommandPort::attend() noexcept {
  {
    const std::unique_lock lock(reply_mutex_, std::try_to_lock);
    if (lock.owns_lock() && link_ && replies_.sleep_is_announced()) replies_.cancel_sleep();
  }
  poll();
}

void CommandPort::drain() {
  Resolved resolved(*this);
  {
    const std::lock_guard lock(reply_mutex_);
    drain_locked(resolved);
  }
  lose_spoilt(resolved);
}

void CommandPort::lose_spoilt(Resolved& resolved) {
  if (resolved.spoilt().empty()) return;
  const std::lock_guard lock(submit_mutex_);
  lose_spoilt_locked(resolved);
}

void CommandPort::lose_spoilt_locked(Resolved& resolved) {
  const auto epoch = epoch_.load(std::memory_order_acquire);
  for (const auto& spoilt : resolved.spoilt()) {
    // In another epoch a rollback may have restored it. And once its command is closed, a buffer
    // that nobody refers to may be freed, and its entry be that of another.
    const auto& entry = buffers_.at(spoilt.buffer);
    if (spoilt.epoch == epoch && entry.live && entry.first_generation <= spoilt.generation)
      buffers_.lose(spoilt.buffer, spoilt.by);
  }
  resolved.spoilt().clear();
}

void CommandPort::before_sleep() noexcept {
  const std::lock_guard lock(reply_mutex_);
  polls_ = 0;
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
      if ((reply.flags & wire::kSpoilt) != 0) {
        const auto epoch = epoch_.load(std::memory_order_acquire);
        tickets_.for_each_named(ticket, [&](std::uint32_t buffer, bool written) {
          if (!written) return;
          const auto& generation = buffers_.at(buffer).generation;
          resolved.spoilt().push_back(
              {buffer, outcome.code(), epoch, generation.load(std::memory_order_relaxed)});
        });
      }
      if (!outcome.ok() && !tickets_.slot(ticket).quiet &&
          outcomes_.command_failed(ticket, outcome.error())) {
        resolved.add(close(ticket), ledger_.enter(outcome.error(), {ticket, 0}));
      } else {
        resolved.add(close(ticket), outcome);
      }
    }
    any = true;
  }
  if (any) advance(resolved);
}

void CommandPort::advance(Resolved& resolved) {
  tickets_.advance();
  for (auto& [state, outcome] : outcomes_.ready(tickets_.retired()))
    resolved.add(std::move(state), outcome);
}

CommandPort::Fence CommandPort::fence() {
  Resolved resolved(*this);
  Fence fence;
  const std::scoped_lock locks(submit_mutex_, reply_mutex_);
  auto* const state = new detail::State<void>(this, detail::StateBase::TwoReferences{});
  fence.reached = Future<void>(OutcomeLog::State(state));
  fence.place = outcomes_.add_fence(tickets_.submitted(), OutcomeLog::State(state));
  advance(resolved);
  return fence;
}

Result<void> CommandPort::Request::end(const Result<void>& outcome) {
  if (std::exchange(ended_, true)) return outcome;
  Resolved resolved(*port_);
  // Until the error is entered no fence passes: whoever waits for one looks then what has failed.
  const std::lock_guard lock(port_->reply_mutex_);
  port_->resolving_.fetch_add(1, std::memory_order_acq_rel);
  const bool counts = port_->outcomes_.end_request(entry_, outcome);
  auto told = outcome;
  if (!outcome.ok() && counts && !OutcomeLog::is_loss(outcome.code()))
    told = port_->ledger_.enter(outcome.error(), entry_.place);
  port_->advance(resolved);
  return told;
}

Future<void> CommandPort::refuse(Error error) {
  if (works_for_undone()) return Future<void>(std::move(error));
  const auto place = outcomes_.refused(submitted(), error);
  return Future<void>(Result<void>(ledger_.enter(std::move(error), place)));
}

Error CommandPort::report(const Error& error) {
  if (works_for_undone()) return error;
  const auto place = outcomes_.refused(submitted(), error);
  return OutcomeLog::is_loss(error.code) ? error : ledger_.enter(error, place);
}

Error CommandPort::enter(Error error, detail::Heard heard) {
  if (OutcomeLog::is_loss(error.code)) return error;
  if (heard == detail::Heard::by_all) return report(error);
  return ledger_.enter(std::move(error), {submitted(), 0}, ErrorLedger::Kind::answer);
}

std::optional<Error> CommandPort::take_error() {
  ledger_.mark_all_read();
  return outcomes_.take_error();
}

void CommandPort::forget_since(ProgramPlace place) {
  outcomes_.forget_since(place, submitted());
  ledger_.forget_since(place);
}

void CommandPort::forgive_losses() {
  outcomes_.forgive_losses();
  ledger_.forgive_losses();
}

Result<std::uint32_t> CommandPort::add_buffer(std::uint32_t region, std::uint64_t offset,
                                              std::uint64_t bytes, DType dtype) {
  const std::lock_guard lock(submit_mutex_);
  return buffers_.add(region, offset, bytes, dtype);
}

void CommandPort::name_buffer(std::uint32_t buffer, std::string_view name) {
  const std::lock_guard lock(submit_mutex_);
  buffers_.at(buffer).name = name;
}

std::string CommandPort::name_of(const Operand& range) const {
  const std::lock_guard lock(submit_mutex_);
  if (in_no_table(range) || range.buffer >= buffers_.size()) return {};
  return buffers_.at(range.buffer).name;
}

std::string CommandPort::describe(const Operand& range) const {
  const std::lock_guard lock(submit_mutex_);
  return buffers_.describe(range);
}

bool CommandPort::restore_buffer(const Operand& where) {
  const std::lock_guard lock(submit_mutex_);
  const auto& entry = buffers_.at(where.buffer);
  if (where.offset != entry.offset || where.bytes != entry.bytes) return false;
  buffers_.restore(where.buffer);
  for (auto& transfer : expected_)
    transfer.overtaken = transfer.overtaken || transfer.range.buffer == where.buffer;
  return true;
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
    if (entry.holds != 0 || entry.uses.value() != 0) return false;
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
      list.push_back({i, buffers_.describe({.buffer = i})});
  }
  return list;
}

void CommandPort::attach(std::shared_ptr<HostLink> link) {
  const std::scoped_lock locks(submit_mutex_, reply_mutex_);
  turn_to(std::move(link));
}

void CommandPort::turn_to(std::shared_ptr<HostLink> link) {
  producer_ = link->producer();
  producer_.keep_from(producer_.position());
  first_in_ring_ = tickets_.submitted() + 1;
  replies_ = link->replies();
  link_ = std::move(link);
  show_host();
}

void CommandPort::show_host() {
  if (options_.flight == nullptr) return;
  auto& board = options_.flight->board();
  board.host_since.store(ticks(), std::memory_order_relaxed);
  board.host_pid.store(link_->header().host_pid.load(), std::memory_order_relaxed);
}

void CommandPort::ready(const HostLink& link) {
  const std::lock_guard lock(submit_mutex_);
  if (link_.get() == &link) show_host();
}

void CommandPort::save_taken() {
  const auto taken = producer_.consumed();
  for (; first_in_ring_ <= tickets_.submitted(); ++first_in_ring_) {
    if (!tickets_.pending(first_in_ring_)) continue;
    auto& slot = tickets_.slot(first_in_ring_);
    if (slot.position >= taken) break;
    if (const auto record = record_of(slot); record.ok()) {
      slot.record.assign(record->begin(), record->end());
      slot.saved = true;
    }
  }
  producer_.keep_from(taken);
}

Result<std::span<const std::byte>> CommandPort::record_of(const TicketTable::Slot& slot) const {
  if (slot.saved) return std::span<const std::byte>(slot.record);
  ipc::RingControl bounds{};
  bounds.head = slot.position;
  bounds.tail = producer_.position();
  return link_->commands(bounds).front();
}

void CommandPort::set_epoch(Epoch epoch) {
  const std::lock_guard lock(submit_mutex_);
  collectives_.clear();
  passage_waits_ = false;
  epoch_.store(epoch.value, std::memory_order_release);
}

void CommandPort::close_gate(const Error& error) {
  const std::lock_guard lock(submit_mutex_);
  gate_ = error;
}

bool CommandPort::closed() const {
  const std::lock_guard lock(submit_mutex_);
  return gate_ || ended_;
}

void CommandPort::open_gate() {
  const std::lock_guard lock(submit_mutex_);
  gate_.reset();
}

}  // namespace troupe::rank_process
