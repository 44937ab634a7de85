#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include <troupe/lib/memory.hpp>
#include <troupe/world.hpp>

#include "rank/device/commands/command_port.hpp"
#include "rank/device/flight/flight_collector.hpp"
#include "rank/net/mpi_session.hpp"
#include "rank/post/actor_post.hpp"
#include "rank/protocol/message.hpp"
#include "rank/store/state_keeper.hpp"
#include "rank/token/token_client.hpp"
#include "rank/world/collective_check.hpp"
#include "rank/world/whereabouts.hpp"

namespace troupe::rank_process {

/// What has ended the world: thrown on all ranks.
class WorldStopped : public CollectiveException {
 public:
  using CollectiveException::CollectiveException;
};

/// A rank has left a run by an error of its own, which it tells itself: thrown on the others.
class RunLeft : public CollectiveException {
 public:
  using CollectiveException::CollectiveException;
};

/// What the world is at and what the program is asked to do: where the program's thread and the
/// WorldActor meet. Each function says which of the two calls it; one lock guards the state.
class WorldStatus {
 public:
  /// What an epoch's end and begin close and open; outlives the status.
  struct Parts {
    CommandPort* port = nullptr;
    TokenClient* tokens = nullptr;
    ActorPost* actors = nullptr;
    CollectiveCheck* check = nullptr;      ///< nullptr: collectives are not checked
    FlightCollector* collector = nullptr;  ///< traces commits; nullptr: nobody does
  };

  WorldStatus(MpiSession& mpi, Whereabouts& whereabouts);
  /// Before the WorldActor begins.
  void set_parts(const Parts& parts) { parts_ = parts; }

  // Any thread.

  /// The epoch that the program has acknowledged.
  [[nodiscard]] Epoch epoch() const noexcept {
    return Epoch(program_epoch_.load(std::memory_order_acquire));
  }
  /// The ranks that the program has turned to, of an epoch that it has acknowledged.
  [[nodiscard]] const HostGroup& members() const noexcept { return *members_.load(); }
  [[nodiscard]] bool in_run() const noexcept { return attached_; }
  [[nodiscard]] std::vector<Recovery> recoveries() const;
  /// Commits that all ranks have, over all runs.
  [[nodiscard]] std::uint64_t commits() const;
  /// Says which faults were ordered for phases that have not come.
  void tell_faults_left() const;
  void inject_in_phase(memory::FaultKind kind, Phase phase);
  /// All standbys are ready and have formed their communicator.
  [[nodiscard]] bool standby_ready() const;
  /// This rank's own, in this epoch.
  [[nodiscard]] bool has_standby() const;
  [[nodiscard]] std::optional<std::uint64_t> standby_memory() const;

  /// What the GPUs of all ranks have said of their health.
  [[nodiscard]] std::vector<HealthEvent> health_events() const;

  // The WorldActor.

  void add_health(HealthEvent event);
  /// This rank's GPU says that it is failing, and its rank is to leave the world.
  void set_failing(const std::string& text);
  /// The epoch has ended.
  void close();
  /// True: the run that is under way goes back to the commit of `step`, and says so itself. False:
  /// there is nothing to go back to.
  [[nodiscard]] bool ask_restore(std::uint32_t round, std::int64_t step);
  void activate(std::uint32_t epoch, std::int64_t stable, const std::vector<Recovery>& reports,
                const std::vector<std::int32_t>& excluded);
  void set_all_flushed(std::int64_t step);
  void set_stable(std::int64_t step);
  void set_stopping(std::int64_t since);
  void set_finished(std::int64_t step);
  /// The run of this number has ended, for a rank has left it; and so has its epoch.
  void set_left(std::int64_t run, int rank, const Error& error);
  void fail_commit(const Error& error);
  /// The world has ended.
  void stop(const Error& error);
  void set_split_answer(const from_supervisor::SplitAgreed& answer);
  /// A fault that was ordered for this phase.
  [[nodiscard]] std::optional<memory::FaultKind> take_fault(Phase phase);
  void set_standby(bool ready);
  void set_standby_world(bool formed);
  void set_standby_memory(std::uint64_t bytes);
  /// The members of the epoch that is being formed, nullptr: all ranks. Not `current` any more: the
  /// group is only kept, because to free it waits for all of its ranks.
  void regroup(std::shared_ptr<const HostGroup> group, bool current);
  /// The ranks of the job that are out of the newest epoch.
  [[nodiscard]] const std::vector<std::int32_t>& excluded() const noexcept { return excluded_; }

