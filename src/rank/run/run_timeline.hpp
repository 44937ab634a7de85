#pragma once

#include <cstdint>
#include <vector>

#include <troupe/checkpoint.hpp>

#include "common/core/continuations.hpp"
#include "rank/device/commands/outcome_log.hpp"
#include "rank/world/world_core.hpp"

namespace troupe::rank_process {

/// Which work belongs to which steps of a run, also where other threads do it; docs/recovery.md has
/// the rule of timelines. And where in the program its last two commits were. The program's thread.
class RunTimeline {
 public:
  using Standing = detail::TimelineState::Standing;

  RunTimeline(WorldCore& core, Checkpoint& checkpoint) : core_(&core), checkpoint_(&checkpoint) {}

  /// The run begins at this place of the program.
  void begin(ProgramPlace place);
  /// Begins a new timeline for the work from here on; the one so far ends with standing `before`.
  void turn(Standing before);
  /// No run is under way from now on.
  void end(Standing before);
  /// Waits for what other threads do for the steps so far: functions given to futures, messages to
  /// actors, scopes. Not for functions that wait for a promise of the program's. May throw
  /// world_reformed.
  void settle();

  /// The commit of `step` follows: what was done so far ends with it, and its place is told by
  /// committed().
  void begin_commit(std::int64_t step);
  void committed(ProgramPlace place);
  /// Where in the program the commit of `step` was; -1: where the run began.
  [[nodiscard]] ProgramPlace place_of(std::int64_t step) const;
  void forget_commits_after(std::int64_t step);

 private:
  using StatePtr = detail::StatePtr<detail::TimelineState>;
  struct Commit {
    std::int64_t step;
    ProgramPlace place;
    StatePtr before;  ///< of the steps that it commits
  };
  [[nodiscard]] std::vector<Commit>::const_iterator find(std::int64_t step) const;

  WorldCore* core_;
  Checkpoint* checkpoint_;
  StatePtr state_;                            ///< of the steps that are under way; the port has it
  detail::TimelineState* outside_ = nullptr;  ///< what the thread works for outside of the run
  ProgramPlace began_;
  std::vector<Commit> commits_;  ///< the last two, and one that has yet to be submitted
};

}  // namespace troupe::rank_process
