#pragma once

#include <cstdint>
#include <functional>
#include <optional>

#include <troupe/checkpoint.hpp>
#include <troupe/world.hpp>

#include "rank/device/recording/step_recorder.hpp"
#include "rank/run/interval_checks.hpp"
#include "rank/run/rehearsal.hpp"
#include "rank/run/run_members.hpp"
#include "rank/run/run_states.hpp"
#include "rank/run/run_timeline.hpp"
#include "rank/run/slow_rank.hpp"
#include "rank/world/world_core.hpp"

namespace troupe::rank_process {

/// One World::run: steps and commits, and the way back to the last common commit after a fault.
/// Lives on the program's thread.
class RunLoop {
 public:
  using StepFunction = std::function<Step(std::int64_t step)>;

  /// Everything must outlive the loop.
  RunLoop(WorldCore& core, Checkpoint& checkpoint, const StepFunction& step,
          const RunOptions& options);
  ~RunLoop() { detach(); }
  RunLoop(const RunLoop&) = delete;
  RunLoop& operator=(const RunLoop&) = delete;

  /// To the end of the run. Throws Exception with what cannot be recovered.
  void run();

 private:
  using Standing = RunTimeline::Standing;

  /// The run takes faults into its hands. What became of all that was submitted before.
  Result<void> attach();
  /// The world takes faults into its hands again, also in the middle of a re-formation.
  void detach();
  /// Checks and makes all that the steps need.
  void begin(const Result<void>& before);
  /// Begins the run together with the other members. A rank that dies meanwhile has all of them
  /// begin it anew, where they deal the state out.
  void open(const Result<void>& before);
  /// Throws on all members if anything has failed on any of them, or was lost, that the state of
  /// the run's begin may be made of.
  void check_begin(const Result<void>& before);
  [[nodiscard]] Result<void> check_options() const;
  /// Has the program make that state, where it does so within the run: as often as faults undo it.
  void prepare();

  void loop();
  /// The program's step, or what it records.
  Step call_step(std::int64_t i);
  void attempt();
  /// True if the step that comes next follows a commit.
  [[nodiscard]] bool commit_is_due(std::int64_t step) const;
  void commit(std::int64_t step);
  /// What other ranks have asked of this one before their commits of this step is part of its own.
  /// Only ranks whose buffers others can name wait for that. May throw world_reformed.
  void flush(std::int64_t step, std::uint32_t epoch);
  /// Behind the commit of this step: a rank whose GPU says that it is failing asks to leave the
  /// world, once the commit is everywhere, and with partners, and waits for the end of the epoch.
  /// May throw world_reformed.
  void leave_if_failing(std::int64_t step);
  /// The same, and it asks for another place; if there is none it stays.
  void move_if_failing(std::int64_t step);
  /// Ends the run on all ranks together, once all that it has submitted has ended well.
  /// `step`: the last that was done, or that of the last commit.
  void finish(std::int64_t step);
  /// After the commit of a run that was asked to stop: throws requeue.
  [[noreturn]] void stop(std::int64_t step);

  // After faults.

  /// An error has ended a step as if by a fault. If the epoch goes on, it ends now; the second time
  /// without a commit in between the error ends the run: throws it.
  void end_epoch_by(const Error& error);
  /// Takes part in the recovery that is under way, or in several; the step to go on from, -1: the
  /// first.
  std::int64_t recover();
  void restore(const RunStatus::Restore& order, std::optional<std::int64_t>& restored);
  /// The time of a rank that is out of the world. True: the run has ended; false: a new epoch
  /// began.
  bool watch();
  /// Tells the other ranks that this one leaves the run by an error that they do not know of.
  void leave(const Error& error);
  /// A rank has left the run, this one or another: the program goes on in the epoch that follows.
  void follow();

  WorldCore* core_;
  Checkpoint* checkpoint_;
  const StepFunction* step_;
  const RunOptions* options_;
  RunTimeline timeline_;
  RunStates states_;
  RunMembers members_;
  IntervalChecks checks_;
  SlowRank slow_;
  std::optional<StepRecorder> steps_;  ///< of a run that records them
  std::optional<Rehearsal> rehearsal_;
  std::int64_t first_;        ///< the step that the run began with
  std::int64_t from_;         ///< the step to go on from
  std::int64_t at_ = -1;      ///< the step that is under way, or was last
  bool stopping_ = false;     ///< the newest commit is the last
  std::uint32_t number_ = 0;  ///< of this run in the program
  bool attached_ = false;
  std::optional<std::int64_t> ended_epoch_at_;  ///< newest commit when end_epoch_by() last did so
  bool finished_ = false;                       ///< on all ranks
};

}  // namespace troupe::rank_process
