#include <algorithm>

#include <troupe/lib/outside.hpp>

#include "rank/device/command_port.hpp"

// What becomes of the commands of a device host that stopped.

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

}  // namespace

/// What the dead host says it issued, and what it is seen to have taken: one of them is enough. Not
/// in flight is what it has set aside.
class CommandPort::InFlight {
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

bool CommandPort::read(std::uint64_t ticket, wire::Command& command) const {
  const auto record = record_of(tickets_.slot(ticket));
  return record.ok() && !record->empty() && command.decode(*record).ok() &&
         command.header().ticket == ticket && (command.header().flags & wire::kCancelled) == 0;
}

std::optional<ReplayPlan> CommandPort::plan_replay(const InFlight& in_flight) const {
  if (!options_.replay || gate_) return std::nullopt;
  ReplayPlan plan;
  wire::Command command;
  for (const auto ticket : tickets_.all_pending()) {
    if (!in_flight.contains(ticket, tickets_.slot(ticket).position)) continue;
    if (!read(ticket, command)) return std::nullopt;
    plan.add_in_flight(command);
  }
  return plan;
}

Error CommandPort::with_what_ran(const Error& error, const InFlight& in_flight) const {
  wire::Command command;
  std::string oldest;
  std::size_t others = 0;
  for (const auto ticket : tickets_.all_pending()) {
    if (!in_flight.contains(ticket, tickets_.slot(ticket).position)) continue;
    if (!read(ticket, command)) continue;
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

void CommandPort::lose_pinned(const wire::Command& command, Settled& settled) {
  for (const auto& [range, access, name] : command.operands()) {
    if (access != Access::read && (range->region & kPinnedRegion) != 0)
      settled.lost_pinned.add(range->region, range->offset, range->bytes);
  }
}

CommandPort::Settled CommandPort::take_answers(Resolved& resolved) {
  const auto retired = tickets_.retired();
  drain_locked(resolved);
  lose_spoilt_locked(resolved);
  Settled settled;
  settled.completed = static_cast<std::uint32_t>(tickets_.retired() - retired);
  return settled;
}

CommandPort::Settled CommandPort::move_to(std::shared_ptr<HostLink> next, const Error& cause) {
  Resolved resolved(*this);
  const std::scoped_lock locks(submit_mutex_, reply_mutex_);
  auto settled = take_answers(resolved);
  const InFlight in_flight(link_->header());
  auto plan = plan_replay(in_flight);
  const bool died = cause.code == Errc::device_lost;  // else it hands over in good health
  const auto error = died ? with_what_ran(cause, in_flight) : cause;

  auto producer = next->producer();
  // A command that names what the dead host has spoilt fails.
  wire::Command command;
  for (const auto ticket : tickets_.all_pending()) {
    auto& slot = tickets_.slot(ticket);
    if (!read(ticket, command)) {
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
      pass_on(*record_of(slot), repeats && died, producer);
      slot.position = position;
      slot.saved = false;
      ++settled.resubmitted;
      settled.repeated += repeats ? 1 : 0;
      if (repeats && options_.flight != nullptr) options_.flight->repeated(ticket);
    }
  }
  advance(resolved);
  corrupt_.store(false, std::memory_order_release);
  turn_to(std::move(next));
  producer_ = producer;
  producer_.keep_from(0);
  first_in_ring_ = tickets_.retired() + 1;
  link_->command_bell().ring();
  return settled;
}

CommandPort::Settled CommandPort::settle_in_place(const Error& error) {
  Resolved resolved(*this);
  const std::scoped_lock locks(submit_mutex_, reply_mutex_);
  auto settled = take_answers(resolved);
  const auto issued = link_->header().issued_ticket.load(std::memory_order_acquire);
  wire::Command command;
  for (const auto ticket : tickets_.all_pending()) {
    if (ticket > issued) break;
    if (read(ticket, command)) lose_pinned(command, settled);
    fail(ticket, error, settled, resolved);
  }
  auto untaken = link_->untaken();
  for (;;) {
    const auto record = untaken.front();
    if (!record.ok() || record->empty()) break;
    if (command.decode(*record).ok()) {
      const auto ticket = command.header().ticket;
      const auto reason = obstacle(command, settled, error, false);
      if (reason && tickets_.pending(ticket)) {
        fail(ticket, *reason, settled, resolved);
        lose_pinned(command, settled);
      }
      if (!tickets_.pending(ticket)) {
        set_flag(const_cast<std::byte*>(record->data()), wire::kCancelled);
      } else {
        ++settled.resubmitted;
      }
    }
    untaken.skip();
  }
  advance(resolved);
  return settled;
}

void CommandPort::end(const Error& error) {
  Resolved resolved(*this);
  const std::scoped_lock locks(submit_mutex_, reply_mutex_);
  if (!ended_) ended_ = error;
  drain_locked(resolved);
  lose_spoilt_locked(resolved);
  Settled settled;
  for (const auto ticket : tickets_.all_pending()) fail(ticket, error, settled, resolved);
  advance(resolved);
}

void CommandPort::begin_again(std::shared_ptr<HostLink> link) {
  const std::scoped_lock locks(submit_mutex_, reply_mutex_);
  turn_to(std::move(link));
  corrupt_.store(false, std::memory_order_release);
  ended_.reset();
}

void CommandPort::fail(std::uint64_t ticket, const Error& error, Settled& settled,
                       Resolved& resolved) {
  tickets_.for_each_named(ticket, [&](std::uint32_t buffer, bool written) {
    if (!written) return;
    buffers_.lose(buffer, error.code);
    if (std::find(settled.lost_buffers.begin(), settled.lost_buffers.end(), buffer) ==
        settled.lost_buffers.end()) {
      settled.lost_buffers.push_back(buffer);
    }
  });
  ++settled.failed;
  outcomes_.command_lost(ticket, error);
  if (options_.flight != nullptr) options_.flight->failed(ticket, error.code);
  resolved.add(close(ticket), error);
}

std::optional<Error> CommandPort::obstacle(const wire::Command& command, const Settled& settled,
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

}  // namespace troupe::rank_process
