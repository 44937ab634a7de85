#include <troupe/actor/stepped_scheduler.hpp>

#include <algorithm>

namespace troupe {

Schedulable* SteppedScheduler::pick() {
  const std::scoped_lock lock(mutex_);
  if (runnable_.empty()) return nullptr;
  const auto index = seed_ == 0 ? std::size_t{0} : random_() % runnable_.size();
  const auto chosen = runnable_.begin() + static_cast<std::ptrdiff_t>(index);
  auto* job = *chosen;
  runnable_.erase(chosen);
  return job;
}

bool SteppedScheduler::step() {
  auto* job = pick();
  if (job == nullptr) return false;
  const auto turn = job->run(1);
  if (turn == Turn::again || turn == Turn::wait) submit(*job);
  return true;
}

std::size_t SteppedScheduler::run_until_idle(std::size_t limit) {
  std::size_t steps = 0;
  while (steps < limit && step()) ++steps;
  return steps;
}

std::optional<TimerQueue::Due> SteppedScheduler::next_timer(TimePoint until) {
  const std::scoped_lock lock(mutex_);
  const auto due = timers_.next_due();
  if (!due || *due > until) return std::nullopt;
  clock_.advance(std::max(*due - clock_.now(), std::chrono::nanoseconds::zero()));
  return timers_.pop_due(clock_.now());
}

void SteppedScheduler::advance(std::chrono::nanoseconds by) {
  const auto until = clock_.now() + by;
  run_until_idle();
  while (const auto timer = next_timer(until)) {
    timer->fire();
    run_until_idle();
  }
  clock_.advance(until - clock_.now());
}

void SteppedScheduler::submit(Schedulable& job) noexcept {
  const std::scoped_lock lock(mutex_);
  runnable_.push_back(&job);
}

std::optional<TimerId> SteppedScheduler::schedule(std::chrono::nanoseconds delay,
                                                  std::unique_ptr<TimerTask> task) {
  const std::scoped_lock lock(mutex_);
  return timers_.add(clock_.now(), delay, std::move(task));
}

bool SteppedScheduler::cancel(const TimerId& timer) noexcept {
  std::unique_ptr<TimerTask> removed;  // destroyed after the lock
  const std::scoped_lock lock(mutex_);
  removed = timers_.remove(timer);
  return removed != nullptr;
}

bool SteppedScheduler::drain(std::chrono::nanoseconds /*limit*/) {
  run_until_idle();
  const std::scoped_lock lock(mutex_);
  return runnable_.empty();
}

void SteppedScheduler::stop() noexcept {
  std::map<TimerId, std::unique_ptr<TimerTask>> dropped;  // destroyed after the lock
  const std::scoped_lock lock(mutex_);
  dropped = timers_.clear();
}

}  // namespace troupe
