#include "rank/run/run_loop.hpp"

#include <algorithm>
#include <future>
#include <memory>
#include <string>
#include <tuple>
#include <utility>

#include "common/core/log.hpp"
#include "rank/run/run_commands.hpp"
#include "rank/run/stop_signal.hpp"
#include "rank/world/world_actor.hpp"

namespace troupe::rank_process {
namespace {

const Error kReformed{Errc::world_reformed, 0, "the world is re-formed"};

/// A fault is noticed everywhere within this time, mostly. To end the epoch sooner costs a second
/// round of the recovery that is about to begin, and nothing else.
constexpr auto kNoFault = std::chrono::seconds(1);

}  // namespace

RunLoop::RunLoop(WorldCore& core, Checkpoint& checkpoint, const StepFunction& step,
                 const RunOptions& options)
    : core_(&core),
      checkpoint_(&checkpoint),
      step_(&step),
      options_(&options),
      timeline_(core, checkpoint),
      states_(core, checkpoint, options),
      members_(core, checkpoint, options, states_),
      checks_(core, checkpoint, options, timeline_, states_),
      slow_(core),
      first_(options.first_step),
      from_(options.first_step) {}

void RunLoop::detach() {
  if (!std::exchange(attached_, false)) return;
  timeline_.end(finished_ ? Standing::over : Standing::undone);
  states_.ledger()->strike_all();
  core_->device().tell(device_message::RunProgress{false});
  if (const auto order = core_->status().run().end())
    (void)core_->actor().tell(world_message::Restored{order->round, {}, -1, 0});
}

Result<void> RunLoop::attach() {
  const Error nested{Errc::invalid, 0,
                     "World::run within another one, or beside it on another thread"};
  if (core_->status().run().is_under_way()) throw Exception(nested);
  core_->end_abandoned_runs();
  core_->mpi().respawns().begin_run();
  auto& port = core_->device().port();
  // What was submitted before may run again on the next device host, but is not the run's to
  // repeat: it ends before a fault means that the run goes back.
  const auto before = [&] {
    const Whereabouts::Wait wait(core_->whereabouts(),
                                 "World::run for what was submitted before it");
    return port.outcomes().fence().reached.wait();
  }();
  const auto number = core_->status().run().begin();
  if (!number) throw Exception(nested);
  number_ = *number;
  attached_ = true;
  states_.enter_run();
  const auto began = port.outcomes().fence().place;
  port.outcomes().forget_since(began);
  checkpoint_->forget();  // what a run before has committed
  timeline_.begin(began);
  core_->device().tell(device_message::RunProgress{true});
  return before;
}

void RunLoop::begin(const Result<void>& before) {
  const bool member = core_->members().rank() >= 0;
  if (!member) {
    states_.watch_folder();
  } else if (core_->status().members().have_changed()) {
    states_.join_folder();  // the others are in the run
  } else {
    open(before);
  }
  if (options_->prepare) prepare();
  if (!member || core_->status().members().have_changed()) return;  // RunMembers::resize() does it
  states_.choose_io();
  states_.check_room();
  states_.begin();
  if (!core_->options().rehearsal) return;
  rehearsal_.emplace(*core_, *checkpoint_, *core_->options().rehearsal, options_->stride);
  core_->history().rehearsed = true;
}

void RunLoop::open(const Result<void>& before) {
  try {
    check_begin(before);
    states_.open();
  } catch (const Exception& e) {
    if (!core_->mpi().respawns().expected() || e.code() != Errc::world_reformed) throw;
    (void)recover();
    states_.join_folder();
  }
}

void RunLoop::run() {
  const auto before = attach();
  try {
    begin(before);
    loop();
    states_.leave_run(core_->status().run().last_step());
  } catch (const WorldStopped& e) {
    members_.meet_at_the_end();
    if (!ends_the_world(e.code())) throw;
    throw CollectiveException(states_.rescue(e.error()));
  } catch (const RunLeft&) {
    follow();
    throw;
  } catch (const CollectiveException&) {
    // The members end alike; for spectators the run has ended too.
    if (core_->options().shrink && !finished_)
      (void)core_->actor().tell(world_message::Finished{core_->epoch().value, number_, kAnyStep});
    throw;
  } catch (const Exception& e) {
    leave(e.error());
    throw;
  } catch (const std::exception& e) {
    leave({Errc::peer_lost, 0, e.what()});
    throw;
  } catch (...) {
    leave({Errc::peer_lost, 0, "its step has thrown what is no std::exception"});
    throw;
  }
}

Result<void> RunLoop::check_options() const {
  const auto& [first_step, commit_every, stride] =
      std::tie(options_->first_step, options_->commit_every, options_->stride);
  if (commit_every < 1 || stride < 1 || first_step < 0)
    return Error{Errc::invalid, 0,
                 "RunOptions: first_step = " + std::to_string(first_step) + ", commit_every = " +
                     std::to_string(commit_every) + ", stride = " + std::to_string(stride) +
                     ": the first must not be negative, the others at least 1"};
  if (commit_every % stride != 0 || first_step % stride != 0)
    return Error{Errc::invalid, 0,
                 "RunOptions: first_step = " + std::to_string(first_step) +
                     " and commit_every = " + std::to_string(commit_every) +
                     " must be multiples of stride = " + std::to_string(stride)};
  return {};
}

void RunLoop::check_begin(const Result<void>& before) {
  auto outcome = before;
  if (ends_the_world(before.code())) outcome = {};  // which says so itself
  if (!outcome.ok() && OutcomeLog::is_loss(outcome.code())) {
    (void)core_->device().port().outcomes().report(
        before.error());  // for the next run, until wait_active()
    outcome = Error{outcome.code(), outcome.error().native,
                    "a fault has undone some of what was submitted before World::run: call " +
                        std::string("World::wait_active() and do it again, or do it in "
                                    "RunOptions::prepare: ") +
                        outcome.error().message};
  } else if (!outcome.ok()) {
    (void)core_->device().port().outcomes().take_error();  // it is told here
  }
  if (outcome.ok()) outcome = check_options();
  if (auto agreed = core_->members().agree(outcome); !agreed)
    throw CollectiveException(agreed.error());
}

void RunLoop::prepare() {
  for (;;) {
    try {
      if (members_.prepare()) return;
      continue;
    } catch (const Exception& e) {
      if (!is_by_fault(*core_, e.code())) throw;
      log::debug("world", "the run's begin is interrupted: {}", e.what());
      end_epoch_by(e.error());
    }
    (void)recover();
  }
}

// Steps and commits

void RunLoop::loop() {
  for (;;) {
    try {
      if (core_->status().members().have_changed()) {
        if (const auto step = members_.resize()) first_ = from_ = *step;
        continue;
      }
      if (core_->status().members().watches()) {
        if (watch()) return;
        continue;
      }
      if (!states_.restarted()) {
        if (const auto step = states_.restart()) first_ = from_ = *step;
      }
      if (checkpoint_->newest() < 0) {
        timeline_.settle();
        checks_.look_at_begin();
        commit(from_);
        core_->status().run().wait_stable(from_);
        if (stopping_) stop(from_);
        leave_if_failing(from_);
      }
      return attempt();
    } catch (const Exception& e) {
      if (!is_by_fault(*core_, e.code())) {
        if (rehearsal_ && e.code() == Errc::stale) throw Exception(rehearsal_->explain(e.error()));
        throw;
      }
      log::debug("world", "the run is interrupted: {}", e.what());
      end_epoch_by(e.error());
    }
    const auto restored = recover();
    from_ = restored >= 0 ? restored : first_;
  }
}

Step RunLoop::call_step(std::int64_t i) {
  if (!options_->record) return (*step_)(i);
  if (!steps_) steps_.emplace(core_->shared_device());
  auto answer = Step::done;
  steps_->run([&] { answer = (*step_)(i); });
  return answer;
}

void RunLoop::attempt() {
  if (rehearsal_) rehearsal_->resume(from_);
  if (checks_.resume(from_, at_) == IntervalChecks::Outcome::failing) leave_if_failing(from_);
  checks_.begin(from_);
  const std::unique_ptr<IntervalChecks, void (*)(IntervalChecks*)> until_end(
      &checks_, [](IntervalChecks* checks) { checks->pause(); });
  for (std::int64_t i = from_;; i += options_->stride) {
    at_ = i;
    core_->whereabouts().set_step(i);
    if (is_interrupted(*core_)) throw Exception(kReformed);
    if (take_stop_signal()) core_->request_stop();
    if (rehearsal_) rehearsal_->before_step(i);
    const auto answer = call_step(i);
    throw_error(*core_);
    checks_.flip_if_ordered(i);
    slow_.hold_up_if_ordered();
    std::int64_t next = 0;
    const bool no_more = __builtin_add_overflow(i, options_->stride, &next);
    if (no_more && answer != Step::done)
      throw Exception(
          {Errc::invalid, 0, "there is no number of a step behind " + std::to_string(i)});
    const bool ends = answer == Step::done || commit_is_due(next);
    if (ends) timeline_.settle();
    if (rehearsal_ && ends && rehearsal_->end(next)) return finish(i);
    if (ends) {
      const auto outcome = checks_.end(next);
      if (outcome == IntervalChecks::Outcome::failing) leave_if_failing(checks_.step());
      if (outcome != IntervalChecks::Outcome::good) {
        i = checks_.step() - options_->stride;
        continue;
      }
    }
    if (answer == Step::done) {
      checks_.look_at_memory_at_end(next);
      return finish(i);
    }
    if (!ends) continue;
    commit(next);
    if (rehearsal_) rehearsal_->begin(next);
    checks_.begin(next);
    checks_.look_at_memory(next);
    if (stopping_) stop(next);
    slow_.look();
    leave_if_failing(next);
  }
}

bool RunLoop::commit_is_due(std::int64_t step) const {
  const auto& save = states_.options();
  return (step - options_->first_step) % options_->commit_every == 0 ||
         (save.every > 0 && step % save.every == 0);
}

void RunLoop::commit(std::int64_t step) {
  // The half to be overwritten holds the commit before the newest: nobody may still need it.
  const auto before = checkpoint_->newest();
  if (before >= 0) core_->status().run().wait_stable(before);
  stopping_ = core_->status().run().stops_after(before);
  const auto& save = states_.options();
  auto* const keeper = states_.keeper();
  const bool to_disk =
      states_.saves() && (stopping_ || (save.every > 0 && step % save.every == 0 && step > first_));
  const auto epoch = core_->epoch().value;
  const bool capture = keeper != nullptr &&
                       (to_disk || (save.partner && (save.every_copy || keeper->is_due(epoch))));
  const auto since = SteadyClock::time();
  core_->status().run().begin_commit(step, since);
  flush(step, epoch);
  // Before the commit: once it is submitted, so must be its copies (see StateKeeper).
  // And the half that the keeper still has written to disk is not overwritten.
  if (capture || (keeper != nullptr && keeper->reads(1 - checkpoint_->half()))) states_.settle();
  timeline_.begin_commit(step);
  const auto half = 1 - checkpoint_->half();
  const auto& ledger = states_.ledger();
  ledger->strike(half);
  auto copied = checkpoint_->commit(step);
  if (ledger->is_kept()) {
    if (!ledger->has_constants())
      ledger->set_constants(checkpoint_->constants(), checkpoint_->committed(step).take());
    ledger->enter(half, step, core_->members().rank(), core_->members().size(),
                  checkpoint_->saved_entries(), checkpoint_->committed_values(step).take());
  }
  // The commit counts if nothing before it has failed, also of what ends after its copies.
  const auto fence = core_->device().port().outcomes().fence();
  timeline_.committed(fence.place);
  detail::at_once_when_ready(
      when_all({std::move(copied), fence.reached}),
      [actor = core_->actor(), epoch, step, run = number_, ledger, half](const Result<void>& done) {
        if (done.ok()) ledger->complete(half, step);
        (void)actor.tell(world_message::Committed{epoch, run, step, done});
      });
  core_->tokens().committed(epoch, commit_number(number_, step));
  if (capture) keeper->capture(step, epoch, to_disk, since);
}

void RunLoop::flush(std::int64_t step, std::uint32_t epoch) {
  if (core_->members().size() == 1) return;
  detail::at_once_when_ready(core_->tokens().flush(), [actor = core_->actor(), epoch, step,
                                                       run = number_](const Result<void>&) {
    (void)actor.tell(world_message::Flushed{epoch, run, step});
  });
  if (core_->device().pools().has_tokens()) core_->status().run().wait_all_flushed(step);
}

void RunLoop::leave_if_failing(std::int64_t step) {
  if (core_->options().replaces_failing) return move_if_failing(step);
  if (!core_->options().shrink || core_->mpi().size() == 1 || !core_->status().health().failing())
    return;
  const bool last = core_->members().size() == 1;
  if (last || !options_->resized) {
    if (!std::exchange(core_->history().stay_told, true)) {
      log::warn("world", "the GPU stays: {}",
                last ? "it is the last one" : "this program cannot go on with fewer ranks");
    }
    return;
  }
  core_->status().run().wait_stable(step);
  states_.settle();
  (void)core_->actor().tell(world_message::Withdraw{});
  // The epoch ends in any case: with this rank's leave, or with whatever kept it from being heard.
  const Whereabouts::Wait wait(core_->whereabouts(), "World::run to leave the world");
  core_->status().epochs().wait_for_end();
  throw Exception(kReformed);
}

void RunLoop::move_if_failing(std::int64_t step) {
  if (!core_->status().health().failing() || std::exchange(core_->history().stay_told, true))
    return;
  core_->status().run().wait_stable(step);
  states_.settle();
  // Where there is another place this process ends here.
  std::promise<void> kept;
  core_->mpi().respawns().release([&kept] { kept.set_value(); });
  kept.get_future().wait();
  log::warn("world", "the GPU stays: there is no spare place");
}

void RunLoop::finish(std::int64_t step) {
  const auto settled = settle_commands(*core_);
  throw_error(*core_);
  if (!settled.ok()) throw Exception(settled.error());
  // A commit on its way must not be taken for one of the next run.
  core_->status().run().wait_stable(checkpoint_->newest());
  states_.settle();
  throw_error(*core_);
  (void)core_->actor().tell(world_message::Finished{core_->epoch().value, number_, step});
  const Whereabouts::Wait wait(core_->whereabouts(), "World::run for the other ranks' end of it",
                               Awaits::end_of_run);
  finished_ = core_->status().run().wait_finished(number_);
  if (!finished_) throw Exception(kReformed);
  if (rehearsal_) rehearsal_->conclude();
}

void RunLoop::stop(std::int64_t step) {
  finish(step);
  const auto at = "asked to stop, at step " + std::to_string(step);
  // Without anything to go on from, to run the job again is to begin anew: that is no success of a
  // kind, and the one who asked shall know.
  if (!states_.saves())
    throw CollectiveException({Errc::stopped, 0, at + "; nothing is saved (no --checkpoint-dir)"});
  const auto newest = std::max(core_->history().from_disk, states_.keeper()->on_disk());
  if (newest < 0) {
    throw CollectiveException(
        {Errc::stopped, 0, at + "; its state could not be saved, and no other is on disk"});
  }
  throw CollectiveException(
      {Errc::requeue, 0,
       at + (newest == step ? "; its state is on disk"
                            : "; its state could not be saved, that of step " +
                                  std::to_string(newest) + " is on disk")});
}

// After faults

void RunLoop::end_epoch_by(const Error& error) {
  const auto epoch = core_->epoch().value;
  if (is_interrupted(*core_)) return;
  if (core_->status().epochs().wait_for_end_of(epoch, kNoFault) || is_interrupted(*core_)) return;
  const auto newest = checkpoint_->newest();
  if (ended_epoch_at_ == newest) {
    throw Exception({error.code, error.native,
                     "a step has failed twice as if by a fault, and there was none (a future of an "
                     "earlier step, or another rank's error): " +
                         error.message});
  }
  ended_epoch_at_ = newest;
  log::warn("world", "a step has failed as if by a fault, and there was none: it is repeated: {}",
            error.to_string());
  (void)core_->actor().tell(world_message::EndEpoch{epoch, error});
  core_->status().epochs().wait_for_end();
}

std::int64_t RunLoop::recover() {
  const Whereabouts::Wait wait(core_->whereabouts(), "World::run for a recovery");
  timeline_.turn(Standing::undone);  // before anything of the way back is submitted
  std::optional<std::int64_t> restored;
  for (;;) {
    if (const auto order =
            core_->status().run().wait_for_recovery(timeline_.place_of(restored.value_or(-1)))) {
      restore(*order, restored);
      continue;
    }
    timeline_.forget_commits_after(restored.value_or(-1));
    if (core_->status().members().watches() || core_->status().members().have_changed()) return -1;
    if (restored) return *restored;
    // It was not asked for, because the state was being dealt out: there is no commit yet.
    checkpoint_->forget();
    return -1;
  }
}

void RunLoop::restore(const RunStatus::Restore& order, std::optional<std::int64_t>& restored) {
  const Gate::Passage passage;
  // Without a commit everywhere no step has run yet: the state is what it was.
  Result<void> outcome;
  if (order.step >= 0 && (!core_->mpi().respawns().expected() || checkpoint_->has(order.step))) {
    outcome = checkpoint_->rollback(order.step);
    states_.ledger()->strike(1 - checkpoint_->half());
  } else {
    checkpoint_->forget();
  }
  if (outcome.ok()) restored = order.step;
  if (outcome.code() == Errc::internal) throw Exception(outcome.error());
  (void)core_->actor().tell(world_message::Restored{
      order.round, outcome, at_,
      std::max<std::int64_t>(0, at_ - (order.step >= 0 ? order.step : first_))});
}

bool RunLoop::watch() {
  using Seen = RunStatus::Seen;
  for (;;) {
    const bool waits = !options_->spectate;
    const auto seen = core_->status().run().watch(number_, timeline_.place_of(-1), waits);
    if (seen == Seen::new_epoch) timeline_.forget_commits_after(-1);
    if (seen != Seen::nothing) return seen == Seen::finished;
    if (!waits) options_->spectate();
  }
}

void RunLoop::leave(const Error& error) {
  (void)core_->actor().tell(world_message::Left{number_, error});
  {
    const Whereabouts::Wait wait(core_->whereabouts(), "World::run, which it leaves");
    core_->status().run().wait_for_end();
  }
  follow();
}

void RunLoop::follow() {
  detach();
  members_.meet_at_the_end();
  (void)core_->status()
      .epochs()
      .wait_active();  // what has ended the world is told by whatever comes next
}

}  // namespace troupe::rank_process
