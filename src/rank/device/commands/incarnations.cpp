#include "rank/device/commands/incarnations.hpp"

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>

#include <troupe/lib/outside.hpp>

namespace troupe::rank_process {
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

/// Beside fail(): what a command that does not go on would have written to pinned memory.
void lose_pinned(const wire::Command& command, Incarnations::Settled& settled) {
  for (const auto& [range, access, name] : command.operands()) {
    if (access != Access::read && (range->region & kPinnedRegion) != 0)
      settled.lost_pinned.add(range->region, range->offset, range->bytes);
  }
}

/// Why a command that was never issued cannot run any more; nullopt: it can. What counts is what
/// the commands before it have lost (`settled`), not the generations of now: the loss of one behind
/// it does not concern it. `moves`: to a host that has no memory apart.
std::optional<Error> obstacle(const wire::Command& command, const Incarnations::Settled& settled,
                              const Error& error, bool moves) {
  if (command.header().epoch != 0) return Error{Errc::world_reformed, 0, error.message};
  std::string stale;
  bool apart = false;
  const auto& lost = settled.lost_buffers;
  for (const auto& [range, access, name] : command.operands()) {
    const auto& operand = *range;
    // A command that writes to a file, say, does not depend on the file's old contents.
    if (outside::is_outside(operand) && access != Access::read) continue;
    apart |= (operand.region & kPinnedRegion) != 0 && (operand.region & kApartRegion) != 0;
    const bool gone = (operand.region & kPinnedRegion) != 0
                          ? settled.lost_pinned.overlaps(operand)
                          : !in_no_table(operand) &&
                                std::find(lost.begin(), lost.end(), operand.buffer) != lost.end();
    if (gone && stale.empty()) stale = name;
  }
  if (apart && moves)
    return Error{Errc::device_lost, 0, "memory that the next host lacks: " + error.message};
  if (!stale.empty()) {
    return Error{Errc::stale, 0,
                 std::string(command.name()) + ": the contents of " + stale +
                     " were lost: " + error.message};
  }
  return std::nullopt;
}

}  // namespace

/// What the dead host says it issued, and what it is seen to have taken: one of them is enough. Not
/// in flight is what it has set aside.
class Incarnations::InFlight {
 public:
  explicit InFlight(const wire::PortHeader& header)
      : set_aside_(header.set_aside),
        issued_(header.issued_ticket.load(std::memory_order_acquire)),
        head_(header.command.head.load(std::memory_order_acquire)) {}
  [[nodiscard]] bool contains(std::uint64_t ticket, std::uint64_t position) const noexcept {
    return (ticket <= issued_ || position < head_) && !set_aside_.contains(ticket);
  }

 private:
  const wire::SetAsideTickets& set_aside_;
  std::uint64_t issued_, head_;
};

std::optional<ReplayPlan> Incarnations::plan_replay(const InFlight& in_flight) const {
  if (!shared_->options.replay || gate_->shut()) return std::nullopt;
  ReplayPlan plan;
  wire::Command command;
  for (const auto ticket : shared_->tickets.all_pending()) {
    if (!in_flight.contains(ticket, shared_->tickets.slot(ticket).position)) continue;
    if (!ring_->read(ticket, command)) return std::nullopt;
    plan.add_in_flight(command);
  }
  return plan;
}

Error Incarnations::with_what_ran(const Error& error, const InFlight& in_flight) const {
  wire::Command command;
  std::string oldest;
  std::size_t others = 0;
  for (const auto ticket : shared_->tickets.all_pending()) {
    if (!in_flight.contains(ticket, shared_->tickets.slot(ticket).position)) continue;
    if (!ring_->read(ticket, command)) continue;
    if (oldest.empty()) {
      oldest = std::string(command.name()) + " (ticket " + std::to_string(ticket) + ")";
    } else {
      ++others;
    }
  }
  if (oldest.empty()) return error;
  auto told = error;
  told.message += "; in flight: " + oldest +
                  (others == 0 ? "" : " and " + std::to_string(others) + " behind it");
  return told;
}

Incarnations::Settled Incarnations::take_answers(Resolved& resolved) {
  const auto retired = shared_->tickets.retired();
  replies_->take(resolved);
  shared_->lose_spoilt(resolved);
  Settled settled;
  settled.completed = static_cast<std::uint32_t>(shared_->tickets.retired() - retired);
  return settled;
}

void Incarnations::turn_to(const std::shared_ptr<HostLink>& link) {
  replies_->turn_to(*link);
  ring_->turn_to(link);
}

