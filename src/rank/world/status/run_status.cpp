#include "rank/world/status/run_status.hpp"

#include <string>

namespace troupe::rank_process {

std::uint64_t RunStatus::commits() const {
  const std::lock_guard lock(monitor_->mutex);
  return commits_;
}

std::optional<TimePoint> RunStatus::recovery_waits_since() const {
  const std::lock_guard lock(monitor_->mutex);
  return waits_since_;
}

// The WorldActor

bool RunStatus::ask_restore(std::uint32_t round, std::int64_t step) {
  const std::lock_guard lock(monitor_->mutex);
  // Without the members' state there is nothing to go back to: that of the members before is still
  // needed, for theirs is made from it.
  if (!monitor_->in_run || members_->watches() || !members_->are_settled()) return false;
  restore_ = Restore{round, step};
  if (!waits_since_) waits_since_ = SteadyClock::time();
  monitor_->changed.notify_all();
  return true;
}

void RunStatus::set_all_flushed(std::int64_t step) {
  const std::lock_guard lock(monitor_->mutex);
  all_flushed_ = step;
  monitor_->changed.notify_all();
}

void RunStatus::set_stable(std::int64_t step) {
  const std::lock_guard lock(monitor_->mutex);
  stable_ = step;
  ++commits_;
  if (parts_->collector != nullptr && committing_.step == step)
    parts_->collector->span(trace::SpanKind::commit, committing_.since, SteadyClock::time(),
                            "commit of step " + std::to_string(step));
  keeper_.stable(step);
  monitor_->changed.notify_all();
}

void RunStatus::set_stopping(std::int64_t since) {
  const std::lock_guard lock(monitor_->mutex);
  if (!stopping_since_) stopping_since_ = since;
}

void RunStatus::set_finished(std::int64_t step) {
  const std::lock_guard lock(monitor_->mutex);
  ++monitor_->finished;
  last_step_ = step == kAnyStep ? kNoEnd : step;
  all_flushed_ = stable_ = -1;
  keeper_.stopped();                          // what is not stable now never will be
  if (stopping_since_) stopping_since_ = -1;  // another run would end with its first commit
  monitor_->changed.notify_all();
}

void RunStatus::set_left(std::int64_t run, int rank, const Error& error) {
  const std::lock_guard lock(monitor_->mutex);
  const auto text = "rank " + std::to_string(rank) + " has left the run: " + error.message;
  monitor_->left = WorldMonitor::Left{run, {error.code, error.native, text}};
  monitor_->changed.notify_all();
}

void RunStatus::fail_commit(const Error& error) {
  const std::lock_guard lock(monitor_->mutex);
  if (!commit_error_) commit_error_ = error;
  monitor_->changed.notify_all();
}

// With the monitor's mutex held

void RunStatus::epoch_ended() {
  restore_.reset();
}

void RunStatus::epoch_began(std::int64_t stable) {
  waits_since_.reset();
  all_flushed_ = stable_ = stable;
  keeper_.activated(stable);
}

void RunStatus::world_stopped() {
  waits_since_.reset();
  keeper_.stopped();
}

void RunStatus::resume(const ProgramPlace& place) {
  members_->acknowledge(*parts_);
  commit_error_.reset();
  parts_->port->outcomes().forget_since(place);
  parts_->port->gate().open();
}

// The program's thread

std::optional<std::uint32_t> RunStatus::begin() {
  const std::lock_guard lock(monitor_->mutex);
  if (monitor_->in_run) return std::nullopt;
  monitor_->in_run = true;
  monitor_->begun = true;
  commit_error_.reset();
  if (!monitor_->active) parts_->port->gate().close(kWorldReformed);
  return monitor_->runs++;
}

std::optional<RunStatus::Restore> RunStatus::end() {
  const std::lock_guard lock(monitor_->mutex);
  monitor_->in_run = false;
  waits_since_.reset();
  whereabouts_->set_step(-1);
  if (monitor_->stopped) return std::nullopt;
  parts_->port->gate().open();
  return std::exchange(restore_, std::nullopt);
}

std::int64_t RunStatus::last_step() const {
  const std::lock_guard lock(monitor_->mutex);
  return last_step_;
}

void RunStatus::begin_commit(std::int64_t step, TimePoint now) {
  const std::lock_guard lock(monitor_->mutex);
  committing_ = {step, now};
}

void RunStatus::wait_stable(std::int64_t step) {
  const Whereabouts::Wait wait(*whereabouts_,
                               "World::run for the commit of step " + std::to_string(step));
  auto& monitor = *monitor_;
  std::unique_lock lock(monitor.mutex);
  monitor.changed.wait(lock, [&] {
    return monitor.stopped || monitor.is_interrupted() || stable_ >= step || commit_error_;
  });
  monitor.throw_if_stopped();
  if (monitor.is_interrupted()) throw Exception(kWorldReformed);
  if (stable_ >= step) return;
  (void)parts_->port->outcomes().take_error();  // it is told here
  throw Exception(*commit_error_);
}

void RunStatus::wait_all_flushed(std::int64_t step) {
  const Whereabouts::Wait wait(
      *whereabouts_,
      "World::run for the requests before the commit of step " + std::to_string(step));
  auto& monitor = *monitor_;
  std::unique_lock lock(monitor.mutex);
  monitor.changed.wait(
      lock, [&] { return monitor.stopped || monitor.is_interrupted() || all_flushed_ >= step; });
  monitor.throw_if_stopped();
  if (monitor.is_interrupted()) throw Exception(kWorldReformed);
}

bool RunStatus::stops_after(std::int64_t newest) const {
  const std::lock_guard lock(monitor_->mutex);
  return stopping_since_ && *stopping_since_ <= newest;
}

bool RunStatus::is_interrupted() const {
  const std::lock_guard lock(monitor_->mutex);
  return monitor_->stopped || monitor_->is_interrupted();
}

std::optional<RunStatus::Restore> RunStatus::wait_for_recovery(const ProgramPlace& place) {
  auto& monitor = *monitor_;
  std::unique_lock lock(monitor.mutex);
  monitor.changed.wait(lock, [&] {
    return monitor.stopped || monitor.is_left() || restore_ || monitor.has_new_epoch();
  });
  waits_since_.reset();
  monitor.throw_if_ended();
  if (restore_) return std::exchange(restore_, std::nullopt);
  resume(place);
  return std::nullopt;
}

bool RunStatus::wait_finished(std::uint32_t run) {
  auto& monitor = *monitor_;
  std::unique_lock lock(monitor.mutex);
  monitor.changed.wait(
      lock, [&] { return monitor.finished > run || monitor.stopped || monitor.is_interrupted(); });
  if (monitor.finished > run) return true;
  monitor.throw_if_stopped();
  return false;
}

RunStatus::Seen RunStatus::watch(std::uint32_t run, const ProgramPlace& place, bool waits) {
  auto& monitor = *monitor_;
  std::unique_lock lock(monitor.mutex);
  for (;;) {
    if (monitor.finished > run) return Seen::finished;
    monitor.throw_if_ended();
    if (monitor.has_new_epoch()) {
      resume(place);
      return Seen::new_epoch;
    }
    if (!waits) return Seen::nothing;
    monitor.changed.wait(lock);
  }
}

void RunStatus::wait_for_end() {
  auto& monitor = *monitor_;
  std::unique_lock lock(monitor.mutex);
  monitor.changed.wait(lock, [&] { return monitor.stopped || monitor.is_left(); });
}

void RunStatus::throw_end() {
  auto& monitor = *monitor_;
  std::unique_lock lock(monitor.mutex);
  monitor.changed.wait(lock, [&] { return monitor.stopped || monitor.is_left(); });
  monitor.throw_if_stopped();
  throw RunLeft(monitor.left->error);
}

}  // namespace troupe::rank_process
