#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <utility>
#include <vector>

#include <troupe/checkpoint.hpp>
#include <troupe/world.hpp>

#include "rank/device/recording/step_recorder.hpp"
#include "rank/run/rehearsal.hpp"
#include "rank/store/state_folder.hpp"
#include "rank/store/state_keeper.hpp"
#include "rank/world/world_core.hpp"

namespace troupe::rank_process {

/// One World::run: steps and commits, the way back to the last common commit after a fault, and the
/// state beside GPU memory that it begins with and leaves. Lives on the program's thread.
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
  /// The run takes faults into its hands. What became of all that was submitted before.
  Result<void> attach();
  /// The world takes faults into its hands again, also in the middle of a re-formation.
  void detach();

  // run_timeline.cpp: what other threads do for the run's steps

  using TimelineEnd = detail::TimelineState::Standing;
  using TimelinePtr = detail::StatePtr<detail::TimelineState>;
  /// Begins a new timeline for the work from here on; the one so far ends with standing `before`.
  void turn_timeline(TimelineEnd before);
  void end_timeline(TimelineEnd before);
  /// Waits for what other threads do for the steps so far: functions given to futures, messages to
  /// actors, scopes. Not for functions that wait for a promise of the program's. May throw
  /// kReformed.
  void settle_timeline();
  /// An error has ended a step as if by a fault. If the epoch goes on, it ends now; the second time
  /// without a commit in between the error ends the run: throws it.
  void end_epoch_by(const Error& error);
  /// Throws on all members if anything has failed on any of them, or was lost, that the state of
  /// the run's begin may be made of.
  void check_begin(const Result<void>& before);
  /// Has the program make that state, where it does so within the run: as often as faults undo it.
  void prepare();
  [[nodiscard]] Result<void> check_options() const;
  void check_save_options();
  /// The ends of the runs with the same folder of states; of this one and of those before it.
  [[nodiscard]] Ends& ends();
  [[nodiscard]] Ends ends_before();
  /// How states go to disk and come from there. All members call it.
  void choose_io();
  /// Whether there is room for the states; and what they cost, told once.
  void check_room();
  /// Whether the state is taken out of GPU memory at all.
  [[nodiscard]] bool keeps() const;
  /// Whether pinned memory of its size is needed for that.
  [[nodiscard]] bool pins() const;
  /// The members' keepers of the state, which go on from what those before them have.
  void begin_keeping();
  void loop();
  /// SaveOptions::restart, as far as this run goes: a step that is wanted is one of the newest run
  /// that has left a state. All members call it.
  [[nodiscard]] std::int64_t wanted_state();
  /// Loads what was saved, if anything was and this run is to go on from it.
  void restart();
  Result<void> load(const SavedState& state);
  /// The part that this rank has saved, or one that has its place; tells how fast that was.
  Result<void> load_own_part(const SavedState& state);
  /// The program's step, or what it records.
  Step call_step(std::int64_t i);
  void attempt();
  /// True if the step that comes next follows a commit.
  [[nodiscard]] bool commit_is_due(std::int64_t step) const;
  void commit(std::int64_t step);
  /// What other ranks have asked of this one before their commits of this step is part of its own.
  /// Only ranks whose buffers others can name wait for that. May throw kReformed.
  void flush(std::int64_t step, std::uint32_t epoch);
  /// Behind the commit of this step: a rank whose GPU says that it is failing asks to leave the
  /// world, once the commit is everywhere, and with partners, and waits for the end of the epoch.
  /// May throw kReformed.
  void leave_if_failing(std::int64_t step);
  /// Waits until nothing is under way to disk or to a partner.
  void settle_keeper();
  /// Tells the other ranks that this one leaves the run by an error that they do not know of.
  void leave(const Error& error);
  /// A rank has left the run, this one or another: the program goes on in the epoch that follows.
  void follow();
  /// Throws what the steps have left behind that nobody has taken.
  void throw_error();
  /// Until everything that was submitted so far has ended. Errors: of the first of it that failed
  /// or was lost; world_reformed.
  [[nodiscard]] Result<void> settle_commands();
  /// Ends the run on all ranks together, once all that it has submitted has ended well.
  /// `step`: the last that was done, or that of the last commit.
  void finish(std::int64_t step);
  /// After the commit of a run that was asked to stop: throws requeue.
  [[noreturn]] void stop(std::int64_t step);
  /// The error of a world that has ended, with what is left to go on from.
  [[nodiscard]] Error rescue(const Error& error);
  /// Takes part in the recovery that is under way, or in several; the step to go on from, -1: the
  /// first.
  std::int64_t recover();
  /// Where in the program the commit of `step` was; -1: where the run began.
  [[nodiscard]] ProgramPlace place_of(std::int64_t step) const;
  void forget_commits_after(std::int64_t step);
  void restore(const WorldStatus::Restore& order, std::optional<std::int64_t>& restored);
  /// The world is not in the epoch that the program has acknowledged, or a rank has left the run.
  [[nodiscard]] bool interrupted() const;
  /// The world has ended, or is about to: on all ranks alike.
  static bool ends_the_world(Errc code) {
    return code == Errc::budget_exhausted || code == Errc::device_failed;
  }
  /// What is overcome by going back to the last commit.
  [[nodiscard]] bool is_by_fault(Errc code) const;
  /// The error of the exception that is being handled.
  [[nodiscard]] static Error thrown();

