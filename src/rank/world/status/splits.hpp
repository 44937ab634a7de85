#pragma once

#include <optional>

#include "rank/protocol/message.hpp"
#include "rank/world/status/world_monitor.hpp"

namespace troupe::rank_process {

/// Host collectives that rank 0 has to agree to: splits, and all of those in a run.
class Splits {
 public:
  explicit Splits(WorldMonitor& monitor) : monitor_(&monitor) {}

  /// The WorldActor: rank 0 has answered.
  void set_answer(const from_supervisor::SplitAgreed& answer);
  /// The program: one is about to be asked for. Errors: those of wait().
  Result<void> begin();
  /// The program: waits for rank 0's answer. nullopt, where `gives_up`: the end of the world came
  /// first, or in a run a fault; the others may have the answer all the same. Errors: what ended
  /// the world; world_reformed.
  std::optional<Result<void>> wait(const HostCall& call, bool gives_up);

 private:
  WorldMonitor* monitor_;
  std::optional<from_supervisor::SplitAgreed> answer_;  ///< the newest
  std::uint32_t deaths_ = 0;                            ///< when the newest was asked for
};

}  // namespace troupe::rank_process
