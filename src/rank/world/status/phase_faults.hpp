#pragma once

#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include <troupe/lib/fault_kind.hpp>
#include <troupe/recovery.hpp>

#include "rank/protocol/phase.hpp"

namespace troupe::rank_process {

/// This process dies, or stops, as ordered. A stopped one goes on once it is continued.
void suffer(RankDeath death);

/// Faults that were ordered for phases of a recovery. Any thread.
class PhaseFaults {
 public:
  void order(memory::FaultKind kind, Phase phase);
  /// The rank's process ends in this phase.
  void order(RankDeath death, Phase phase);
  [[nodiscard]] std::optional<RankDeath> take_death(Phase phase);
  /// One that was ordered for this phase, once.
  [[nodiscard]] std::optional<memory::FaultKind> take(Phase phase);
  /// Says which have not struck.
  void tell_left() const;

 private:
  mutable std::mutex mutex_;
  std::vector<std::pair<Phase, memory::FaultKind>> ordered_;
  std::vector<std::pair<Phase, RankDeath>> deaths_;
};

}  // namespace troupe::rank_process
