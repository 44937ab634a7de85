#include "rank/world/run_loop.hpp"

#include "common/core/log.hpp"
#include "rank/world/world_actor.hpp"
#include "rank/world/world_core.hpp"

namespace troupe::rank {
namespace {

const Error kReformed{Errc::world_reformed, 0, "the world is re-formed"};

}  // namespace

RunLoop::RunLoop(WorldCore& core, Checkpoint& checkpoint, const StepFunction& step,
                 const RunOptions& options)
    : core_(&core), checkpoint_(&checkpoint), step_(&step), options_(&options) {
  check(options.commit_every >= 1, "commit_every must be at least 1");
  const std::lock_guard lock(core_->mutex_);
  check(!core_->attached_, "one run at a time");
  core_->attached_ = true;
  core_->finished_ = false;
  if (!core_->active_) core_->device_->port().close_gate(kReformed);
}

RunLoop::~RunLoop() {
  const std::lock_guard lock(core_->mutex_);
  core_->attached_ = false;
  core_->at_step_ = -1;
}

bool RunLoop::interrupted() const {
  const std::lock_guard lock(core_->mutex_);
  return core_->stopped_ || !core_->active_ ||
         core_->epoch_ != core_->program_epoch_.load(std::memory_order_relaxed);
}

void RunLoop::run() {
  std::int64_t from = options_->first_step;
  for (;;) {
    try {
      if (checkpoint_->newest() < 0) commit_first(from);
      return attempt(from);
    } catch (const Exception& e) {
      const bool by_fault =
          e.code() == Errc::device_lost || e.code() == Errc::world_reformed ||
          ((e.code() == Errc::stale || e.code() == Errc::peer_lost) && interrupted());
      if (!by_fault) throw;
      log::debug("world", "the run is interrupted: {}", e.what());
    }
    const auto restored = recover();
    from = restored >= 0 ? restored : options_->first_step;
  }
}

void RunLoop::attempt(std::int64_t from) {
  for (std::int64_t i = from;; ++i) {
    {
      const std::lock_guard lock(core_->mutex_);
      core_->at_step_ = i;
    }
    if (interrupted()) throw Exception(kReformed);
    const auto answer = (*step_)(i);
    if (const auto error = core_->device_->port().take_error()) throw Exception(*error);
    if (answer == Step::done) return finish();
    if ((i + 1 - options_->first_step) % options_->commit_every == 0) commit(i + 1);
  }
}

void RunLoop::commit(std::int64_t step) {
  // The half to be overwritten holds the commit before the newest: nobody may still need it.
  if (checkpoint_->newest() >= 0) core_->wait_stable(checkpoint_->newest());
  const auto epoch = core_->program_epoch_.load();
  checkpoint_->commit(step).on_ready(
      [actor = core_->actor_, epoch, step](const Result<void>& done) {
        if (done.ok()) (void)actor.tell(world_message::Committed{epoch, step});
      });
}

void RunLoop::commit_first(std::int64_t step) {
  commit(step);
  core_->wait_stable(step);
}

void RunLoop::finish() {
  // A commit on its way must not be taken for one of the next run.
  core_->wait_stable(checkpoint_->newest());
  (void)core_->actor_.tell(world_message::Finished{core_->program_epoch_.load()});
  std::unique_lock lock(core_->mutex_);
  core_->changed_.wait(lock,
                       [&] { return core_->stopped_ || !core_->active_ || core_->finished_; });
  if (core_->finished_) return;
  if (core_->stopped_) throw CollectiveException(*core_->stopped_);
  throw Exception(kReformed);
}

std::int64_t RunLoop::recover() {
  std::optional<std::int64_t> restored;
  std::unique_lock lock(core_->mutex_);
  const auto iteration = core_->at_step_;
  for (;;) {
    core_->changed_.wait(lock, [&] {
      return core_->stopped_ || core_->restore_ ||
             (core_->active_ &&
              core_->epoch_ != core_->program_epoch_.load(std::memory_order_relaxed));
    });
    if (core_->stopped_) throw CollectiveException(*core_->stopped_);
    if (core_->restore_) {
      const auto order = *std::exchange(core_->restore_, std::nullopt);
      lock.unlock();
      const CommandPort::Passage passage;
      // Without a commit everywhere no step has run yet: the state is what it was.
      const auto outcome =
          order.step >= 0 ? checkpoint_->rollback(order.step) : checkpoint_->forget();
      if (outcome.ok()) restored = order.step;
      if (outcome.code() == Errc::internal) throw Exception(outcome.error());
      (void)core_->actor_.tell(world_message::Restored{
          order.round, outcome, iteration, std::max<std::int64_t>(0, iteration - order.step)});
      lock.lock();
      continue;
    }
    core_->program_epoch_.store(core_->epoch_, std::memory_order_release);
    core_->device_->port().open_gate();
    (void)core_->device_->port().take_error();  // what failed on the way was rolled back
    check(restored.has_value(), "the world became active without a rollback of this rank");
    return *restored;
  }
}

}  // namespace troupe::rank
