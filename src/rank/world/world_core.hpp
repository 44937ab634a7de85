#pragma once

#include <atomic>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include <troupe/actor/actor_system.hpp>
#include <troupe/checkpoint.hpp>
#include <troupe/lib/memory.hpp>
#include <troupe/world.hpp>

#include "rank/device/device_core.hpp"
#include "rank/device/recorder.hpp"
#include "rank/net/mpi_session.hpp"
#include "rank/net/mpi_transport.hpp"
#include "rank/post/actor_post.hpp"
#include "rank/protocol/member.hpp"
#include "rank/protocol/supervisor.hpp"
#include "rank/store/state_keeper.hpp"
#include "rank/token/token_router.hpp"
#include "rank/world/collective_check.hpp"
#include "rank/world/groups.hpp"
#include "rank/world/rehearsal_options.hpp"
#include "rank/world/whereabouts.hpp"

namespace troupe::rank_process {

class WorldActor;

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

/// Where the program's thread and the WorldActor meet: what the world is at, what the program is
/// asked to do.
class WorldCore {
 public:
  struct Options {
    std::chrono::nanoseconds phase_timeout = std::chrono::seconds(30);
    bool standby_world = true;  ///< standbys form a communicator ahead of time
    bool check_collectives = false;
    bool shrink = false;        ///< go on without a rank whose GPU cannot come back
    bool stop_on_loss = false;  ///< a run that such a loss ends, with a state on disk, was stopped
    /// How long a rank that is a spectator waits before it tries its GPU again, and between tries;
    /// 0: for ever.
    std::chrono::nanoseconds rejoin_after = std::chrono::seconds(60);
    /// Without progress for so long a rank asks who waits for whom; 0: never.
    std::chrono::nanoseconds stall_report = std::chrono::seconds(60);
    SaveOptions save;                                ///< of runs that have none of their own
    std::optional<RehearsalOptions> rehearsal = {};  ///< runs are rehearsed
    TokenRouter::Options tokens;
  };

  /// Forms the world: returns once it is active. All ranks call it. The device must have its
  /// listener set to `listener()`.
  static Result<std::shared_ptr<WorldCore>> open(ActorSystem& system, MpiSession& mpi,
                                                 std::shared_ptr<DeviceCore> device,
                                                 Options options);
  /// Waits for all ranks to leave.
  ~WorldCore();

  [[nodiscard]] MpiSession& mpi() const noexcept { return *mpi_; }
  [[nodiscard]] Whereabouts& whereabouts() noexcept { return whereabouts_; }
  [[nodiscard]] TokenRouter& tokens() const noexcept { return *tokens_; }
  [[nodiscard]] ActorPost& actors() const noexcept { return *actors_; }
  [[nodiscard]] DeviceCore& device() const noexcept { return *device_; }
  [[nodiscard]] const std::shared_ptr<Groups>& groups() const noexcept { return groups_; }
  /// No message of an actor comes or goes any more. Waits for all ranks: until then this rank's
  /// actors serve the others.
  void leave_actors();
  /// This thread's recording; nullptr: it does not record.
  [[nodiscard]] Recorder* recorder() const noexcept { return Recorder::of(device_->port()); }
  /// Where the program's collectives go.
  [[nodiscard]] detail::Submitter& collectives() noexcept {
    return check_ ? static_cast<detail::Submitter&>(*check_) : device_->port();
  }
  [[nodiscard]] Epoch epoch() const noexcept {
    return Epoch(program_epoch_.load(std::memory_order_acquire));
  }
  /// The ranks that the program has turned to, of an epoch that it has acknowledged.
  [[nodiscard]] const HostGroup& members() const noexcept { return *members_.load(); }
  /// Tells the WorldActor of the device's fate; any thread.
  void device_event(DeviceEvent event);

  // The program's thread.

