#pragma once

#include <cstdint>
#include <optional>
#include <utility>

#include <troupe/clock.hpp>
#include <troupe/world.hpp>

#include "rank/protocol/message.hpp"
#include "rank/world/status/keeper_status.hpp"
#include "rank/world/status/members.hpp"
#include "rank/world/status/status_parts.hpp"
#include "rank/world/status/world_monitor.hpp"
#include "rank/world/whereabouts.hpp"

namespace troupe::rank_process {

/// The run that is under way, or was last: its commits, its end, and the recoveries that it takes
/// part in.
class RunStatus {
 public:
  RunStatus(WorldMonitor& monitor, StatusParts& parts, Whereabouts& whereabouts, Members& members)
      : monitor_(&monitor),
        parts_(&parts),
        whereabouts_(&whereabouts),
        members_(&members),
        keeper_(monitor) {}

  // Any thread.

  [[nodiscard]] bool is_under_way() const noexcept { return monitor_->in_run; }
  /// A run has begun.
  [[nodiscard]] bool has_begun() const noexcept { return monitor_->begun; }
  [[nodiscard]] KeeperStatus& keeper() noexcept { return keeper_; }
  [[nodiscard]] const KeeperStatus& keeper() const noexcept { return keeper_; }
  /// Commits that all ranks have, over all runs.
  [[nodiscard]] std::uint64_t commits() const;
  /// Since when a recovery waits for the program to turn to it; nullopt: it does not.
  [[nodiscard]] std::optional<TimePoint> recovery_waits_since() const;

  // The WorldActor.

  /// True: the run that is under way goes back to the commit of `step`, and says so itself. False:
  /// there is nothing to go back to.
  [[nodiscard]] bool ask_restore(std::uint32_t round, std::int64_t step);
  void set_all_flushed(std::int64_t step);
  void set_stable(std::int64_t step);
  void set_stopping(std::int64_t since);
  void set_finished(std::int64_t step);
  /// The run of this number has ended, for a rank has left it; and so has its epoch.
  void set_left(std::int64_t run, int rank, const Error& error);
  void fail_commit(const Error& error);

  // The program's thread.

  /// The run takes faults into its hands. Its number in the program; nullopt: another one has not
  /// ended.
  std::optional<std::uint32_t> begin();
  /// A recovery's order to go back to the last common commit.
  struct Restore {
    std::uint32_t round;
    std::int64_t step;
  };
  /// The world takes faults into its hands again. What was asked of the run and is not done.
  std::optional<Restore> end();
  /// The last step of the run that has ended last on all ranks; kNoEnd: it was left.
  [[nodiscard]] std::int64_t last_step() const;
  /// This rank makes its commit of this step.
  void begin_commit(std::int64_t step, TimePoint now);
  /// Until `step` is committed everywhere. Throws Exception: world_reformed, or what ended the
  /// world.
  void wait_stable(std::int64_t step);
  /// Until what all ranks have asked of others before the commit of this step is done. Likewise.
  void wait_all_flushed(std::int64_t step);
  /// Whether the run ends with the commit that follows that of step `newest`; -1: the first one.
  [[nodiscard]] bool stops_after(std::int64_t newest) const;
  /// The run cannot go on as it is: RunLoop::recover() says how.
  [[nodiscard]] bool is_interrupted() const;
  /// The next order of the recovery that is under way. nullopt: the new epoch is active and
  /// acknowledged; errors since `place` are forgotten. Throws WorldStopped, RunLeft.
  std::optional<Restore> wait_for_recovery(const ProgramPlace& place);
  /// Until all ranks have finished the run. False: a fault came first. Throws WorldStopped.
  bool wait_finished(std::uint32_t run);
  /// What has become of the run on a rank that is out of the world.
  enum class Seen { nothing, finished, new_epoch };
  /// Waits for something if `waits`. A new epoch is acknowledged as wait_for_recovery() does.
  /// Throws WorldStopped, RunLeft.
  Seen watch(std::uint32_t run, const ProgramPlace& place, bool waits);
  /// Until the world has ended, or a rank has left the run.
  void wait_for_end();
  /// The same; throws WorldStopped or RunLeft.
  [[noreturn]] void throw_end();

  // With the monitor's mutex held.

  /// The epoch has ended.
  void epoch_ended();
  void epoch_began(std::int64_t stable);
  void world_stopped();

 private:
  /// The new epoch is acknowledged, for a run: the gate is open again.
  void resume(const ProgramPlace& place);

  struct Committing {
    std::int64_t step = -1;
    TimePoint since{};
  };

  WorldMonitor* monitor_;
  StatusParts* parts_;
  Whereabouts* whereabouts_;
  Members* members_;
  KeeperStatus keeper_;
  std::int64_t all_flushed_ = -1;
  std::int64_t stable_ = -1;
  Committing committing_;                       ///< the newest commit of this rank's
  std::uint64_t commits_ = 0;                   ///< that all ranks have
  std::optional<Error> commit_error_;           ///< why a commit of this run will never be stable
  std::int64_t last_step_ = kNoEnd;             ///< see last_step()
  std::optional<std::int64_t> stopping_since_;  ///< see FollowerActions::stopping
  std::optional<Restore> restore_;
  std::optional<TimePoint> waits_since_;  ///< see recovery_waits_since()
};

}  // namespace troupe::rank_process
