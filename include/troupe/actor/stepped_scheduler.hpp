#pragma once

#include <chrono>
#include <cstdint>
#include <mutex>
#include <optional>
#include <random>
#include <vector>

#include <troupe/actor/scheduler.hpp>
#include <troupe/actor/timer_queue.hpp>
#include <troupe/clock.hpp>

namespace troupe {

/// How a SteppedScheduler chooses what runs next.
struct SteppedOptions {
  /// Which of the runnable actors comes next: 0 = the one that has waited longest, otherwise drawn
  /// at random from this seed. The same seed and the same actors give the same order on every
  /// machine.
  std::uint64_t seed = 0;
};

/// Runs actors one message at a time on the caller's thread, on a clock that stands still: for
/// tests and simulations. step(), run_until_idle() and advance() are for one thread; others may
/// send messages.
class SteppedScheduler final : public Scheduler {
 public:
  explicit SteppedScheduler(SteppedOptions options = {})
      : seed_(options.seed), random_(options.seed) {}

  /// Lets one runnable actor handle one message; false if none is runnable.
  bool step();
  /// Steps until nothing is runnable, at most `limit` times; returns the number of steps. Time
  /// stands still.
  std::size_t run_until_idle(std::size_t limit = kMaxSteps);
  /// Moves the clock to `by` from now, stopping at every timer on the way: fires it, and lets the
  /// actors run until idle before the next. Runs until idle first.
  void advance(std::chrono::nanoseconds by);

  [[nodiscard]] const Clock& clock() const noexcept override { return clock_; }
  void submit(Schedulable& job) noexcept override;
  std::optional<TimerId> schedule(std::chrono::nanoseconds delay,
                                  std::unique_ptr<TimerTask> task) override;
  bool cancel(const TimerId& timer) noexcept override;
  /// The clock stands still, so the limit is one of steps: kMaxSteps.
  bool drain(std::chrono::nanoseconds limit) override;
  void stop() noexcept override;

  static constexpr std::size_t kMaxSteps = 10'000'000;

 private:
  Schedulable* pick();
  std::optional<TimerQueue::Due> next_timer(TimePoint until);

  const std::uint64_t seed_;
  ManualClock clock_;
  std::mutex mutex_;
  std::mt19937_64 random_;
  std::vector<Schedulable*> runnable_;
  TimerQueue timers_;
};

}  // namespace troupe