  /// Since when a recovery waits for the program to turn to it; nullopt: it does not.
  [[nodiscard]] std::optional<TimePoint> recovery_waits_since() const;

  // The program's thread, outside of runs and in them.

  Result<Epoch> wait_active();
  /// The epoch that is active, acknowledged or not, and the ranks of the job that are out of it.
  struct ActiveEpoch {
    std::uint32_t epoch = 0;
    std::vector<std::int32_t> excluded{};
  };
  /// Waits for it, except in a run, which a fault ends. Errors: world_reformed, what ended the
  /// world.
  Result<ActiveEpoch> wait_for_epoch();
  /// Waits until this epoch has ended, for so long at most.
  bool wait_for_end_of_epoch(std::uint32_t epoch, std::chrono::nanoseconds limit);
  /// A split, or another host collective in a run, is about to be asked for. Errors: those of
  /// wait_for_split().
  Result<void> begin_split();
  /// Waits for rank 0's answer. nullopt: a fault came first, in a run, where `gives_up`. Errors:
  /// what ended the world; world_reformed.
  std::optional<Result<void>> wait_for_split(const HostCall& call, bool gives_up);
  /// Until `step` is committed everywhere. Throws Exception: world_reformed, or what ended the
  /// world.
  void wait_stable(std::int64_t step);
  /// Until what all ranks have asked of others before the commit of this step is done. Throws
  /// Exception: world_reformed, or what ended the world.
  void wait_all_flushed(std::int64_t step);
  /// Whether the run ends with the commit that follows that of step `newest`; -1: the first one.
  [[nodiscard]] bool stopping_after(std::int64_t newest) const;
  /// The newest run, where it was left by an exception and has not ended on all ranks: its number
  /// and the active epoch. nullopt: there is none, or the world has ended.
  std::optional<std::pair<std::uint32_t, std::uint32_t>> wait_for_abandoned_run();
  /// Until that run or that epoch has ended.
  void wait_for_its_end(std::uint32_t epoch);
  /// The keeper of the run that is under way, or of the last one.
  [[nodiscard]] StateKeeper* keeper() const noexcept { return keeper_.get(); }
  /// What it has saved so far; any thread.
  [[nodiscard]] std::vector<SavedCheckpoint> saved() const;

  // The program's thread: RunLoop.

  /// Why this rank's GPU is to be left; nullopt: it is not.
  [[nodiscard]] std::optional<std::string> failing() const;
  /// The run takes faults into its hands. Its number in the program; nullopt: another one has not
  /// ended.
  std::optional<std::uint32_t> begin_run();
  /// The last step of the run that has ended last on all ranks; kNoEnd: it was left.
  [[nodiscard]] std::int64_t end_of_run() const;
  /// A recovery's order to go back to the last common commit.
  struct Restore {
    std::uint32_t round;
    std::int64_t step;
  };
  /// This rank makes its commit of this step.
  void begin_commit(std::int64_t step, TimePoint now);
  /// The world takes faults into its hands again. What was asked of the run and is not done.
  std::optional<Restore> end_run();
  /// The run cannot go on as it is: RunLoop::recover() says how.
  [[nodiscard]] bool interrupted() const;
  /// Until the world has ended, or a rank has left the run.
  void wait_for_end_of_run();
  /// The same; throws WorldStopped or RunLeft.
  [[noreturn]] void throw_end_of_run();
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
  /// Until the epoch that the program has acknowledged has ended. Throws WorldStopped.
  void wait_for_end_of_epoch();
  /// From now on this keeper, or none, hears of the run's commits. The one before.
  std::unique_ptr<StateKeeper> exchange_keeper(std::unique_ptr<StateKeeper> keeper);
  /// The members of the acknowledged epoch are not those that the program has turned to.
  [[nodiscard]] bool has_other_members() const { return acknowledged_.number != settled_; }
  /// The program turns to the members of the acknowledged epoch.
  void turn_to_members() { members_ = acknowledged_.group; }
  /// The program has made its share among them.
  void settle();
  /// The acknowledged epoch goes on without this rank.
  [[nodiscard]] bool watches() const noexcept { return acknowledged_.spectator(); }