  Result<Epoch> wait_active();
  /// The epoch that is active, acknowledged or not, and the ranks of the job that are out of it.
  struct ActiveEpoch {
    std::uint32_t epoch = 0;
    std::vector<std::int32_t> excluded{};
  };
  /// Waits for it, but in a run, which a fault ends. Errors: world_reformed, what ended the world.
  Result<ActiveEpoch> wait_for_epoch();
  /// Waits until this epoch has ended, for so long at most.
  bool wait_for_end_of_epoch(std::uint32_t epoch, std::chrono::nanoseconds limit);
  /// Waits until all ranks of the communicator have come to this split: see SplitOrder. Errors:
  /// what ended the world; in a run, which a fault ends, world_reformed.
  Result<void> agree_on_split(const HostCall& call);
  [[nodiscard]] bool in_run() const noexcept { return attached_; }
  [[nodiscard]] std::chrono::nanoseconds phase_timeout() const noexcept { return phase_timeout_; }
  /// There is a group that standbys may not have formed, or one of theirs was freed.
  void groups_changed();
  /// Until everything that this rank has submitted or asked of others has ended.
  void wait_done() { device_->port().fence().reached.wait_ready(); }
  /// Until `step` is committed everywhere. Throws Exception: world_reformed, or what ended the
  /// world.
  void wait_stable(std::int64_t step);
  /// Until what all ranks have asked of others before the commit of this step is done. Throws
  /// Exception: world_reformed, or what ended the world.
  void wait_all_flushed(std::int64_t step);
  /// Runs that were left by an exception end on all ranks, so that the next one begins with nothing
  /// of theirs. Returns early if the world has ended.
  void end_abandoned_runs();
  /// Whether the run ends with the commit that follows that of step `newest`; -1: the first one.
  [[nodiscard]] bool stopping_after(std::int64_t newest) const;
  [[nodiscard]] std::vector<Recovery> recoveries() const;
  void inject_in_phase(memory::FaultKind kind, Phase phase);
  void request_stop();
  [[nodiscard]] const SaveOptions& save_options() const noexcept { return save_options_; }
  /// The run that is under way, or the last one.
  [[nodiscard]] const StateKeeper* keeper() const noexcept { return keeper_.get(); }
  [[nodiscard]] std::int64_t restarted_from() const noexcept { return restarted_from_; }
  [[nodiscard]] bool standby_ready() const;
  /// This rank's own, in this epoch.
  [[nodiscard]] bool has_standby() const {
    const std::lock_guard lock(mutex_);
    return active_ && standby_;
  }
  [[nodiscard]] std::optional<std::uint64_t> standby_memory() const {
    const std::lock_guard lock(mutex_);
    return standby_memory_;
  }

 private:
  friend class WorldActor;
  friend class Rehearsal;
  friend class RunLoop;

  /// Who is in the world.
  struct Membership {
    std::uint32_t number = 0;          ///< counts the changes
    const HostGroup* group = nullptr;  ///< nobody_ where this rank is out
    [[nodiscard]] bool spectator() const noexcept { return group->rank() < 0; }
  };

  [[nodiscard]] CollectiveCheck::Place place_in(std::uint32_t group) const;
  void open_actors(Scheduler& scheduler);
  WorldCore(MpiSession& mpi, std::shared_ptr<DeviceCore> device)
      : mpi_(&mpi),
        device_(std::move(device)),
        groups_(std::make_shared<Groups>(mpi)),
        members_(&mpi.everyone()),
        forming_(&mpi.everyone()),
        newest_{0, &mpi.everyone()},
        acknowledged_(newest_) {}

  // The WorldActor's side.
  void close();
  void ask_restore(std::uint32_t round, std::int64_t step);
  void activate(std::uint32_t epoch, std::int64_t stable,
                const std::vector<RecoveryReport>& reports,
                const std::vector<std::int32_t>& excluded);
  void set_all_flushed(std::int64_t step);
  void set_stable(std::int64_t step);
  void set_stopping(std::int64_t since);
  void set_finished();
  /// The run of this number has ended, for a rank has left it; and so has its epoch.
  void set_left(std::int64_t run, int rank, const Error& error);
  void fail_commit(const Error& error);
  void stop(const Error& error);
  struct SplitAnswer {
    std::uint32_t communicator = 0;
    std::uint64_t number = 0;
    Errc code{};
  };
  void set_split_answer(const SplitAnswer& answer);
  /// The job ends without these ranks, which do not answer; at once if it is said `again`.
  static void forsake(const Error& error, const std::vector<int>& ranks, bool again);
  std::optional<memory::FaultKind> take_fault(Phase phase);
  void set_standby(bool ready);
  void set_standby_world(bool formed);
  void set_standby_memory(std::uint64_t bytes) {
    const std::lock_guard lock(mutex_);
    standby_memory_ = bytes;
  }
  /// Makes the group of these ranks, on a thread of its own because that waits for all of them; the
  /// actor hears of it.
  void make_group(std::vector<int> ranks, std::uint32_t round);
  /// The members of the epoch that is being formed, nullptr: all ranks; or, if that is not
  /// `current` any more, a group to be kept, because to free it waits for all of its ranks.
  void regroup(std::shared_ptr<const HostGroup> group, bool current);

