#include "device_host/set_aside.hpp"

#include <algorithm>

namespace troupe::host {

SetAside::Number SetAside::newest_collective() const {
  const auto it = std::find_if(entries_.rbegin(), entries_.rend(),
                               [](const Entry& entry) { return entry.collective; });
  return it == entries_.rend() ? 0 : it->number;
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