  // resize.cpp: a world that goes on with other members

  static constexpr std::int64_t kTheEnd = -1;  ///< in the place of an epoch: the world has ended
  /// What a rank says when all meet, and what comes of it for all.
  struct Standing {
    std::int64_t epoch = kTheEnd;  ///< that it has acknowledged
    /// The step of its commit in GPU memory; -1: none that can be had; kAnyStep: it was no member.
    std::int64_t commit = -1;
    std::int64_t restarted = 0;  ///< it has looked for a state to begin with
  };

  /// Turns all ranks of the job to the members of the acknowledged epoch, together, and deals the
  /// state out to them. Throws world_reformed if a newer epoch is to come first.
  void resize();
  /// All ranks of the job say where they are. nullopt: some have not yet seen this epoch. Throws
  /// world_reformed (others have seen a newer one), WorldStopped.
  std::optional<Standing> meet();
  void meet_at_the_end();
  /// Success, or the error of the lowest rank that has one. Throws world_reformed on all ranks if a
  /// fault came in between on any of them.
  [[nodiscard]] Result<void> agree(const Result<void>& outcome) const;
  /// Throws what agree() returns.
  void require(const Result<void>& outcome) const;
  /// What the old members have goes where it outlives their keepers: the state of the commit of
  /// this step, which all of them have in GPU memory; -1: none. Where that cannot be, what partners
  /// or the disk have must do.
  void secure(std::int64_t commit);
  /// Has the program make its share.
  Result<void> make_share(const std::function<void()>& make);
  /// The newest that is complete in memory or on disk; nullopt: none.
  std::optional<SavedState> newest_state();
  Result<void> deal_out(const std::optional<SavedState>& state);
  /// The newest step that this run knows to be on disk, on any rank; -1: none.
  [[nodiscard]] std::int64_t newest_on_disk() const;
  [[nodiscard]] HeldPart held() const { return keeper_ != nullptr ? keeper_->held() : HeldPart{}; }
  /// The time of a rank that is out of the world. True: the run has ended; false: a new epoch
  /// began.
  bool watch();

  WorldCore* core_;
  Checkpoint* checkpoint_;
  const StepFunction* step_;
  const RunOptions* options_;
  std::optional<StepRecorder> steps_;  ///< of a run that records them
  SaveOptions save_;
  StateIo io_ = StateIo::pinned;  ///< direct or pinned
  Generations states_{std::filesystem::path()};
  FolderLock folder_lock_;         ///< of the first member
  StateKeeper* keeper_ = nullptr;  ///< nullptr: the state stays in GPU memory
  std::optional<Rehearsal> rehearsal_;
  bool preparing_ = false;    ///< the ranks meet before each try of prepare()
  bool restarted_ = false;    ///< restart() is done
  std::int64_t first_;        ///< the step that the run began with
  std::int64_t from_;         ///< the step to go on from
  std::int64_t at_ = -1;      ///< the step that is under way, or was last
  bool stopping_ = false;     ///< the newest commit is the last
  std::uint32_t number_ = 0;  ///< of this run in the program
  bool attached_ = false;
  TimelinePtr timeline_;                      ///< of the steps that are under way; the port has it
  detail::TimelineState* outside_ = nullptr;  ///< what the thread works for outside of the run
  std::optional<std::int64_t> ended_epoch_at_;  ///< newest commit when end_epoch_by() last did so
  ProgramPlace began_;                          ///< the place of the run's begin in the program
  struct Committed {
    std::int64_t step;
    ProgramPlace place;
    TimelinePtr before;  ///< of the steps that it commits
  };
  std::vector<Committed> committed_;  ///< the last two
  bool finished_ = false;             ///< on all ranks
  bool secured_ = false;              ///< see secure(); until resize() has succeeded
  bool met_at_the_end_ = false;
};

}  // namespace troupe::rank_process
