#pragma once

#include <chrono>
#include <cstdint>

#include <troupe/clock.hpp>

namespace troupe::rank_process {

struct WorldParts;

/// Sees that this rank makes no progress, and says so: to rank 0, which asks all ranks where they
/// are, or in the log where a recovery waits for the program. The WorldActor's turns.
class ProgressWatch {
 public:
  explicit ProgressWatch(WorldParts& parts);

  void look();
  /// Tells rank 0 where the program is and what the device is at.
  void answer(std::uint32_t inquiry);
  /// Tells rank 0 in which host collective the program is, or that it is at its end.
  void answer_call();

 private:
  void look_at_work();
  /// A program that does not turn to a recovery is named: nothing else of the rank can tell.
  void look_at_program();
  /// How long the program has waited, or its oldest command.
  [[nodiscard]] std::chrono::nanoseconds waited() const;

  WorldParts& parts_;
  std::uint64_t retired_ = 0;                 ///< commands, …
  TimePoint retired_since_{};                 ///< … not more since then while some were under way
  std::chrono::nanoseconds report_at_;        ///< the wait after which the next report is due
  std::chrono::nanoseconds late_program_at_;  ///< the same of look_at_program()
};

}  // namespace troupe::rank_process
