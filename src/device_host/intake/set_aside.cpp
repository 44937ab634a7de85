#include "device_host/intake/set_aside.hpp"

#include <troupe/lib/overlap.hpp>

#include <algorithm>

namespace troupe::host {

SetAside::SetAside(wire::SetAsideTickets* seen) : seen_(seen) {
  for (std::size_t slot = kMax; slot > 0; --slot) free_slots_.push_back(slot - 1);
}

SetAside::Number SetAside::newest_collective() const {
  const auto it = std::find_if(entries_.rbegin(), entries_.rend(),
                               [](const Entry& entry) { return entry.collective; });
  return it == entries_.rend() ? 0 : it->number;
}

bool SetAside::may_conflict(std::span<const OperandUse> operands, bool collective) const {
  if (entries_.empty()) return false;
  if (collective && newest_collective() != 0) return true;
  Waits waits;
  for (const auto& use : operands) hazards_.collect(*use.range, use.access, waits);
  return waits[kPlace.index()] >= entries_.front().number;
}

bool SetAside::holds_up(std::span<const OperandUse> operands, bool collective) const {
  return !conflicts(operands, collective).empty();
}

/// Without those that others of them are behind anyway: a chain remembers its last link alone.
std::vector<SetAside::Number> SetAside::conflicts(std::span<const OperandUse> operands,
                                                  bool collective) const {
  std::vector<Number> numbers, covered;
  if (!may_conflict(operands, collective)) return numbers;
  // Collectives are a chain.
  if (collective && collectives_ == entries_.size()) return {entries_.back().number};
  const auto conflict = [&](const std::pair<Operand, Access>& other) {
    return std::any_of(operands.begin(), operands.end(), [&](const OperandUse& use) {
      return (use.access != Access::read || other.second != Access::read) &&
             troupe::detail::overlap(*use.range, other.first);
    });
  };
  for (auto entry = entries_.rbegin(); entry != entries_.rend(); ++entry) {
    const bool is_covered =
        std::find(covered.begin(), covered.end(), entry->number) != covered.end();
    const bool conflicts =
        !is_covered && ((collective && entry->collective) ||
                        std::any_of(entry->uses.begin(), entry->uses.end(), conflict));
    if (conflicts) numbers.push_back(entry->number);
    if (is_covered) std::erase(covered, entry->number);
    if (conflicts || is_covered)
      covered.insert(covered.end(), entry->behind.begin(), entry->behind.end());
  }
  return numbers;
}

void SetAside::add(std::uint64_t ticket, std::span<const std::byte> record,
                   std::span<const OperandUse> operands, bool collective) {
  check(!full(), "more commands are set aside than there is room for");
  Entry entry{.number = ++newest_,
              .behind = conflicts(operands, collective),
              .collective = collective,
              .slot = free_slots_.back(),
              .record = {record.begin(), record.end()},
              .uses = {}};
  free_slots_.pop_back();
  entry.waits_for = entry.behind.size();
  for (const auto number : entry.behind) find(number)->followers.push_back(entry.number);
  if (entry.waits_for == 0) free_.insert(entry.number);
  if (collective) ++collectives_;
  for (const auto& use : operands) entry.uses.emplace_back(*use.range, use.access);
  note(entry);
  if (seen_ != nullptr) seen_->put(entry.slot, ticket);
  entries_.push_back(std::move(entry));
}

void SetAside::begin(const Entry& entry) {
  if (seen_ != nullptr) seen_->clear(entry.slot);
}

void SetAside::free_slot(const Entry& entry) {
  begin(entry);
  free_slots_.push_back(entry.slot);
}

std::deque<SetAside::Entry>::iterator SetAside::find(Number number) {
  const auto it =
      std::lower_bound(entries_.begin(), entries_.end(), number,
                       [](const Entry& entry, Number sought) { return entry.number < sought; });
  check(it != entries_.end() && it->number == number, "no such command is set aside");
  return it;
}

void SetAside::remove(std::deque<Entry>::iterator entry) {
  for (const auto follower : entry->followers) {
    if (--find(follower)->waits_for == 0) free_.insert(follower);
  }
  if (entry->collective) --collectives_;
  free_slot(*entry);
  entries_.erase(entry);
}

void SetAside::erase(Number number) {
  remove(find(number));
  free_.erase(number);
  note_gone(1);
}

void SetAside::release(Number number) {
  find(number)->held = false;
}

void SetAside::note(const Entry& entry) {
  for (const auto& [operand, access] : entry.uses)
    hazards_.record(operand, access, kPlace, entry.number);
}

void SetAside::note_gone(std::size_t count) {
  gone_ += count;
  if (gone_ == 0 || (gone_ < entries_.size() && !entries_.empty())) return;
  gone_ = 0;
  hazards_.clear();
  for (const auto& entry : entries_) note(entry);
}

void SetAside::clear() {
  for (const auto& entry : entries_) free_slot(entry);
  entries_.clear();
  free_.clear();
  collectives_ = 0;
  hazards_.clear();
  gone_ = 0;
}

}  // namespace troupe::host
