#pragma once

#include <cstdint>
#include <functional>
#include <optional>

#include <troupe/checkpoint.hpp>
#include <troupe/world.hpp>

#include "rank/run/run_states.hpp"
#include "rank/world/world_core.hpp"

namespace troupe::rank_process {

/// A run in a world that goes on with other members (--on-loss shrink), or whose ranks make their
/// shares of the state together.
///
/// All ranks of the job take part, spectators and those that become it too: their processes live,
/// and their host memory may hold a part of the state that nobody else has. They meet; what the old
/// members have is secured; the new ones make their shares anew and read what they need of the
/// newest state, wherever it lies. Whatever goes wrong goes wrong on all ranks alike, so that their
/// host collectives stay in step: a fault in between leads to the next epoch and there to another
/// try. The program's thread.
class RunMembers {
 public:
  /// Everything outlives this.
  RunMembers(WorldCore& core, Checkpoint& checkpoint, const RunOptions& options, RunStates& states)
      : core_(&core), checkpoint_(&checkpoint), options_(&options), states_(&states) {}

  /// Turns all ranks of the job to the members of the acknowledged epoch, together, and deals the
  /// state out to them. The step to go on from; nothing: some ranks have not yet seen the epoch.
  /// Throws world_reformed if a newer epoch is to come first.
  std::optional<std::int64_t> resize();
  /// Has the program make the state, on all ranks together: RunOptions::prepare. True once it has
  /// done so, or the members have changed. Throws Exception: a fault came in between.
  bool prepare();
  /// The run has ended by what ends the world: the others need not wait for this rank.
  void meet_at_the_end();

 private:
  static constexpr std::int64_t kTheEnd = -1;  ///< in the place of an epoch: the world has ended
  /// What a rank says when all meet, and what comes of it for all.
  struct Standing {
    std::int64_t epoch = kTheEnd;  ///< that it has acknowledged
    /// The step of its commit in GPU memory; -1: none that can be had; kAnyStep: it was no member.
    std::int64_t commit = -1;
    std::int64_t restarted = 0;  ///< it has looked for a state to begin with
    std::int64_t secured = 0;    ///< what it has is where others find it
    /// As far as it knows the ranks that were lost are back, and no others are missing.
    std::int64_t as_many = 1;
  };

  /// All ranks of the job say where they are. nullopt: some have not yet seen this epoch. Throws
  /// world_reformed (others have seen a newer one), WorldStopped.
  std::optional<Standing> meet();
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
  Result<void> deal_out(const std::optional<SavedState>& state);

  WorldCore* core_;
  Checkpoint* checkpoint_;
  const RunOptions* options_;
  RunStates* states_;
  bool preparing_ = false;  ///< the ranks meet before each try of prepare()
  bool secured_ = false;    ///< see secure(); until resize() has succeeded
  bool met_at_the_end_ = false;
};

}  // namespace troupe::rank_process
