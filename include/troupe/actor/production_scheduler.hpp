#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include <troupe/actor/scheduler.hpp>
#include <troupe/actor/timer_queue.hpp>
#include <troupe/clock.hpp>
#include <troupe/error.hpp>

namespace troupe {

class CpuBinding;

/// How many threads a ProductionScheduler has, and how it deals out their time.
struct ProductionOptions {
  int workers = 2;
  int messages_per_turn = 64;  ///< after these, other runnable actors come first
  /// False: where an actor resolves a future, the functions given to that run on other threads, so
  /// that none of them holds up an actor.
  bool runs_continuations = true;
};

/// Runs actors on a few threads, timers on one more.
///
/// A worker that makes an actor runnable keeps it in a slot of its own and runs it next, while its
/// cache is warm and without waking anybody; everything else goes through one shared queue. An
/// actor must not be stuck in such a slot behind a handler that takes long: while workers use their
/// slots the timer thread patrols, once a millisecond, and moves what has not got its turn since
/// the last look to the shared queue. Workers without work sleep, one of them a moment later than
/// the others where there are cores to spare; with all asleep nothing wakes up but for a timer.
class ProductionScheduler final : public Scheduler {
 public:
  /// Errc::invalid for options that make no sense.
  static Result<std::shared_ptr<ProductionScheduler>> start(ProductionOptions options = {});
  ~ProductionScheduler() override;

  /// For Runtime. Binds the workers and the timer thread, all to all cores of `binding`. Any
  /// thread, before stop(). Errc::io if the operating system refuses.
  Result<void> bind(const CpuBinding& binding);

  [[nodiscard]] const Clock& clock() const noexcept override { return clock_; }
  void submit(Schedulable& job) noexcept override;
  [[nodiscard]] bool may_linger() const noexcept override;
  std::optional<TimerId> schedule(std::chrono::nanoseconds delay,
                                  std::unique_ptr<TimerTask> task) override;
  bool cancel(const TimerId& timer) noexcept override;
  bool drain(std::chrono::nanoseconds limit) override;
  void stop() noexcept override;

 private:
  static constexpr std::size_t kCacheLine = 64;
  struct alignas(kCacheLine) Worker {
    ProductionScheduler* scheduler = nullptr;
    std::atomic<Schedulable*> next{nullptr};
    std::atomic<std::uint64_t> turns{0};
    std::uint64_t turns_seen = 0;  // the patrol's
    std::thread thread;
  };

  explicit ProductionScheduler(const ProductionOptions& options);
  void run_worker(Worker& self);
  Schedulable* take_shared();
  Schedulable* wait_shared();
  void look_for_work() const noexcept;
  Schedulable* pop_locked();
  void push_locked(Schedulable& job, bool wake_a_worker) noexcept;
  void push_shared(Schedulable& job, bool wake_a_worker) noexcept;
  [[nodiscard]] bool other_work(const Worker& self) const noexcept;
  void run_timers();
  void call_patrol() noexcept;
  bool patrol();

  const int messages_per_turn_;
  const bool runs_continuations_;
  std::atomic<bool> cores_to_spare_;
  SteadyClock clock_;
  std::vector<std::unique_ptr<Worker>> workers_;
  static thread_local Worker* tls_worker_;

  std::mutex queue_mutex_;
  std::condition_variable work_;
  std::condition_variable all_idle_;
  Schedulable* queue_head_ = nullptr;
  Schedulable* queue_tail_ = nullptr;
  std::atomic<std::size_t> queued_{0};  // written under the lock, a hint without
  std::size_t sleeping_ = 0;
  bool looking_ = false;  // a worker without work looks for some before it sleeps
  bool stopping_ = false;

  std::mutex timer_mutex_;
  std::condition_variable timer_changed_;
  TimerQueue timers_;
  TimePoint timers_wake_at_{};
  std::atomic<bool> patrolling_{false};
  bool timers_stopping_ = false;
  std::thread timer_thread_;
};

}  // namespace troupe
