#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <troupe/bundle.hpp>
#include <troupe/checkpoint.hpp>
#include <troupe/corruption.hpp>
#include <troupe/device.hpp>
#include <troupe/group.hpp>
#include <troupe/ids.hpp>
#include <troupe/recovery.hpp>
#include <troupe/remote_device.hpp>
#include <troupe/saved_state.hpp>
#include <troupe/timeline.hpp>

namespace troupe {

namespace rank_process {
class WorldCore;
}
namespace detail {
class PublishedActor;
class RemoteAddress;
template <class A>
class PublishedActorOf;
}  // namespace detail
template <class A>
class ActorRef;  // #include <troupe/actor.hpp>
template <class A>
class RemoteActor;  // #include <troupe/actor.hpp>

/// What a step of a run tells.
enum class Step { again, done };

/// How World::run works: where it begins, when it commits, and what it does when ranks change.
struct RunOptions {
  std::int64_t first_step = 0;
  std::int64_t commit_every = 50;  ///< steps between commits; at least 1
  /// How many steps one call does: step(i) is called for i = first_step, first_step + stride, …
  /// Every number of a step counts single ones, also those in options (--checkpoint-every), folders
  /// and lines of log. `first_step`, `commit_every` and SaveOptions::every must be multiples of it,
  /// else World::run throws CollectiveException (invalid).
  std::int64_t stride = 1;
  /// Makes the state that the run begins with, and adds what belongs to it to the checkpoint, which
  /// is empty. Called on all members; a fault in the meantime ends the call and brings another one:
  /// host collectives in it throw then, as in steps (see Collectives). None: it is there already.
  std::function<void()> prepare = {};
  /// Where the state is kept beside GPU memory. None: as the program's options say
  /// (--checkpoint-dir and so on).
  std::optional<SaveOptions> save = {};
  /// Takes over a state that was saved by another number of ranks: sets the buffers and values of
  /// the checkpoint to this rank's share of it. All ranks are called; exceptions end the run.
  std::function<void(const SavedState&)> redistribute = {};
  /// The world has other members than before (--on-loss shrink, and a rank that is back): makes the
  /// program's share anew for World::rank() and size() of now, as it was before the first step, and
  /// adds what belongs to the state to the checkpoint, which is empty again. Called on all members;
  /// then the newest state that is complete anywhere is loaded or, if as many ranks have not saved
  /// it, given to `redistribute`. A fault in the meantime ends the call and brings another one, as
  /// that of `prepare`. Without it the run of a world that shrinks ends with Errc::requeue.
  std::function<void()> resized = {};
  /// Each step is recorded (see Device::record) and then run by one command, and where it records
  /// the same as one of the last ones, that is run again: on a GPU as a CUDA graph. A step must
  /// then do nothing that cannot be recorded, such as to wait for a result, and is the same on all
  /// ranks as far as collectives go; if it submits nothing, nothing is run.
  bool record = false;
  /// What a rank does while it is a spectator: called again and again, and should return soon, for
  /// in between it is seen whether the rank is back in the world or the run has ended. None: it
  /// sleeps.
  std::function<void()> spectate = {};
};

/// All ranks and their communicator.
///
/// The world lives in epochs: when a device host is lost anywhere, its communicator is re-formed
/// and a new epoch begins. A collective belongs to the epoch that the program has last
/// acknowledged, by starting, by wait_active() or inside run(); one of an ended epoch fails with
/// Errc::world_reformed.
class World : public Collectives {
 public:
  /// This rank's GPU could not come back, and the world goes on without it (on-loss = shrink).
  [[nodiscard]] bool spectator() const;
  [[nodiscard]] int local_rank() const;  ///< among the ranks of this node
  [[nodiscard]] int local_size() const;

  // Buffers of any rank, by token. Transfers are operations in program order on both sides: what
  // is submitted here later and names the destination (fetch) waits in its submission until the
  // transfer is under way, and may write the source (put) at once; the owner's side reads the
  // source as it was when the request came, whatever is written to it meanwhile, and likewise
  // makes its own later commands on a destination wait. Errors: Errc::stale (the token's buffer
  // was freed, or lost with its device host), Errc::invalid (the token does not fit its buffer;
  // lengths or dtypes differ), Errc::peer_lost, Errc::timeout, and what ends the commands of the
  // device hosts. A destination that may hold part of a transfer that failed is stale.
  // What is asked of another rank belongs to the epoch that the program has acknowledged: it fails
  // with Errc::world_reformed once that has ended anywhere, and waits for an owner whose program
  // has yet to turn to it (inside run(), or by wait_active()). Inside run() what is asked before a
  // commit is part of the owner's commit of that step too, and what is asked behind it is not.

