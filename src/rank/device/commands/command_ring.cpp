#include "rank/device/commands/command_ring.hpp"

#include <algorithm>
#include <string>

namespace troupe::rank_process {

Result<void> CommandRing::takes(const detail::CommandView& command) const {
  if (is_unknown(*command.info, command.op.data())) [[unlikely]] {
    const std::string library(command.info->library());
    const auto why = shared_->link->header().unknown.why(library);
    return Error{Errc::unsupported, 0,
                 std::string(command.info->name) + ": the device host does not have library " +
                     library + (why.empty() ? "" : ": " + why)};
  }
  return {};
}

bool CommandRing::push(const detail::CommandView& command, Future<void>& future) {
  auto& tickets = shared_->tickets;
  const auto ticket = tickets.next();
  const auto bytes = wire::record_bytes(command);
  // All that is unanswered must fit into the ring of another host.
  const auto in_ring = ipc::ring_detail::padded(bytes);
  if (ticket == 0 || !tickets.has_at_most(producer_.room_when_new() - in_ring)) return false;
  if (!has_credit(*command.info, command.op.data())) return false;
  auto room = producer_.reserve(bytes);
  if (room.ok() && room->empty()) {
    save_taken();
    room = producer_.reserve(bytes);
  }
  if (!room.ok()) {
    shared_->corrupt.store(true, std::memory_order_release);
    return false;  // until the host is replaced
  }
  if (room->empty()) return false;
  wire::encode(command, ticket, *room);

  auto& slot = tickets.slot(ticket);
  slot.bytes = static_cast<std::uint32_t>(in_ring);
  slot.position = producer_.position();
  slot.saved = false;
  slot.died_in_flight = false;
  slot.quiet = command.quiet;
  slot.opcode = command.info->opcode;
  for (const auto& use : command.uses()) note_use(slot, ticket, *use.range, use.access);
  for (const auto& part : command.tail) note_use(slot, ticket, part.range, part.access);
  if (auto spare = shared_->spares.take()) {
    future = Future<void>(spare);
    tickets.open(slot, std::move(spare));
  } else {
    auto* const state = new detail::State<void>(progress_, detail::StateBase::TwoReferences{});
    future = Future<void>(SpareFutures::State(state));
    tickets.open(slot, SpareFutures::State(state));
  }
  if (shared_->options.flight != nullptr) note_submitted(ticket, command);
  if (producer_.commit()) shared_->link->command_bell().ring();
  return true;
}

void CommandRing::note_submitted(std::uint64_t ticket, const detail::CommandView& command) {
  const auto& [epoch, group] = std::pair(command.scope.epoch, command.scope.group);
  if (const auto now = shared_->current_epoch(); now != counted_in_) {
    collectives_.clear();
    counted_in_ = now;
  }
  // An exchange is the business of some ranks of its communicator only: it does not count.
  const bool counts = epoch != 0 && command.info->agreement != nullptr;
  const bool of_world = counts && group == 0;
  const bool ahead = of_world && shared_->tickets.pending(last_collective_);
  if (of_world) last_collective_ = ticket;
  shared_->options.flight->submitted(ticket, command, counts ? ++collectives_[group] : 0, ahead);
}

bool CommandRing::is_unknown(const OperationInfo& info, const std::byte* op) const {
  if (!shared_->link) return false;
  const auto unknown = shared_->link->header().unknown.lanes();
  if (unknown == 0) [[likely]]
    return false;
  return (unknown >> static_cast<unsigned>(find_operation(info.opcode).lane(op)) & 1u) != 0;
}

bool CommandRing::has_credit(const OperationInfo& info, const std::byte* op) const {
  const auto held_up = shared_->link->header().held_up.load(std::memory_order_relaxed);
  if (held_up == 0) [[likely]]
    return true;
  const auto lane = find_operation(info.opcode).lane(op);
  if (lane < Lane::first_library || (held_up >> static_cast<unsigned>(lane) & 1u) == 0) return true;
  const auto& tickets = shared_->tickets;
  const auto pending = tickets.all_pending();
  const auto of_library = std::count_if(pending.begin(), pending.end(), [&](std::uint64_t ticket) {
    const auto* const other = find_operation(tickets.slot(ticket).opcode).info;
    return other != nullptr && other->library() == info.library();
  });
  return of_library < static_cast<std::ptrdiff_t>(wire::kCredits);
}

void CommandRing::note_use(TicketTable::Slot& slot, std::uint64_t ticket, const Operand& operand,
                           Access access) {
  auto& tickets = shared_->tickets;
  if ((operand.region & kPinnedRegion) != 0) {
    if (pinned_uses_.size() >= pinned_uses_limit_) {
      std::erase_if(pinned_uses_, [&](const auto& use) { return !tickets.pending(use.first); });
      pinned_uses_limit_ = std::max(kPinnedUses, 2 * pinned_uses_.size());
    }
    pinned_uses_.emplace_back(ticket, operand);
  } else if (!in_no_table(operand)) {
    auto& entry = shared_->buffers.at(operand.buffer);
    entry.uses.raise();
    entry.written = entry.written || (access != Access::read && entry.known);
    entry.writes += access != Access::read ? 1 : 0;
    tickets.add_named(slot, operand.buffer, access != Access::read);
  }
}

std::vector<std::uint64_t> CommandRing::users_of(const Operand& pinned) const {
  std::vector<std::uint64_t> users;
  for (const auto& [ticket, used] : pinned_uses_) {
    const bool overlaps = used.region == pinned.region &&
                          used.offset < pinned.offset + pinned.bytes &&
                          pinned.offset < used.offset + used.bytes;
    if (overlaps && shared_->tickets.pending(ticket)) users.push_back(ticket);
  }
  return users;
}

void CommandRing::turn_to(std::shared_ptr<HostLink> link) {
  producer_ = link->producer();
  producer_.keep_from(producer_.position());
  first_in_ring_ = shared_->tickets.submitted() + 1;
  shared_->link = std::move(link);
  show_host();
}

void CommandRing::turn_to(std::shared_ptr<HostLink> link, const ipc::RingProducer& producer) {
  turn_to(std::move(link));
  producer_ = producer;
  producer_.keep_from(0);
  first_in_ring_ = shared_->tickets.retired() + 1;
}

void CommandRing::show_host() const {
  if (shared_->options.flight == nullptr) return;
  auto& board = shared_->options.flight->board();
  board.host_since.store(ticks(), std::memory_order_relaxed);
  board.host_pid.store(shared_->link->header().host_pid.load(), std::memory_order_relaxed);
}

void CommandRing::save_taken() {
  auto& tickets = shared_->tickets;
  const auto taken = producer_.consumed();
  for (; first_in_ring_ <= tickets.submitted(); ++first_in_ring_) {
    if (!tickets.pending(first_in_ring_)) continue;
    auto& slot = tickets.slot(first_in_ring_);
    if (slot.position >= taken) break;
    if (const auto record = record_of(slot); record.ok()) {
      TicketTable::more_of(slot).record.assign(record->begin(), record->end());
      slot.saved = true;
    }
  }
  producer_.keep_from(taken);
}

Result<std::span<const std::byte>> CommandRing::record_of(const TicketTable::Slot& slot) const {
  if (slot.saved) return std::span<const std::byte>(slot.more->record);
  ipc::RingControl from{};
  from.head = slot.position;
  return shared_->link->commands(from).front();
}

bool CommandRing::read(std::uint64_t ticket, wire::Command& command) const {
  const auto record = record_of(shared_->tickets.slot(ticket));
  return record.ok() && !record->empty() && command.decode(*record).ok() &&
         command.header().ticket == ticket && (command.header().flags & wire::kCancelled) == 0;
}

}  // namespace troupe::rank_process
