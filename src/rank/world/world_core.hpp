#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include <troupe/actor/actor_system.hpp>
#include <troupe/world.hpp>

#include "rank/device/device_core.hpp"
#include "rank/device/flight/flight_collector.hpp"
#include "rank/device/recording/recorder.hpp"
#include "rank/net/session.hpp"
#include "rank/net/transport.hpp"
#include "rank/post/actor_post.hpp"
#include "rank/token/token_client.hpp"
#include "rank/world/collective_check.hpp"
#include "rank/world/collective_digests.hpp"
#include "rank/world/groups.hpp"
#include "rank/world/refused_calls.hpp"
#include "rank/world/rehearsal_options.hpp"
#include "rank/world/status/world_status.hpp"
#include "rank/world/whereabouts.hpp"

namespace troupe::rank_process {

class WorldActor;

/// What the runs of a program leave to those that follow. The program's thread.
struct RunHistory {
  /// By the folder of their states: with which step each run has ended that keeps its states there.
  /// The one that is under way is the last.
  std::map<std::string, Ends> ends;
  std::set<std::string> step_taken;  ///< folders of which a run has taken the state that was wanted
  std::int64_t restarted_from = -1;  ///< the step that the newest run began with, of a saved state
  std::int64_t from_disk = -1;   ///< the same if that state was in the folder that all ranks see
  std::int64_t from_nodes = -1;  ///< the same if it was in the nodes' folders
  std::set<std::filesystem::path>
      near_folders;        ///< of states on this node that this rank published
  std::string costs_told;  ///< of the state of the last run
  std::string io_told;     ///< how states go to disk, likewise
  bool stay_told = false;  ///< that a failing GPU stays
  bool rehearsed = false;  ///< any of them
};

/// What stands behind a World: its parts, which it opens and closes in order. What the world is at
/// is in WorldStatus, what is done about it in WorldActor.
class WorldCore {
 public:
  struct Options {
    std::chrono::nanoseconds phase_timeout = std::chrono::seconds(30);
    bool standby_world = true;  ///< standbys form a communicator ahead of time
    bool check_collectives = false;
    bool shrink = false;  ///< go on without a rank whose GPU cannot come back
    /// Behind a commit: a rank whose GPU says that it is failing leaves the world.
    bool leaves_failing = false;
    /// The same, and it goes on at a spare place.
    bool replaces_failing = false;
    double slow_factor = 1.5;   ///< see SlowRanks; 0: nobody looks for slow ranks
    bool leaves_slow = false;   ///< a slow rank's GPU is taken for one that is failing
    bool stop_on_loss = false;  ///< a run that such a loss ends, with a state on disk, was stopped
    /// How long a rank that is a spectator waits before it tries its GPU again, and between tries;
    /// 0: for ever.
    std::chrono::nanoseconds rejoin_after = std::chrono::seconds(60);
    /// Without progress for so long a rank asks who waits for whom; 0: never.
    std::chrono::nanoseconds stall_report = std::chrono::seconds(60);
    SaveOptions save;                                ///< of runs that have none of their own
    std::optional<RehearsalOptions> rehearsal = {};  ///< runs are rehearsed
    std::optional<double> guard = {};  ///< memory is guarded, with this budget: see MemoryGuard
    std::int64_t verify = 0;           ///< each so manieth interval of a run is done twice; 0: none
    TokenClient::Options tokens;
    FlightCollector* collector = nullptr;  ///< traces recoveries and commits; nullptr: nobody does
  };

  /// Forms the world: returns once it is active. All ranks call it. The device must have its
  /// listener set to `listener()`.
  static Result<std::shared_ptr<WorldCore>> open(ActorSystem& system, Session& mpi,
                                                 std::shared_ptr<DeviceCore> device,
                                                 Options options);
  /// Waits for all ranks to leave.
  ~WorldCore();