  // The program's thread.

  /// Why the run that is under way cannot go on: it is for RunLoop::recover() to see what to do.
  /// With mutex_ held.
  [[nodiscard]] bool is_interrupted() const {
    return !active_ || epoch_ != program_epoch_.load() || is_left();
  }
  /// A rank has left the newest run. With mutex_ held.
  [[nodiscard]] bool is_left() const { return left_ && left_->run + 1 == runs_; }
  /// The program turns to the newest epoch. With mutex_ held.
  void acknowledge();
  /// The members of the acknowledged epoch are not those that the program has turned to.
  [[nodiscard]] bool has_other_members() const { return acknowledged_.number != settled_; }
  /// The program turns to the members of the acknowledged epoch.
  void turn_to_members() { members_ = acknowledged_.group; }
  /// The program has made its share among them. With mutex_ held.
  void settle() { settled_ = acknowledged_.number; }
  /// The acknowledged epoch goes on without this rank.
  [[nodiscard]] bool watches() const noexcept { return acknowledged_.spectator(); }

  MpiSession* mpi_;
  std::shared_ptr<DeviceCore> device_;
  std::shared_ptr<Groups> groups_;
  Whereabouts whereabouts_;
  std::shared_ptr<TokenRouter> tokens_;
  std::shared_ptr<ActorPost> actors_;
  std::shared_ptr<std::unique_ptr<MpiTransport>>
      actor_transport_;  ///< shared with what is sent late
  std::unique_ptr<MpiTransport> transport_;
  std::unique_ptr<CollectiveCheck> check_;  ///< empty: not wanted
  ActorRef<WorldActor> actor_;
  std::atomic<std::uint32_t> program_epoch_{0};
  GpuRef<std::int64_t> probe_;  ///< for the verification of a new communicator
  PinnedBuffer<std::int64_t> probed_;
  SaveOptions save_options_;
  std::optional<RehearsalOptions> rehearsal_;
  bool stop_on_loss_ = false;
  bool shrink_ = false;
  std::chrono::nanoseconds phase_timeout_{};
  const HostGroup nobody_;
  std::atomic<const HostGroup*> members_;  ///< written by the program's thread
  std::set<std::string> restarted_names_;  ///< of runs that have looked for a state to go on from
  std::int64_t restarted_from_ = -1;
  std::string costs_told_;  ///< of the state of the last run

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  bool active_ = false;
  std::optional<std::uint64_t> standby_memory_;
  bool standby_ = false;              ///< this rank's is ready, in this epoch
  bool standby_world_formed_ = true;  ///< rank 0 knows; elsewhere, and if not wanted, true
  std::uint32_t epoch_ = 0;
  /// To the end, when all free them together: another member may still be about to use one.
  std::vector<std::shared_ptr<const HostGroup>> host_groups_;
  const HostGroup* forming_;               ///< of the newest regroup()
  std::vector<std::thread> group_makers_;  ///< the actor's
  std::vector<std::int32_t> excluded_;     ///< from the newest epoch
  Membership newest_, acknowledged_;       ///< of the newest epoch, of the acknowledged one
  std::uint32_t settled_ = 0;              ///< number of that which the program works with
  std::int64_t all_flushed_ = -1;
  std::int64_t stable_ = -1;
  std::optional<Error> commit_error_;  ///< why a commit of this run will never be stable
  std::atomic<bool> attached_{false};  ///< the program is in run(): rollback is its business
  std::uint32_t runs_ = 0, finished_runs_ = 0;  ///< begun here; ended on all ranks
  struct Left {
    std::int64_t run;
    Error error;
  };
  std::optional<Left> left_;  ///< the newest run that a rank has left by an error of its own
  std::int64_t at_step_ = -1;
  struct Restore {
    std::uint32_t round;
    std::int64_t step;
  };
  std::optional<Restore> restore_;
  std::optional<Error> stopped_;
  std::optional<SplitAnswer> split_answer_;     ///< the newest
  std::optional<std::int64_t> stopping_since_;  ///< see MemberActions::stopping
  std::unique_ptr<StateKeeper> keeper_;         ///< replaced by the program's thread alone
  std::vector<Recovery> recoveries_;
  std::vector<std::pair<Phase, memory::FaultKind>> ordered_faults_;
};

}  // namespace troupe::rank_process
