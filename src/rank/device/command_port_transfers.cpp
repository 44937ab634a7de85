#include <algorithm>

#include "rank/device/command_port.hpp"

// Transfers between ranks: ranges that are being read or written from elsewhere, and what that
// means for the program's own commands.

namespace troupe::rank_process {
namespace {

bool overlap(const Operand& a, const Operand& b) {
  return a.buffer == b.buffer && a.offset < b.offset + b.bytes && b.offset < a.offset + a.bytes;
}

}  // namespace

bool CommandPort::any_overlap(const std::vector<Transfer>& list, const Operand& range) {
  return std::any_of(list.begin(), list.end(),
                     [&](const Transfer& other) { return overlap(other.range, range); });
}

Future<void> CommandPort::Deliveries::submit(const detail::CommandView& command) {
  auto quiet = command;
  quiet.quiet = true;
  quiet.within = within_;
  return port_->submit(quiet, Patience::wait, true);
}

CommandPort::Way CommandPort::way(const Operand& range, Access access) const {
  if (any_overlap(expected_, range)) return Way::expected;
  if (access != Access::read && any_overlap(lent_, range)) return Way::lent;
  return Way::clear;
}

CommandPort::Hindrance CommandPort::hindrance(const detail::CommandView& command) const {
  if (expected_.empty() && lent_.empty()) return {};
  Hindrance found;
  const auto look = [&](const Operand& operand, Access access) {
    if ((operand.region & (kPinnedRegion | kForeignRegion)) != 0) return;
    if (found.way == Way::expected || buffers_.at(operand.buffer).transfers == 0) return;
    const auto here = way(operand, access);
    if (here != Way::clear) found = {here, operand};
  };
  for (const auto& use : command.uses()) look(*use.range, use.access);
  for (const auto& part : command.tail) look(part.range, part.access);
  return found;
}

Result<Operand> CommandPort::translate(const Operand& named) const {
  const std::lock_guard lock(submit_mutex_);
  return buffers_.translate(named);
}

Result<void> CommandPort::hold(const Operand& range) {
  const std::lock_guard lock(submit_mutex_);
  if (!buffers_.current(range)) return Error{Errc::stale, 0, buffers_.explain(range)};
  ++buffers_.at(range.buffer).holds;
  return {};
}

void CommandPort::release(std::uint32_t buffer) {
  const std::lock_guard lock(submit_mutex_);
  --buffers_.at(buffer).holds;
}

Result<void> CommandPort::reserve(std::vector<Transfer>& list, const Operand& range,
                                  Access access) {
  Way found = Way::clear;
  {
    const std::lock_guard lock(submit_mutex_);
    if (ended_) return *ended_;
    if (!buffers_.current(range)) return Error{Errc::stale, 0, buffers_.explain(range)};
    found = way(range, access);
    if (found == Way::clear) {
      list.push_back({range});
      auto& entry = buffers_.at(range.buffer);
      ++entry.holds;
      ++entry.transfers;
      return {};
    }
  }
  if (found == Way::lent) rescue_(range);
  return Error{Errc::would_block, 0, "a transfer of the range is under way"};
}

std::vector<CommandPort::Transfer>::iterator CommandPort::find(std::vector<Transfer>& list,
                                                               const Operand& range) {
  return std::find_if(list.begin(), list.end(), [&](const Transfer& other) {
    return other.range.buffer == range.buffer && other.range.offset == range.offset &&
           other.range.bytes == range.bytes;
  });
}

void CommandPort::give_back(std::vector<Transfer>& list, const Operand& range) {
  const std::lock_guard lock(submit_mutex_);
  const auto it = find(list, range);
  check(it != list.end(), "a range is given back that was not taken");
  list.erase(it);
  auto& entry = buffers_.at(range.buffer);
  --entry.holds;
  --entry.transfers;
}

Result<void> CommandPort::begin_write(const Operand& range) {
  return reserve(expected_, range, Access::write);
}
void CommandPort::end_write(const Operand& range) {
  give_back(expected_, range);
}
Result<CommandPort::Contents> CommandPort::begin_read(const Operand& range) {
  if (auto lent = reserve(lent_, range, Access::read); !lent) return lent.error();
  // From here on whoever writes the range has to wait for the rescue.
  const std::lock_guard lock(submit_mutex_);
  const bool unused = buffers_.at(range.buffer).uses.value() == 0;
  return unused && !gate_ && !ended_ ? Contents::there : Contents::to_come;
}
void CommandPort::end_read(const Operand& range) {
  give_back(lent_, range);
}

void CommandPort::lose(const Operand& range, const Error& error, std::uint32_t epoch) {
  const std::lock_guard lock(submit_mutex_);
  const auto transfer = find(expected_, range);
  check(transfer != expected_.end(), "a transfer fails that was not expected");
  if (transfer->overtaken || !buffers_.valid(range.buffer, range.generation)) return;
  if (OutcomeLog::is_loss(error.code) || error.code == Errc::peer_lost)
    spoilt_in_.store(std::max(epoch, spoilt_in_.load()), std::memory_order_release);
  buffers_.lose(range.buffer, error.code);
}

}  // namespace troupe::rank_process
