#include <algorithm>

#include "rank/device/command_port.hpp"

// What becomes of the commands of a device host that stopped.

namespace troupe::rank {
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

Error CommandPort::with_what_ran(const Error& error, const InFlight& in_flight) const {
  ipc::RingControl bounds{};
  bound_unanswered(bounds);
  auto records = link_->commands(bounds);
  wire::Command command;
  std::string oldest;
  std::size_t others = 0;
  for (;; records.skip()) {
    const auto record = records.front();
    if (!record.ok() || record->empty() || !command.decode(*record).ok()) break;
    const auto ticket = command.header().ticket;
    if (!in_flight.contains(ticket, records.position())) break;
    if (!tickets_.pending(ticket)) continue;
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
  command.for_each_operand([&](std::string_view, const Operand& operand, Access access) {
    if (access != Access::read && (operand.region & kPinnedRegion) != 0)
      settled.lost_pinned.add(operand.region, operand.offset, operand.bytes);
  });
}

CommandPort::Settled CommandPort::take_answers(Resolved& resolved) {
  const auto retired = tickets_.retired();
  drain_locked(resolved);
  Settled settled;
  settled.completed = static_cast<std::uint32_t>(tickets_.retired() - retired);
  return settled;
}

CommandPort::Settled CommandPort::move_to(std::shared_ptr<HostLink> next, const Error& cause) {
  Resolved resolved;
  const std::scoped_lock locks(submit_mutex_, reply_mutex_);
  auto settled = take_answers(resolved);
  const InFlight in_flight(link_->header());
  auto plan = plan_replay(in_flight);
  const bool died = cause.code == Errc::device_lost;  // else it hands over in good health
  const auto error = died ? with_what_ran(cause, in_flight) : cause;

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
  advance(resolved);
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
  auto settled = take_answers(resolved);
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
  advance(resolved);
  return settled;
}

void CommandPort::end(const Error& error) {
  Resolved resolved;
  const std::scoped_lock locks(submit_mutex_, reply_mutex_);
  if (!ended_) ended_ = error;
  drain_locked(resolved);
  Settled settled;
  fail_range(tickets_.retired() + 1, tickets_.submitted(), error, settled, resolved);
  advance(resolved);
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
    buffers_.lose(buffer, error.code);
    if (std::find(settled.lost_buffers.begin(), settled.lost_buffers.end(), buffer) ==
        settled.lost_buffers.end()) {
      settled.lost_buffers.push_back(buffer);
    }
  });
  ++settled.failed;
  outcomes_.command_lost(ticket, error);
  if (options_.flight != nullptr) options_.flight->failed(ticket, error.code);
  resolved.add(tickets_.close(ticket), error);
}

std::optional<Error> CommandPort::obstacle(const wire::Command& command, const Settled& settled,
                                           const Error& error, bool moves) {
  if (command.header().epoch != 0) return Error{Errc::world_reformed, 0, error.message};
  std::string stale;
  bool apart = false;
  const auto& lost = settled.lost_buffers;
  command.for_each_operand([&](std::string_view name, const Operand& operand, Access) {
    apart |= (operand.region & kPinnedRegion) != 0 && (operand.region & kApartRegion) != 0;
    const bool gone = (operand.region & kPinnedRegion) != 0
                          ? settled.lost_pinned.overlaps(operand)
                          : !in_no_table(operand) &&
                                std::find(lost.begin(), lost.end(), operand.buffer) != lost.end();
    if (gone && stale.empty()) stale = name;
  });
  if (apart && moves)
    return Error{Errc::device_lost, 0, "memory that the next host lacks: " + error.message};
  if (!stale.empty()) {
    return Error{Errc::stale, 0,
                 std::string(command.name()) + ": the contents of " + stale +
                     " were lost: " + error.message};
  }
  return std::nullopt;
}

}  // namespace troupe::rank
