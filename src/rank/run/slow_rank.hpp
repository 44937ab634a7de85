#pragma once

#include <chrono>
#include <optional>

#include "rank/world/pace_meter.hpp"
#include "rank/world/world_core.hpp"

namespace troupe::rank_process {

/// This rank's part in a run when it is slower than the others: see SlowRanks. The program's
/// thread.
class SlowRank {
 public:
  explicit SlowRank(WorldCore& core) : core_(&core) {}

  /// Behind a commit: if the leader has found that this rank is slow, says why, as far as that is
  /// known, and, where slow ranks leave, has its GPU say that it is failing.
  void look();
  /// Behind a step: holds the program up for kTimes as long as the step has taken, if that was
  /// ordered (SilentFault::slow).
  void hold_up_if_ordered();

 private:
  static constexpr int kTimes = 4;
  static constexpr std::chrono::milliseconds kLeast{20};  ///< else noise is as long
  static constexpr std::chrono::seconds kMost{1};

  WorldCore* core_;
  std::optional<PaceMeter::Reading> since_;  ///< when a step was held up last
};

}  // namespace troupe::rank_process