  /// destination = what the token names, with as many elements.
  template <Element T>
  Future<void> fetch(const GpuToken& token, const GpuRef<T>& destination) {
    return fetch_range(token, dtype_of<T>, destination.operand());
  }
  /// As above, into a new buffer.
  template <Element T>
  Future<GpuRef<T>> fetch(const GpuToken& token) {
    const auto refuse = [this](Error error) {
      return device_.submitter().refuse(std::move(error)).then([] { return GpuRef<T>(); });
    };
    if (token.length > kMaxTokenLength)
      return refuse({Errc::invalid, 0, "fetch: the token's length is impossible"});
    auto fresh = device_.try_alloc<T>(static_cast<std::int64_t>(token.length));
    if (!fresh) return refuse(fresh.error());
    return detail::then_at_once(fetch(token, *fresh), [buffer = *fresh] { return buffer; });
  }
  /// What the token names = source.
  template <Element T>
  Future<void> put(const GpuRef<T>& source, const GpuToken& token) {
    return put_range(source.operand(), dtype_of<T>, token);
  }
  /// Keeps the token's buffer alive; see TokenLease.
  Future<TokenLease> hold(const GpuToken& token);
  /// Maps the buffer that the token names: commands of this rank's device read it where it is, and
  /// its owner keeps it meanwhile. See MappedRef. Errors: unsupported (its rank is on another host,
  /// its GPU cannot be reached, --token-path is network or nccl), stale, invalid, peer_lost,
  /// world_reformed.
  template <Element T>
  Future<MappedRef<T>> map(const GpuToken& token) {
    return detail::then_at_once(map_range(token, dtype_of<T>),
                                [](const auto& range) { return MappedRef<T>(range); });
  }
  /// The device of a rank, for library calls on buffers that live there.
  [[nodiscard]] RemoteDevice device(Rank rank);

  // Actors of any rank, by name: see <troupe/actor.hpp> and docs/actors.md. Any thread.

  /// From now on other ranks reach this actor, which may be of any system of this process, by this
  /// name, until it ends. Errors: invalid (another living actor has the name here), stopped.
  template <class A>
  Result<void> publish(const std::string& name, const ActorRef<A>& actor) {
    return publish_actor(name, std::make_shared<detail::PublishedActorOf<A>>(actor));
  }
  /// The actor that `rank` has published by this name, or will have by the time a message arrives.
  /// `rank` is a rank of the world as the program knows it at this call: whoever it is stays
  /// meant, however the members are numbered later. It may be this rank.
  template <class A>
  [[nodiscard]] RemoteActor<A> actor(const std::string& name, Rank rank) {
    return RemoteActor<A>(actor_address(name, rank, A::MessageSet::number()));
  }

  /// Waits until the world is active and acknowledges its epoch: what an application that handles
  /// faults itself calls after world_reformed or device_lost, on all ranks: from then on the
  /// others' requests of that epoch are served. Errors: what ended the world.
  Result<Epoch> wait_active();

  /// Runs step(i) for i = first_step, first_step + 1, … until it answers Step::done, on all ranks
  /// alike, and commits `checkpoint` before the first and after every commit_every-th step. When a
  /// device is lost anywhere all ranks go back to the last common commit and on from there;
  /// references in the checkpoint are valid again then. Inside a step, device_lost, world_reformed
  /// and stale errors may pass through as exceptions: they end the step, not the run, unless they
  /// come again without a fault. What functions of futures, actors and threads submit for a step
  /// goes back with it: see Timeline.
  ///
  /// What the run begins with must be whole: what was submitted before it and has failed, or was
  /// undone by a fault that wait_active() has not acknowledged, is an error on all ranks. A fault
  /// in RunOptions::prepare is overcome.
  ///
  /// With a folder to save to (options.save) the run first looks there for a state to go on from:
  /// its step takes the place of first_step. Of several runs in one program with the same folder
  /// and name each has states of its own, by its number among them. Commits of every save.every-th
  /// step are written to disk beside the computation; the next of them waits until the one before
  /// is there.
  ///
  /// With --on-loss shrink the run goes on without a rank whose device cannot come back, as
  /// RunOptions::resized says. On that rank, a spectator from then on, run() returns when the
  /// others have ended theirs, or takes part again when the device is back.
  ///
  /// What a step throws of its own ends the run on all ranks, and the epoch with it, for what they
  /// have submitted by then differs: the others throw a CollectiveException of the same code that
  /// names the rank (peer_lost where it was no Exception). All do so once the next epoch has begun,
  /// as if wait_active() had been called.
  ///
  /// All ranks end a run with the same step: others end the world (invalid). One run at a time:
  /// within another one, or beside it, Exception (invalid).
  ///
  /// Throws Exception with what cannot be recovered; budget_exhausted and requeue mean that the
  /// program may be run again, and say from which step.
  void run(Checkpoint& checkpoint, const std::function<Step(std::int64_t step)>& step,
           const RunOptions& options = {});

