#include "device_host/set_aside.hpp"

#include <algorithm>

namespace troupe::host {

SetAside::Number SetAside::newest_collective() const {
  const auto it = std::find_if(entries_.rbegin(), entries_.rend(),
                               [](const Entry& entry) { return entry.collective; });
  return it == entries_.rend() ? 0 : it->number;
}

SetAside::Number SetAside::before(std::span<const OperandUse> operands, bool collective) const {
  if (entries_.empty()) return 0;
  HazardTracker::Waits waits{};
  for (const auto& use : operands) hazards_.collect(*use.range, use.access, waits);
  const auto newest =
      collective ? std::max(waits[kPlace.index()], newest_collective()) : waits[kPlace.index()];
  return newest < entries_.front().number ? 0 : newest;
}

void SetAside::add(std::span<const std::byte> record, std::span<const OperandUse> operands,
                   bool collective) {
  Entry entry{.number = ++newest_,
              .behind = before(operands, collective),
              .collective = collective,
              .record = {record.begin(), record.end()},
              .uses = {}};
  for (const auto& use : operands) entry.uses.emplace_back(*use.range, use.access);
  note(entry);
  entries_.push_back(std::move(entry));
}

void SetAside::note(const Entry& entry) {
  for (const auto& [operand, access] : entry.uses)
    hazards_.record(operand, access, kPlace, entry.number);
}

void SetAside::note_all() {
  hazards_.clear();
  for (const auto& entry : entries_) note(entry);
}

void SetAside::clear() {
  entries_.clear();
  hazards_.clear();
}

}  // namespace troupe::host
