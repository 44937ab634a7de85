#include "rank/device/commands/transfers.hpp"

#include <algorithm>

namespace troupe::rank_process {
namespace {

bool overlap(const Operand& a, const Operand& b) {
  return a.buffer == b.buffer && a.offset < b.offset + b.bytes && b.offset < a.offset + a.bytes;
}

}  // namespace

bool Transfers::any_overlap(const List& list, const Operand& range) {
  return std::any_of(list.begin(), list.end(),
                     [&](const Transfer& other) { return overlap(other.range, range); });
}

Transfers::Way Transfers::way(const Operand& range, Access access) const {
  if (any_overlap(expected_, range)) return Way::expected;
  if (access != Access::read && any_overlap(lent_, range)) return Way::lent;
  return Way::clear;
}

Transfers::Hindrance Transfers::hindrance(const detail::CommandView& command) const {
  if (expected_.empty() && lent_.empty()) return {};
  Hindrance found;
  const auto look = [&](const Operand& operand, Access access) {
    if (in_no_table(operand)) return;
    if (found.way == Way::expected || shared_->buffers.at(operand.buffer).transfers == 0) return;
    const auto here = way(operand, access);
    if (here != Way::clear) found = {here, operand};
  };
  for (const auto& use : command.uses()) look(*use.range, use.access);
  for (const auto& part : command.tail) look(part.range, part.access);
  return found;
}

Result<void> Transfers::reserve(List& list, const Operand& range, Access access) {
  Way found = Way::clear;
  {
    const std::lock_guard lock(shared_->submissions);
    auto& buffers = shared_->buffers;
    if (gate_->ended()) return *gate_->ended();
    if (!buffers.current(range)) return Error{Errc::stale, 0, buffers.explain(range)};
    found = way(range, access);
    if (found == Way::clear) {
      auto& entry = buffers.at(range.buffer);
      list.push_back({range, entry.restores});
      ++entry.holds;
      ++entry.transfers;
      return {};
    }
  }
  if (found == Way::lent) rescue_(range);
  return Error{Errc::would_block, 0, "a transfer of the range is under way"};
}

Transfers::List::iterator Transfers::find(List& list, const Operand& range) {
  return std::find_if(list.begin(), list.end(), [&](const Transfer& other) {
    return other.range.buffer == range.buffer && other.range.offset == range.offset &&
           other.range.bytes == range.bytes;
  });
}

void Transfers::give_back(List& list, const Operand& range) {
  const std::lock_guard lock(shared_->submissions);
  const auto it = find(list, range);
  check(it != list.end(), "a range is given back that was not taken");
  list.erase(it);
  auto& entry = shared_->buffers.at(range.buffer);
  --entry.holds;
  --entry.transfers;
}

Result<void> Transfers::begin_write(const Operand& range) {
  return reserve(expected_, range, Access::write);
}

void Transfers::end_write(const Operand& range) {
  give_back(expected_, range);
}

Result<Transfers::Contents> Transfers::begin_read(const Operand& range) {
  if (auto lent = reserve(lent_, range, Access::read); !lent) return lent.error();
  // From here on whoever writes the range has to wait for the rescue.
  const std::lock_guard lock(shared_->submissions);
  const bool unused = shared_->buffers.at(range.buffer).uses.value() == 0;
  return unused && !gate_->shut() && !gate_->ended() ? Contents::there : Contents::to_come;
}

void Transfers::end_read(const Operand& range) {
  give_back(lent_, range);
}

void Transfers::lose(const Operand& range, const Error& error, std::uint32_t epoch) {
  const std::lock_guard lock(shared_->submissions);
  auto& buffers = shared_->buffers;
  const auto transfer = find(expected_, range);
  check(transfer != expected_.end(), "a transfer fails that was not expected");
  const bool restored = buffers.at(range.buffer).restores != transfer->restores;
  if (restored || !buffers.valid(range.buffer, range.generation)) return;
  if (OutcomeLog::is_loss(error.code) || error.code == Errc::peer_lost)
    spoilt_in_.store(std::max(epoch, spoilt_in_.load()), std::memory_order_release);
  buffers.lose(range.buffer, error.code);
}

}  // namespace troupe::rank_process