  [[nodiscard]] const Options& options() const noexcept { return options_; }
  [[nodiscard]] Session& mpi() const noexcept { return *mpi_; }
  [[nodiscard]] Whereabouts& whereabouts() noexcept { return whereabouts_; }
  [[nodiscard]] WorldStatus& status() noexcept { return status_; }
  [[nodiscard]] const WorldStatus& status() const noexcept { return status_; }
  [[nodiscard]] TokenClient& tokens() const noexcept { return *tokens_; }
  [[nodiscard]] ActorPost& actors() const noexcept { return *actors_; }
  [[nodiscard]] const ActorRef<WorldActor>& actor() const noexcept { return actor_; }
  [[nodiscard]] DeviceCore& device() const noexcept { return *device_; }
  [[nodiscard]] const std::shared_ptr<DeviceCore>& shared_device() const noexcept {
    return device_;
  }
  [[nodiscard]] const std::shared_ptr<Groups>& groups() const noexcept { return groups_; }
  [[nodiscard]] RunHistory& history() noexcept { return history_; }
  /// To the WorldActor of a rank of the job. Any thread.
  void send(int rank, const WorldMessage& message) { transport_->send(rank, encode(message)); }
  /// No message of an actor comes or goes any more. Waits for all ranks: until then this rank's
  /// actors serve the others.
  void leave_actors();
  // In the place of the device, for calls that cannot be: each is refused, see RefusedCalls.
  [[nodiscard]] Refusals& refusals() noexcept { return refusals_; }
  /// Digests of this rank's contributions to collectives, where they are noted.
  [[nodiscard]] CollectiveDigests& collective_digests() noexcept { return *collective_digests_; }
  /// Where the program's collectives go. Throws CollectiveException (invalid) where ranks may come
  /// back
  /// (--on-rank-loss respawn): before the first World::run nobody would repeat them.
  [[nodiscard]] detail::Submitter& collectives();
  [[nodiscard]] Epoch epoch() const noexcept { return status_.epochs().acknowledged(); }
  [[nodiscard]] const HostGroup& members() const noexcept { return status_.members().now(); }

  // The program's thread.

  /// Waits until all ranks of the communicator have come to this host collective: see SplitOrder.
  /// From then on none of them gives it up. Throws WorldStopped; in a run, which a fault ends,
  /// Exception (world_reformed), on all of these ranks or on none.
  void meet(const HostCall& call);
  /// There is a group that standbys may not have formed, or one of theirs was freed.
  void groups_changed();
  /// Until everything that this rank has submitted or asked of others has ended.
  void wait_done() { device_->port().outcomes().fence().reached.wait_ready(); }
  /// Runs that were left by an exception end on all ranks, so that the next one begins with nothing
  /// of theirs. Returns early if the world has ended.
  void end_abandoned_runs();
  void request_stop();

  // The WorldActor.

  /// The world has ended: so does what waits for it here.
  void stop(const Error& error);
  /// Makes the group of these ranks, on a thread of its own because that waits for all of them; the
  /// actor hears of it.
  void make_group(std::vector<int> ranks, std::uint32_t round);

 private:
  WorldCore(Session& mpi, std::shared_ptr<DeviceCore> device, Options options);
  Result<void> agree_on_call(const HostCall& call);
  [[nodiscard]] CollectiveCheck::Place place_in(std::uint32_t group) const;
  void open_actors(Scheduler& scheduler);

  Options options_;
  Session* mpi_;
  std::shared_ptr<DeviceCore> device_;
  Refusals refusals_;
  std::shared_ptr<Groups> groups_;
  Whereabouts whereabouts_;
  WorldStatus status_;
  RunHistory history_;
  std::shared_ptr<TokenClient> tokens_;
  std::shared_ptr<ActorPost> actors_;
  std::shared_ptr<std::unique_ptr<Transport>> actor_transport_;  ///< shared with what is sent late
  std::unique_ptr<Transport> transport_;
  std::unique_ptr<CollectiveCheck> check_;  ///< empty: not wanted
  std::optional<CollectiveDigests> collective_digests_;
  ActorRef<WorldActor> actor_;
  std::vector<std::thread> group_makers_;  ///< the actor's
};

/// To the rank that leads. Any thread.
inline void tell_leader(WorldCore& core, RankMessage message) {
  core.send(core.status().leader(), ForLeader{std::move(message)});
}

}  // namespace troupe::rank_process
