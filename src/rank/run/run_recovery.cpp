#include <algorithm>

#include "rank/run/run_loop.hpp"
#include "rank/world/world_actor.hpp"
#include "rank/world/world_core.hpp"

// A run after faults.

namespace troupe::rank_process {

Error RunLoop::rescue(const Error& error) {
  auto step = core_->restarted_from_;
  if (keeper_ != nullptr || core_->shrink_) {
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
      if ((share.table = (*memory)->own()) != nullptr) share.image = (*memory)->own_image();
      if (writer.write((*memory)->step(), share)) step = (*memory)->step();
    }
  }
  auto told = error;
  if ((core_->stop_on_loss_ || core_->shrink_) && step >= 0) told.code = Errc::requeue;
  told.message += step >= 0 ? "; the state of step " + std::to_string(step) + " is on disk"
                            : "; no state is on disk";
  return told;
}

std::int64_t RunLoop::recover() {
  const Whereabouts::Wait wait(core_->whereabouts_, "World::run for a recovery");
  std::optional<std::int64_t> restored;
  std::unique_lock lock(core_->mutex_);
  for (;;) {
    core_->changed_.wait(lock, [&] {
      return core_->stopped_ || core_->is_left() || core_->restore_ ||
             (core_->active_ &&
              core_->epoch_ != core_->program_epoch_.load(std::memory_order_relaxed));
    });
    if (core_->stopped_) throw WorldStopped(*core_->stopped_);
    if (core_->is_left()) throw RunLeft(core_->left_->error);
    if (core_->restore_) {
      restore(lock, restored);
      continue;
    }
    resume(restored.value_or(-1));
    if (core_->watches() || core_->has_other_members()) return -1;
    if (restored) return *restored;
    // It was not asked for, because the state was being dealt out: there is no commit yet.
    lock.unlock();
    checkpoint_->forget();
    return -1;
  }
}

void RunLoop::resume(std::int64_t step) {
  core_->acknowledge();
  core_->commit_error_.reset();
  const auto at = std::find_if(committed_.begin(), committed_.end(),
                               [&](const Committed& commit) { return commit.step == step; });
  const auto place = at != committed_.end() ? at->place : began_;
  committed_.erase(at != committed_.end() ? at + 1 : committed_.begin(), committed_.end());
  auto& port = core_->device_->port();
  port.forget_since(place);
  port.open_gate();
}

void RunLoop::restore(std::unique_lock<std::mutex>& lock, std::optional<std::int64_t>& restored) {
  const auto order = *std::exchange(core_->restore_, std::nullopt);
  const auto iteration = core_->at_step_;
  lock.unlock();
  const CommandPort::Passage passage;
  // Without a commit everywhere no step has run yet: the state is what it was.
  Result<void> outcome;
  if (order.step >= 0) {
    outcome = checkpoint_->rollback(order.step);
  } else {
    checkpoint_->forget();
  }
  if (outcome.ok()) restored = order.step;
  if (outcome.code() == Errc::internal) throw Exception(outcome.error());
  (void)core_->actor_.tell(world_message::Restored{
      order.round, outcome, iteration,
      std::max<std::int64_t>(0, iteration - (order.step >= 0 ? order.step : first_))});
  lock.lock();
}

}  // namespace troupe::rank_process
