#include "rank/world/status/phase_faults.hpp"

#include <algorithm>

#include "common/core/log.hpp"

namespace troupe::rank_process {

void PhaseFaults::order(memory::FaultKind kind, Phase phase) {
  const std::lock_guard lock(mutex_);
  ordered_.emplace_back(phase, kind);
}

void PhaseFaults::order_death(Phase phase) {
  const std::lock_guard lock(mutex_);
  deaths_.push_back(phase);
}

bool PhaseFaults::take_death(Phase phase) {
  const std::lock_guard lock(mutex_);
  return std::find(deaths_.begin(), deaths_.end(), phase) != deaths_.end();
}

std::optional<memory::FaultKind> PhaseFaults::take(Phase phase) {
  const std::lock_guard lock(mutex_);
  const auto it = std::find_if(ordered_.begin(), ordered_.end(),
                               [&](const auto& fault) { return fault.first == phase; });
  if (it == ordered_.end()) return std::nullopt;
  const auto kind = it->second;
  ordered_.erase(it);
  return kind;
}

void PhaseFaults::tell_left() const {
  const std::lock_guard lock(mutex_);
  for (const auto& [phase, kind] : ordered_) {
    log::warn("world",
              "the {} that was ordered for {} has not struck: no recovery came to that phase",
              to_string(kind), to_string(phase));
  }
  for (const auto phase : deaths_)
    log::warn("world",
              "the death that was ordered for {} has not come: no recovery came to that phase",
              to_string(phase));
}

}  // namespace troupe::rank_process
