#pragma once

#include <cstdint>
#include <optional>

#include <troupe/checkpoint.hpp>
#include <troupe/saved_state.hpp>
#include <troupe/world.hpp>

#include "rank/run/inheritance.hpp"
#include "rank/run/near_folder.hpp"
#include "rank/store/commit_ledger.hpp"
#include "rank/store/generations.hpp"
#include "rank/store/state_folder.hpp"
#include "rank/store/state_keeper.hpp"
#include "rank/world/world_core.hpp"

namespace troupe::rank_process {

/// The states of a run outside of GPU memory: on disk, and in the memory of partners. The program's
/// thread; all members call what is said to be for all of them, and get the same outcome.
class RunStates {
 public:
  /// Everything outlives this.
  RunStates(WorldCore& core, Checkpoint& checkpoint, const RunOptions& options);

  [[nodiscard]] const SaveOptions& options() const noexcept { return save_; }
  /// States go to disk.
  [[nodiscard]] bool saves() const noexcept { return !save_.directory.empty(); }
  /// Where the commits are written down for a process that comes after this one.
  [[nodiscard]] const std::shared_ptr<CommitLedger>& ledger() const noexcept { return ledger_; }
  /// nullptr: the state stays in GPU memory.
  [[nodiscard]] StateKeeper* keeper() const noexcept { return keeper_; }

  // The begin of a run.

  /// Enters the run among those with this folder; and with which step it has ended.
  void enter_run();
  void leave_run(std::int64_t end);
  /// All members: checks the options, and takes the folder. Throws CollectiveException.
  void open();
  /// On a rank that is no member: it may be one later, or what is left to write the state.
  void watch_folder();
  /// On a rank that takes part in a run which others have begun: likewise; and as the first of them
  /// it has the folder.
  void join_folder();
  /// All members: finds out how states go to disk and come from there. Throws CollectiveException.
  void choose_io();
  /// All members: whether there is room for the states. Tells once what they cost. Likewise.
  void check_room();
  /// All members: makes the keepers, which go on from what those before them have. Likewise.
  void begin();
  /// Whether a state to begin with has been looked for.
  [[nodiscard]] bool restarted() const noexcept { return restarted_; }
  void set_restarted(bool restarted) noexcept { restarted_ = restarted; }
  /// All members: loads what was saved, if anything was and this run is to go on from it. Its step.
  std::optional<std::int64_t> restart();

  // Later on.

  /// Waits until nothing is under way to disk or to a partner. May throw world_reformed.
  void settle() const;
  /// Loads a state, in parts or dealt out anew.
  Result<void> load(const SavedState& state);
  /// All ranks of the job, before they make the state anew: a rank that has been started again
  /// takes what is left of its commits on its GPU, if the others cannot go back to `commit`, or to
  /// any if that is negative, without. Then its GPU memory is free.
  void inherit(std::int64_t commit);
  void forget_inherited() {
    inherited_.clear();
    inheritance_.drop();
  }
  /// All ranks of the job: the newest that is complete in memory or on disk; nullopt: none.
  std::optional<SavedState> newest();
  /// All ranks of the job: what is left to go on from once the world has ended, as its error.
  [[nodiscard]] Error rescue(const Error& error);

 private:
  /// The ends of the runs with the same folder of states; of this one and of those before it.
  [[nodiscard]] Ends& ends();
  [[nodiscard]] Ends ends_before();
  /// Whether the state is taken out of GPU memory at all.
  [[nodiscard]] bool keeps() const;
  /// Whether pinned memory of its size is needed for that.
  [[nodiscard]] bool pins() const;
  /// SaveOptions::restart, as far as this run goes: a step that is wanted is one of the newest run
  /// that has left a state. All members.
  [[nodiscard]] std::int64_t wanted();
  /// The part that this rank has saved, or one that has its place; tells how fast that was.
  Result<void> load_own_part(const SavedState& state);
  /// The newest step that this run knows to be on disk, on any rank; -1: none.
  [[nodiscard]] std::int64_t newest_on_disk() const;
  /// All members: a saved state to begin with, that of step `wanted` or the newest.
  [[nodiscard]] std::optional<SavedState> find(std::int64_t wanted);
  [[nodiscard]] std::vector<HeldPart> held() const;

  WorldCore* core_;
  Checkpoint* checkpoint_;
  const RunOptions* run_;
  SaveOptions save_;
  StateIo io_ = StateIo::pinned;  ///< direct or pinned
  Generations states_{std::filesystem::path()};
  FolderLock folder_lock_;  ///< of the first member
  bool has_folder_ = false;
  StateKeeper* keeper_ = nullptr;  ///< KeeperStatus has it
  std::shared_ptr<CommitLedger> ledger_;
  Inheritance inheritance_;
  std::vector<HeldPart> inherited_;  ///< what this rank has taken of it
  NearFolder near_;
  bool restarted_ = false;
};

}  // namespace troupe::rank_process