 private:
  /// The members of the world.
  struct Membership {
    std::uint32_t number = 0;          ///< counts the changes
    const HostGroup* group = nullptr;  ///< nobody_ where this rank is out
    [[nodiscard]] bool spectator() const noexcept { return group->rank() < 0; }
  };

  // With mutex_ held.

  [[nodiscard]] bool has_new_epoch() const {
    return active_ && epoch_ != program_epoch_.load(std::memory_order_relaxed);
  }
  [[nodiscard]] bool is_interrupted() const {
    return !active_ || epoch_ != program_epoch_.load(std::memory_order_relaxed) || is_left();
  }
  /// A rank has left the newest run.
  [[nodiscard]] bool is_left() const { return left_ && left_->run + 1 == runs_; }
  void throw_if_ended() const;
  /// The program turns to the newest epoch.
  void acknowledge();
  /// The same, for a run: the gate is open again.
  void resume(const ProgramPlace& place);

  MpiSession* mpi_;
  Whereabouts* whereabouts_;
  Parts parts_;
  const HostGroup nobody_;
  std::atomic<std::uint32_t> program_epoch_{0};
  std::atomic<const HostGroup*> members_;  ///< written by the program's thread
  std::atomic<bool> attached_{false};      ///< the program is in run(): rollback is its business

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  bool active_ = false;
  std::uint32_t epoch_ = 0;
  std::optional<Error> stopped_;
  std::optional<std::uint64_t> standby_memory_;
  bool standby_ = false;              ///< this rank's is ready, in this epoch
  bool standby_world_formed_ = true;  ///< rank 0 knows; elsewhere, and if not wanted, true
  std::vector<Recovery> recoveries_;
  std::vector<HealthEvent> health_events_;
  std::optional<std::string> failing_;
  std::vector<std::pair<Phase, memory::FaultKind>> ordered_faults_;

  /// To the end, when all free them together: another member may still be about to use one.
  std::vector<std::shared_ptr<const HostGroup>> host_groups_;
  const HostGroup* forming_;            ///< of the newest regroup()
  std::vector<std::int32_t> excluded_;  ///< from the newest epoch
  Membership newest_, acknowledged_;    ///< of the newest epoch, of the acknowledged one
  std::uint32_t settled_ = 0;           ///< number of that which the program works with

  std::int64_t all_flushed_ = -1;
  std::int64_t stable_ = -1;
  struct Committing {
    std::int64_t step = -1;
    TimePoint since{};
  };
  Committing committing_;                       ///< the newest commit of this rank's
  std::uint64_t commits_ = 0;                   ///< that all ranks have
  std::optional<Error> commit_error_;           ///< why a commit of this run will never be stable
  std::uint32_t runs_ = 0, finished_runs_ = 0;  ///< begun here; ended on all ranks
  std::int64_t end_ = kNoEnd;                   ///< see end_of_run()
  struct Left {
    std::int64_t run;
    Error error;
  };
  std::optional<Left> left_;  ///< the newest run that a rank has left by an error of its own
  std::optional<Restore> restore_;
  std::optional<TimePoint> waits_since_;                      ///< see recovery_waits_since()
  std::optional<from_supervisor::SplitAgreed> split_answer_;  ///< the newest
  std::optional<std::int64_t> stopping_since_;                ///< see FollowerActions::stopping
  std::unique_ptr<StateKeeper> keeper_;  ///< replaced by the program's thread alone
};

}  // namespace troupe::rank_process