  /// The timeline that the calling thread works for: within a step that of the steps since the last
  /// commit, elsewhere none. The program hands it to its own threads (see Timeline::Scope).
  [[nodiscard]] static Timeline timeline() noexcept { return Timeline::of_this_thread(); }

  // States beside GPU memory. run() does all this by itself.

  /// What the program's options say (--checkpoint-dir, --checkpoint-every, --restart, --partner).
  [[nodiscard]] const SaveOptions& save_options() const;
  /// The saved state that `options` ask for, in the folder that all ranks see or on the nodes
  /// (SaveOptions::local), of the newest run that has left one in the former; nullopt: there is
  /// none. All ranks call it and get the same. Errors: io (none is good, with the reasons; none of
  /// that step), invalid (it is another problem's, see SaveOptions::fingerprint).
  [[nodiscard]] Result<std::optional<SavedState>> find_state(const SaveOptions& options);
  /// The state that was last complete in the memory of partners. All ranks call it. Errors: invalid
  /// (there is none).
  [[nodiscard]] Result<SavedState> partner_state();
  /// Loads this rank's part of a state that as many ranks have saved. All ranks call it; throws on
  /// all with the error of the lowest one that has any: invalid (it is not this program's), io, ….
  void load(const SavedState& state, Checkpoint& checkpoint);
  /// Asks for the end of run(): all ranks end it at the same commit, the second from now at the
  /// latest, write the state to disk and throw Errc::requeue, or Errc::stopped if there is no state
  /// on disk to go on from. Any thread of any rank. What the signal of --stop-signal does.
  void request_stop();
  /// The step of the saved state that the last run went on from; -1: none.
  [[nodiscard]] std::int64_t restarted_from() const;
  /// What the last run has brought to disk, the same on all ranks once it has ended.
  [[nodiscard]] std::vector<SavedCheckpoint> saved_checkpoints() const;

  /// The faults overcome so far, the same on all ranks.
  [[nodiscard]] std::vector<Recovery> recoveries() const;
  /// What the GPUs of the job have said of their health, each thing once, in the order in which it
  /// was heard; faults of programs are not among it. All ranks hear of it, spectators too. Any
  /// thread.
  [[nodiscard]] std::vector<HealthEvent> health_events() const;
  /// The wrong numbers that were found so far (--verify, Checkpoint::add_replicated), the same on
  /// all ranks that were members then. Any thread.
  [[nodiscard]] std::vector<Corruption> corruptions() const;
  /// Orders a fault of this rank's device host for when it enters that phase (one of
  /// kRecoveryPhases) of a recovery: for tests and drills. False if there is no such phase.
  bool inject_in_phase(memory::FaultKind kind, const std::string& phase);
  /// Likewise the end of this rank's process.
  bool inject_death_in_phase(RankDeath death, const std::string& phase);
  /// How often the process of this rank has died and another one was started in its place
  /// (--on-rank-loss respawn).
  [[nodiscard]] int deaths_of_rank() const;

  /// Whether this rank is ready for the quick way over a loss: its standby is up, and on rank 0,
  /// with --standby world, the communicator of all standbys too. False while the world re-forms,
  /// and always with --standby off. The quick way is open when all ranks say so.
  [[nodiscard]] bool standby_ready() const;
  /// Until all ranks are ready; all of them call it, not with --standby off. Throws
  /// CollectiveException (timeout) on all of them once `limit` has passed.
  void wait_for_standbys(std::chrono::nanoseconds limit);
  /// Bytes of the device's memory (the host's, with the CPU engine) that this rank's first standby
  /// took, with its communicator once that was formed; nullopt: not known, or no standby. Measured
  /// as what was free before and after, so what other processes took meanwhile counts too.
  [[nodiscard]] std::optional<std::uint64_t> standby_memory() const;

  World(Device device, std::shared_ptr<rank_process::WorldCore> core)
      : Collectives(std::move(core)), device_(std::move(device)) {}

 private:
  static constexpr std::uint64_t kMaxTokenLength = std::uint64_t{1} << 48;
  Future<void> fetch_range(const GpuToken& token, DType dtype, const Operand& destination);
  Future<void> put_range(const Operand& source, DType dtype, const GpuToken& token);
  Future<detail::MappedRange> map_range(const GpuToken& token, DType dtype);
  /// The rank in the job of a rank of the world; -1: there is none.
  [[nodiscard]] int known_job_rank(Rank rank) const;
  Result<void> publish_actor(const std::string& name,
                             std::shared_ptr<detail::PublishedActor> actor);
  std::shared_ptr<detail::RemoteAddress> actor_address(const std::string& name, Rank rank,
                                                       std::uint64_t message_set);
  Device device_;
};

}  // namespace troupe