void Incarnations::attach(std::shared_ptr<HostLink> link) {
  const std::scoped_lock locks(shared_->submissions, shared_->replies);
  turn_to(link);
}

void Incarnations::ready(const HostLink& link) {
  const std::lock_guard lock(shared_->submissions);
  if (shared_->link.get() == &link) ring_->show_host();
}

Incarnations::Settled Incarnations::move_to(std::shared_ptr<HostLink> next, const Error& cause) {
  Resolved resolved(shared_->resolving);
  const std::scoped_lock locks(shared_->submissions, shared_->replies);
  auto settled = take_answers(resolved);
  const InFlight in_flight(shared_->link->header());
  auto plan = plan_replay(in_flight);
  const bool died = cause.code == Errc::device_lost;  // else it hands over in good health
  const auto error = died ? with_what_ran(cause, in_flight) : cause;

  auto producer = next->producer();
  // A command that names what the dead host has spoilt fails.
  wire::Command command;
  for (const auto ticket : shared_->tickets.all_pending()) {
    auto& slot = shared_->tickets.slot(ticket);
    if (!ring_->read(ticket, command)) {
      fail(ticket, error, settled, resolved);
      continue;
    }
    const bool repeats = in_flight.contains(ticket, slot.position);
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
      const auto position = producer.position();
      pass_on(*ring_->record_of(slot), repeats && died, producer);
      slot.position = position;
      slot.saved = false;
      ++settled.resubmitted;
      settled.repeated += repeats ? 1 : 0;
      if (repeats && shared_->options.flight != nullptr) shared_->options.flight->repeated(ticket);
    }
  }
  shared_->advance(resolved);
  shared_->corrupt.store(false, std::memory_order_release);
  replies_->turn_to(*next);
  ring_->turn_to(std::move(next), producer);
  shared_->link->command_bell().ring();
  return settled;
}

Incarnations::Settled Incarnations::settle_in_place(const Error& error) {
  Resolved resolved(shared_->resolving);
  const std::scoped_lock locks(shared_->submissions, shared_->replies);
  auto settled = take_answers(resolved);
  const auto issued = shared_->link->header().issued_ticket.load(std::memory_order_acquire);
  wire::Command command;
  for (const auto ticket : shared_->tickets.all_pending()) {
    if (ticket > issued) break;
    if (ring_->read(ticket, command)) lose_pinned(command, settled);
    fail(ticket, error, settled, resolved);
  }
  auto untaken = shared_->link->untaken();
  for (;;) {
    const auto record = untaken.front();
    if (!record.ok() || record->empty()) break;
    if (command.decode(*record).ok()) {
      const auto ticket = command.header().ticket;
      const auto reason = obstacle(command, settled, error, false);
      if (reason && shared_->tickets.pending(ticket)) {
        fail(ticket, *reason, settled, resolved);
        lose_pinned(command, settled);
      }
      if (!shared_->tickets.pending(ticket)) {
        set_flag(const_cast<std::byte*>(record->data()), wire::kCancelled);
      } else {
        ++settled.resubmitted;
      }
    }
    untaken.skip();
  }
  shared_->advance(resolved);
  return settled;
}

void Incarnations::end(const Error& error) {
  Resolved resolved(shared_->resolving);
  const std::scoped_lock locks(shared_->submissions, shared_->replies);
  gate_->end(error);
  replies_->take(resolved);
  shared_->lose_spoilt(resolved);
  Settled settled;
  for (const auto ticket : shared_->tickets.all_pending()) fail(ticket, error, settled, resolved);
  shared_->advance(resolved);
}

void Incarnations::begin_again(std::shared_ptr<HostLink> link) {
  const std::scoped_lock locks(shared_->submissions, shared_->replies);
  turn_to(link);
  shared_->corrupt.store(false, std::memory_order_release);
  gate_->begin_again();
}

void Incarnations::fail(std::uint64_t ticket, const Error& error, Settled& settled,
                        Resolved& resolved) {
  shared_->tickets.for_each_named(ticket, [&](std::uint32_t buffer, bool written) {
    if (!written) return;
    shared_->buffers.lose(buffer, error.code);
    if (std::find(settled.lost_buffers.begin(), settled.lost_buffers.end(), buffer) ==
        settled.lost_buffers.end()) {
      settled.lost_buffers.push_back(buffer);
    }
  });
  ++settled.failed;
  shared_->outcomes.command_lost(ticket, error);
  if (shared_->options.flight != nullptr) shared_->options.flight->failed(ticket, error.code);
  resolved.add(shared_->close(ticket), error);
}

}  // namespace troupe::rank_process
