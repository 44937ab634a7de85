#pragma once

#include <chrono>
#include <optional>
#include <vector>

#include <troupe/ordered_fault.hpp>
#include <troupe/troupe.hpp>

#include "options.hpp"
#include "report.hpp"

namespace troupe::drill {

/// Lets the processes of ranks die in one run, one attack after the other, and watches the world
/// recover. All ranks call these functions alike.
///
/// A process that dies takes along all that it has noted. So what is to be known in the end is a
/// part of the state of the run, as the kept buffer is.
class RankDeaths {
 public:
  RankDeaths(Runtime& runtime, const Options& options);

  /// Throws Exception if the world does not recover or computes wrongly.
  std::vector<Series> suffer_all();

 private:
  using Clock = std::chrono::steady_clock;

  void make_state(Checkpoint& state);
  Step step(std::int64_t number);
  /// How long the ranks that have lived through the newest deaths have waited, if it is not noted.
  void note_pauses();
  void settle();
  [[nodiscard]] std::vector<Recovery> deaths() const;
  [[nodiscard]] bool kept_is_intact();

  Runtime& runtime_;
  World& world_;
  Device& device_;
  const Options& options_;
  const std::size_t attacks_;  ///< with their repetitions
  FaultsOfRank faults_;
  GpuRef<double> stream_, pauses_;  ///< pauses_: in ms, by attack; 0: not noted
  GpuRef<float> kept_;
  std::vector<double> noted_;                  ///< as pauses_ has it
  bool is_fresh_ = true;                       ///< noted_ is not known
  std::optional<Clock::time_point> verified_;  ///< of the newest step
};

}  // namespace troupe::drill
