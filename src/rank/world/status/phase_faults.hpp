#pragma once

#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include <troupe/lib/fault_kind.hpp>

#include "rank/protocol/phase.hpp"

namespace troupe::rank_process {

/// Faults that were ordered for phases of a recovery. Any thread.
class PhaseFaults {
 public:
  void order(memory::FaultKind kind, Phase phase);
  /// The rank's process dies in this phase.
  void order_death(Phase phase);
  [[nodiscard]] bool take_death(Phase phase);
  /// One that was ordered for this phase, once.
  [[nodiscard]] std::optional<memory::FaultKind> take(Phase phase);
  /// Says which have not struck.
  void tell_left() const;

 private:
  mutable std::mutex mutex_;
  std::vector<std::pair<Phase, memory::FaultKind>> ordered_;
  std::vector<Phase> deaths_;
};

}  // namespace troupe::rank_process
