#include "rank/run/run_loop.hpp"

#include <algorithm>
#include <utility>

#include "common/core/log.hpp"
#include "rank/run/restart.hpp"
#include "rank/run/stop_signal.hpp"
#include "rank/world/world_actor.hpp"
#include "rank/world/world_core.hpp"

namespace troupe::rank_process {
namespace {

const Error kReformed{Errc::world_reformed, 0, "the world is re-formed"};

constexpr auto kLook = std::chrono::milliseconds(5);  ///< between looks at the world, in waits

}  // namespace

RunLoop::RunLoop(WorldCore& core, Checkpoint& checkpoint, const StepFunction& step,
                 const RunOptions& options)
    : core_(&core),
      checkpoint_(&checkpoint),
      step_(&step),
      options_(&options),
      save_(with_defaults(options.save.value_or(core.options().save), core.options().save)),
      first_(options.first_step),
      from_(options.first_step) {}

void RunLoop::detach() {
  if (!std::exchange(attached_, false)) return;
  end_timeline(finished_ ? TimelineEnd::over : TimelineEnd::undone);
  core_->device().tell(device_message::RunProgress{false});
  if (const auto order = core_->status().end_run())
    (void)core_->actor().tell(world_message::Restored{order->round, {}, -1, 0});
}

Result<void> RunLoop::attach() {
  const Error nested{Errc::invalid, 0,
                     "World::run within another one, or beside it on another thread"};
  if (core_->status().in_run()) throw Exception(nested);
  core_->end_abandoned_runs();
  auto& port = core_->device().port();
  // What was submitted before may run again on the next device host, but is not the run's to
  // repeat: it ends before a fault means that the run goes back.
  const auto before = [&] {
    const Whereabouts::Wait wait(core_->whereabouts(),
                                 "World::run for what was submitted before it");
    return port.outcomes().fence().reached.wait();
  }();
  const auto number = core_->status().begin_run();
  if (!number) throw Exception(nested);
  number_ = *number;
  attached_ = true;
  core_->history().restarted_from = -1;
  if (!save_.directory.empty()) ends().push_back(kNoEnd);
  began_ = port.outcomes().fence().place;
  port.outcomes().forget_since(began_);
  checkpoint_->forget();  // what a run before has committed
  outside_ = detail::bound_timeline();
  turn_timeline(TimelineEnd::over);
  core_->device().tell(device_message::RunProgress{true});
  return before;
}

bool RunLoop::keeps() const {
  return !save_.directory.empty() || save_.partner || core_->options().shrink;
}

bool RunLoop::pins() const {
  return keeps() && (io_ != StateIo::direct || save_.partner || core_->options().shrink);
}

bool RunLoop::interrupted() const {
  return core_->status().interrupted();
}

bool RunLoop::is_by_fault(Errc code) const {
  if (code == Errc::device_lost || code == Errc::world_reformed || ends_the_world(code))
    return true;
  if (code != Errc::stale && code != Errc::peer_lost) return false;
  return interrupted() || core_->device().port().transfers().spoilt_in() == core_->epoch().value;
}

void RunLoop::run() {
  const auto before = attach();
  try {
    const bool member = core_->members().rank() >= 0;
    if (member) {
      check_begin(before);
      check_save_options();
    } else if (!save_.directory.empty()) {
      // It may be a member later, or what is left to write the state.
      const auto fingerprint = fingerprint_of(save_);
      states_ = Generations(folder_of(save_), fingerprint.ok() ? *fingerprint : save_.fingerprint,
                            ends_before());
    }
    if (save_.restart == SaveOptions::kNever) states_.begin_anew();
    if (options_->prepare) prepare();
    if (member && !core_->status().has_other_members()) {  // else resize() does it
      choose_io();
      check_room();
      begin_keeping();
      if (core_->options().rehearsal) {
        rehearsal_.emplace(*core_, *checkpoint_, *core_->options().rehearsal, options_->stride);
        core_->history().rehearsed = true;
      }
    }
    loop();
    if (!save_.directory.empty()) ends().back() = core_->status().end_of_run();
  } catch (const WorldStopped& e) {
    meet_at_the_end();
    if (!ends_the_world(e.code())) throw;
    throw CollectiveException(rescue(e.error()));
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

void RunLoop::leave(const Error& error) {
  (void)core_->actor().tell(world_message::Left{number_, error});
  {
    const Whereabouts::Wait wait(core_->whereabouts(), "World::run, which it leaves");
    core_->status().wait_for_end_of_run();
  }
  follow();
}

void RunLoop::follow() {
  detach();
  meet_at_the_end();
  (void)core_->status().wait_active();  // what has ended the world is told by whatever comes next
}

// Steps and commits

void RunLoop::loop() {
  for (;;) {
    try {
      if (core_->status().has_other_members()) {
        resize();
        continue;
      }
      if (core_->status().watches()) {
        if (watch()) return;
        continue;
      }
      if (!restarted_) restart();
      if (checkpoint_->newest() < 0) {
        settle_timeline();
        commit(from_);
        core_->status().wait_stable(from_);
        if (stopping_) stop(from_);
        leave_if_failing(from_);
      }
      return attempt();
    } catch (const Exception& e) {
      if (!is_by_fault(e.code())) {
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
  for (std::int64_t i = from_;; i += options_->stride) {
    at_ = i;
    core_->whereabouts().set_step(i);
    if (interrupted()) throw Exception(kReformed);
    if (take_stop_signal()) core_->request_stop();
    if (rehearsal_) rehearsal_->before_step(i);
    const auto answer = call_step(i);
    throw_error();
    std::int64_t next = 0;
    const bool no_more = __builtin_add_overflow(i, options_->stride, &next);
    if (no_more && answer != Step::done)
      throw Exception(
          {Errc::invalid, 0, "there is no number of a step behind " + std::to_string(i)});
    const bool ends = answer == Step::done || commit_is_due(next);
    if (ends) settle_timeline();
    if (rehearsal_ && ends && rehearsal_->end(next)) return finish(i);
    if (answer == Step::done) return finish(i);
    if (!ends) continue;
    commit(next);
    if (rehearsal_) rehearsal_->begin(next);
    if (stopping_) stop(next);
    leave_if_failing(next);
  }
}

void RunLoop::throw_error() {
  if (const auto error = core_->device().port().outcomes().take_error()) throw Exception(*error);
}

Result<void> RunLoop::settle_commands() {
  const Whereabouts::Wait wait(core_->whereabouts(), "World::run for this rank's own commands");
  const auto reached = core_->device().port().outcomes().fence().reached;
  while (!reached.wait_for(kLook)) {
    if (interrupted()) return kReformed;
  }
  return reached.wait();
}

bool RunLoop::commit_is_due(std::int64_t step) const {
  return (step - options_->first_step) % options_->commit_every == 0 ||
         (save_.every > 0 && step % save_.every == 0);
}

void RunLoop::commit(std::int64_t step) {
  // The half to be overwritten holds the commit before the newest: nobody may still need it.
  const auto before = checkpoint_->newest();
  if (before >= 0) core_->status().wait_stable(before);
  stopping_ = core_->status().stopping_after(before);
  const bool to_disk = !save_.directory.empty() &&
                       (stopping_ || (save_.every > 0 && step % save_.every == 0 && step > first_));
  const bool capture = keeper_ != nullptr && (to_disk || save_.partner);
  const auto since = SteadyClock::time();
  core_->status().begin_commit(step, since);
  const auto epoch = core_->epoch().value;
  flush(step, epoch);
  // Before the commit: once it is submitted, so must be its copies (see StateKeeper).
  // And the half that the keeper still has written to disk is not overwritten.
  if (capture || (keeper_ != nullptr && keeper_->reads(1 - checkpoint_->half()))) settle_keeper();
  auto before_it = timeline_;
  turn_timeline(TimelineEnd::over);
  auto copied = checkpoint_->commit(step);
  // The commit counts if nothing before it has failed, also of what ends after its copies.
  const auto fence = core_->device().port().outcomes().fence();
  if (committed_.size() == 2) committed_.erase(committed_.begin());
  committed_.push_back({step, fence.place, std::move(before_it)});
  detail::at_once_when_ready(
      when_all({std::move(copied), fence.reached}),
      [actor = core_->actor(), epoch, step, run = number_](const Result<void>& done) {
        (void)actor.tell(world_message::Committed{epoch, run, step, done});
      });
  core_->tokens().committed(epoch, commit_number(number_, step));
  if (capture) keeper_->capture(step, epoch, to_disk, since);
}

void RunLoop::flush(std::int64_t step, std::uint32_t epoch) {
  if (core_->members().size() == 1) return;
  detail::at_once_when_ready(core_->tokens().flush(), [actor = core_->actor(), epoch, step,
                                                       run = number_](const Result<void>&) {
    (void)actor.tell(world_message::Flushed{epoch, run, step});
  });
  if (core_->device().has_tokens()) core_->status().wait_all_flushed(step);
}

void RunLoop::settle_keeper() {
  if (keeper_ != nullptr && !keeper_->wait_idle([this] { return interrupted(); }))
    throw Exception(kReformed);
}

void RunLoop::leave_if_failing(std::int64_t step) {
  if (!core_->options().shrink || core_->mpi().size() == 1 || !core_->status().failing()) return;
  const bool last = core_->members().size() == 1;
  if (last || !options_->resized) {
    if (!std::exchange(core_->history().stay_told, true)) {
      log::warn("world", "the GPU stays: {}",
                last ? "it is the last one" : "this program cannot go on with fewer ranks");
    }
    return;
  }
  core_->status().wait_stable(step);
  settle_keeper();
  (void)core_->actor().tell(world_message::Withdraw{});
  // The epoch ends in any case: with this rank's leave, or with whatever kept it from being heard.
  const Whereabouts::Wait wait(core_->whereabouts(), "World::run to leave the world");
  core_->status().wait_for_end_of_epoch();
  throw Exception(kReformed);
}

void RunLoop::finish(std::int64_t step) {
  const auto settled = settle_commands();
  throw_error();
  if (!settled.ok()) throw Exception(settled.error());
  // A commit on its way must not be taken for one of the next run.
  core_->status().wait_stable(checkpoint_->newest());
  settle_keeper();
  throw_error();
  (void)core_->actor().tell(world_message::Finished{core_->epoch().value, number_, step});
  const Whereabouts::Wait wait(core_->whereabouts(), "World::run for the other ranks' end of it",
                               Awaits::end_of_run);
  finished_ = core_->status().wait_finished(number_);
  if (!finished_) throw Exception(kReformed);
  if (rehearsal_) rehearsal_->conclude();
}

void RunLoop::stop(std::int64_t step) {
  finish(step);
  const auto at = "asked to stop, at step " + std::to_string(step);
  // Without anything to go on from, to run the job again is to begin anew: that is no success of a
  // kind, and the one who asked shall know.
  if (save_.directory.empty())
    throw CollectiveException({Errc::stopped, 0, at + "; nothing is saved (no --checkpoint-dir)"});
  const auto newest = std::max(core_->history().restarted_from, keeper_->on_disk());
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

}  // namespace troupe::rank_process
