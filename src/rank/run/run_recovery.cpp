#include <algorithm>

#include "rank/run/run_loop.hpp"
#include "rank/world/world_actor.hpp"
#include "rank/world/world_core.hpp"

// A run after faults.

namespace troupe::rank_process {

Error RunLoop::rescue(const Error& error) {
  auto step = core_->history().restarted_from;
  if (keeper_ != nullptr || core_->options().shrink) {
    if (keeper_ != nullptr) keeper_->close();
    step = newest_on_disk();
    const auto& everyone = core_->mpi().everyone();
    const auto memory = MemoryState::find(everyone, held());
    if (!save_.directory.empty() && memory.ok() && (*memory)->step() > step) {
      const StateWriter writer(states_, everyone.rank(), everyone.size(),
                               [&](std::span<const std::byte> value, std::span<std::byte> all) {
                                 everyone.all_gather(value, all);
                               });
      StateWriter::Share share;
      if ((share.table = (*memory)->own()) != nullptr)
        share.write = StateWriter::of_image((*memory)->own_image());
      if (writer.write((*memory)->step(), share)) step = (*memory)->step();
    }
  }
  auto told = error;
  if ((core_->options().stop_on_loss || core_->options().shrink) && step >= 0)
    told.code = Errc::requeue;
  told.message += step >= 0 ? "; the state of step " + std::to_string(step) + " is on disk"
                            : "; no state is on disk";
  return told;
}

std::int64_t RunLoop::recover() {
  const Whereabouts::Wait wait(core_->whereabouts(), "World::run for a recovery");
  turn_timeline(TimelineEnd::undone);  // before anything of the way back is submitted
  std::optional<std::int64_t> restored;
  for (;;) {
    if (const auto order = core_->status().wait_for_recovery(place_of(restored.value_or(-1)))) {
      restore(*order, restored);
      continue;
    }
    forget_commits_after(restored.value_or(-1));
    if (core_->status().watches() || core_->status().has_other_members()) return -1;
    if (restored) return *restored;
    // It was not asked for, because the state was being dealt out: there is no commit yet.
    checkpoint_->forget();
    return -1;
  }
}

ProgramPlace RunLoop::place_of(std::int64_t step) const {
  const auto at = std::find_if(committed_.begin(), committed_.end(),
                               [&](const Committed& commit) { return commit.step == step; });
  return at != committed_.end() ? at->place : began_;
}

void RunLoop::forget_commits_after(std::int64_t step) {
  const auto at = std::find_if(committed_.begin(), committed_.end(),
                               [&](const Committed& commit) { return commit.step == step; });
  const auto first = at != committed_.end() ? at + 1 : committed_.begin();
  std::for_each(first, committed_.end(),
                [](const Committed& commit) { commit.before->set_standing(TimelineEnd::undone); });
  committed_.erase(first, committed_.end());
}

void RunLoop::restore(const WorldStatus::Restore& order, std::optional<std::int64_t>& restored) {
  const Gate::Passage passage;
  // Without a commit everywhere no step has run yet: the state is what it was.
  Result<void> outcome;
  if (order.step >= 0) {
    outcome = checkpoint_->rollback(order.step);
  } else {
    checkpoint_->forget();
  }
  if (outcome.ok()) restored = order.step;
  if (outcome.code() == Errc::internal) throw Exception(outcome.error());
  (void)core_->actor().tell(world_message::Restored{
      order.round, outcome, at_,
      std::max<std::int64_t>(0, at_ - (order.step >= 0 ? order.step : first_))});
}

}  // namespace troupe::rank_process
