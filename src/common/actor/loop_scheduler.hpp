#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>

#include <troupe/actor/scheduler.hpp>
#include <troupe/actor/timer_queue.hpp>
#include <troupe/clock.hpp>

namespace troupe {

/// Runs actors on one thread that does something else in between: the loop's. A message to an actor
/// wakes that thread if it sleeps, and costs no wake-up otherwise. Timers fire there too. The
/// thread is its owner's, who calls run_ready() and sleep() in turn until stopped().
class LoopScheduler final : public Scheduler {
 public:
  LoopScheduler() = default;

  [[nodiscard]] const Clock& clock() const noexcept override { return clock_; }
  void submit(Schedulable& job) noexcept override;
  std::optional<TimerId> schedule(std::chrono::nanoseconds delay,
                                  std::unique_ptr<TimerTask> task) override;
  bool cancel(const TimerId& timer) noexcept override;
  /// Not from the loop's thread, which does the work.
  bool drain(std::chrono::nanoseconds limit) override;
  /// Afterwards stopped() is true, and the loop must not run actors any more.
  void stop() noexcept override;

  // The loop's thread.

  /// Gives a turn to each actor that has something to do, and fires the timers that are due. True
  /// if an actor had a turn.
  bool run_ready() noexcept;
  /// Sleeps until an actor has something to do, a timer is due or wake() is called; at most
  /// `limit`.
  void sleep(std::chrono::nanoseconds limit);
  [[nodiscard]] bool stopped() const noexcept { return stopped_.load(std::memory_order_acquire); }

  /// Ends the present sleep of the loop, or else the next. Any thread.
  void wake() noexcept;

 private:
  void fire_timers() noexcept;
  void push(Schedulable& job) noexcept;
  void end_sleep() noexcept;
  [[nodiscard]] bool has_work() const noexcept {
    return newest_.load(std::memory_order_seq_cst) != nullptr ||
           woken_.load(std::memory_order_seq_cst);
  }

  SteadyClock clock_;
  std::atomic<Schedulable*> newest_{nullptr};  ///< a list of those submitted, the newest first
  std::atomic<std::size_t> runnable_{0};       ///< submitted, and not idle since
  std::atomic<bool> stopped_{false};

  /// The loop's thread announces its sleep before it looks for work the last time, others look for
  /// the announcement after they have made work: one of the two sees the other.
  std::atomic<bool> asleep_{false};
  std::atomic<bool> woken_{false};
  std::mutex sleep_mutex_;
  std::condition_variable sleep_ends_;

  std::mutex timer_mutex_;
  TimerQueue timers_;
  std::atomic<std::int64_t> next_due_ns_{INT64_MAX};  ///< written under the mutex
};

}  // namespace troupe
