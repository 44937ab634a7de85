#include "common/actor/loop_scheduler.hpp"

#include <algorithm>
#include <map>
#include <thread>
#include <utility>

namespace troupe {
namespace {

constexpr int kMessagesInATurn = 64;
constexpr auto kDrainPause = std::chrono::microseconds(50);

std::int64_t next_due(const TimerQueue& timers) {
  const auto due = timers.next_due();
  return due ? due->count() : INT64_MAX;
}

}  // namespace

void LoopScheduler::push(Schedulable& job) noexcept {
  auto* head = newest_.load(std::memory_order_relaxed);
  do {
    job.next_in_queue = head;
  } while (!newest_.compare_exchange_weak(head, &job, std::memory_order_seq_cst));
}

void LoopScheduler::submit(Schedulable& job) noexcept {
  runnable_.fetch_add(1, std::memory_order_relaxed);
  push(job);
  end_sleep();
}

void LoopScheduler::wake() noexcept {
  woken_.store(true, std::memory_order_seq_cst);
  end_sleep();
}

void LoopScheduler::end_sleep() noexcept {
  if (!asleep_.load(std::memory_order_seq_cst)) return;
  // With the lock the loop's thread is either before its last look or waiting.
  { const std::scoped_lock lock(sleep_mutex_); }
  sleep_ends_.notify_one();
}

void LoopScheduler::sleep(std::chrono::nanoseconds limit) {
  std::unique_lock lock(sleep_mutex_);
  asleep_.store(true, std::memory_order_seq_cst);
  const auto due = next_due_ns_.load(std::memory_order_seq_cst);
  if (due != INT64_MAX) limit = std::min(limit, std::chrono::nanoseconds(due) - clock_.now());
  if (limit > std::chrono::nanoseconds::zero())
    sleep_ends_.wait_for(lock, limit, [this] { return has_work(); });
  asleep_.store(false, std::memory_order_relaxed);
  woken_.store(false, std::memory_order_seq_cst);
}

bool LoopScheduler::run_ready() noexcept {
  if (clock_.now().count() >= next_due_ns_.load(std::memory_order_acquire)) fire_timers();
  auto* newest = newest_.load(std::memory_order_relaxed) == nullptr
                     ? nullptr
                     : newest_.exchange(nullptr, std::memory_order_seq_cst);
  if (newest == nullptr) return false;
  Schedulable* oldest = nullptr;
  while (newest != nullptr) {
    auto* const before = std::exchange(newest->next_in_queue, oldest);
    oldest = std::exchange(newest, before);
  }
  while (oldest != nullptr) {
    auto& job = *std::exchange(oldest, oldest->next_in_queue);
    const auto turn = job.run(kMessagesInATurn);
    if (turn == Turn::again || turn == Turn::wait) {
      push(job);
    } else {
      runnable_.fetch_sub(1, std::memory_order_release);
    }
  }
  return true;
}

bool LoopScheduler::drain(std::chrono::nanoseconds limit) {
  const auto start = clock_.now();
  while (runnable_.load(std::memory_order_acquire) != 0) {
    if (clock_.now() - start >= limit) return false;
    std::this_thread::sleep_for(kDrainPause);
  }
  return true;
}

void LoopScheduler::stop() noexcept {
  std::map<TimerId, std::unique_ptr<TimerTask>> dropped;  // destroyed after the lock
  {
    const std::scoped_lock lock(timer_mutex_);
    stopped_.store(true, std::memory_order_release);
    dropped = timers_.clear();
    next_due_ns_.store(INT64_MAX, std::memory_order_release);
  }
  wake();
}

std::optional<TimerId> LoopScheduler::schedule(std::chrono::nanoseconds delay,
                                               std::unique_ptr<TimerTask> task) {
  std::optional<TimerId> timer;
  bool earlier = false;
  {
    const std::scoped_lock lock(timer_mutex_);
    if (stopped()) return std::nullopt;
    timer = timers_.add(clock_.now(), delay, std::move(task));
    const auto due = next_due(timers_);
    earlier = due < next_due_ns_.exchange(due, std::memory_order_seq_cst);
  }
  if (earlier && asleep_.load(std::memory_order_seq_cst)) wake();
  return timer;
}

bool LoopScheduler::cancel(const TimerId& timer) noexcept {
  std::unique_ptr<TimerTask> removed;  // destroyed after the lock
  const std::scoped_lock lock(timer_mutex_);
  removed = timers_.remove(timer);
  next_due_ns_.store(next_due(timers_), std::memory_order_release);
  return removed != nullptr;
}

void LoopScheduler::fire_timers() noexcept {
  for (;;) {
    std::optional<TimerQueue::Due> due;
    {
      const std::scoped_lock lock(timer_mutex_);
      due = timers_.pop_due(clock_.now());
      next_due_ns_.store(next_due(timers_), std::memory_order_release);
    }
    if (!due) return;
    due->fire();
  }
}

}  // namespace troupe
