#pragma once

#include <cstdint>
#include <optional>
#include <set>

#include <troupe/checkpoint.hpp>
#include <troupe/world.hpp>

#include "rank/run/constants.hpp"
#include "rank/run/device_exchange.hpp"
#include "rank/run/memory_guard.hpp"
#include "rank/run/replicas.hpp"
#include "rank/run/run_states.hpp"
#include "rank/run/run_timeline.hpp"
#include "rank/run/verifier.hpp"
#include "rank/world/world_core.hpp"

namespace troupe::rank_process {

/// Looks for wrong numbers between two commits of a run, and goes back where there are any: the
/// steps since the commit are done again, in the same epoch. All members call each function alike.
/// The program's thread.
class IntervalChecks {
 public:
  enum class Outcome {
    good,    ///< the steps count
    again,   ///< the state is that of the interval's begin, whose steps follow
    failing  ///< likewise, and this rank's GPU or another's has said that it is failing
  };

  /// All outlive this.
  IntervalChecks(WorldCore& core, Checkpoint& checkpoint, const RunOptions& run,
                 RunTimeline& timeline, RunStates& states)
      : core_(&core),
        checkpoint_(&checkpoint),
        timeline_(&timeline),
        states_(&states),
        exchange_(core),
        constants_(core, checkpoint, exchange_),
        verifier_(core, checkpoint, exchange_, core.options().verify, run),
        replicas_(core, checkpoint, exchange_) {
    if (const auto budget = core.options().guard) guard_.emplace(core, *budget);
  }

  /// The run begins with `step`, or goes on from there after a fault that has struck in `struck`:
  /// looks after the constants, because a wrong one may have caused the fault. Good or failing.
  [[nodiscard]] Outcome resume(std::int64_t step, std::int64_t struck);
  /// The steps that follow are those behind the commit of `step`.
  void begin(std::int64_t step);
  /// No steps follow for now: the program does other things, perhaps with ranks that do not look.
  void pause() { verifier_.pause(); }
  /// The commit that the interval begins with.
  [[nodiscard]] std::int64_t step() const noexcept { return begin_; }
  /// The steps of the interval are done, `next` follows. Throws CollectiveException (corrupt) where
  /// no state is to be had that counts.
  [[nodiscard]] Outcome end(std::int64_t next);
  /// Before the first commit: throws CollectiveException (invalid) if an entry that is to be the
  /// same on all ranks is not.
  void look_at_begin();
  /// Behind the commit of `step`, and at the end of the run: throws Exception (corrupt) if memory
  /// of this rank has changed that no command was to write.
  void look_at_memory(std::int64_t step);
  void look_at_memory_at_end(std::int64_t step);
  /// Behind a step: changes one bit of the state, of a constant or of guarded memory, if that was
  /// ordered.
  void flip_if_ordered(std::int64_t step);

 private:
  /// Waits until the commit is stable and nobody needs the one before it, and until ranks have done
  /// what they have asked of one another for the steps.
  void settle();
  void go_back();
  /// Tells what was found in the steps behind begin_. True: a GPU has been told to say that it is
  /// failing, because it is not the first time.
  [[nodiscard]] bool tell(const std::vector<Corruption>& found);
  /// The steps behind begin_ do not count for what was found in them.
  [[nodiscard]] Outcome do_again(const std::vector<Corruption>& found);
  void stray_if_ordered(std::int64_t step);
  /// Has the GPU of that rank say that it is failing. True: its rank will leave it. All members.
  [[nodiscard]] bool gives_up(const Corruption& found);

  WorldCore* core_;
  Checkpoint* checkpoint_;
  RunTimeline* timeline_;
  RunStates* states_;
  DeviceExchange exchange_;
  Constants constants_;
  Verifier verifier_;
  Replicas replicas_;
  std::optional<MemoryGuard> guard_;
  std::int64_t begin_ = -1;
  std::int64_t odd_at_ = -1;  ///< the interval that was last done again for what was found in it …
  std::set<int> odd_;         ///< … on these ranks
  std::int64_t given_up_at_ = -1;  ///< the interval for which a GPU was said to be failing
};

}  // namespace troupe::rank_process
