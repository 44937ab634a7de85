#include <troupe/actor/production_scheduler.hpp>

#include <algorithm>
#include <map>
#include <utility>

#include <troupe/spin.hpp>

#include "common/actor/cpu_binding.hpp"
#include "common/core/continuations.hpp"

namespace troupe {
namespace {

constexpr auto kPatrolPeriod = std::chrono::milliseconds(1);
constexpr auto kLongestSleep = std::chrono::hours(1);
/// After so many turns out of its own slot a worker looks at the shared queue first.
constexpr int kLongestStreak = 64;
/// With fewer cores than this for each worker a thread that waits takes the
/// core from one that works.
constexpr unsigned kCoresPerWorker = 4;
/// What a worker without work looks for some, before it sleeps: to be woken takes it a tenth of
/// that. A question and its answer come within that time.
constexpr auto kLooks = std::chrono::microseconds(50);
constexpr int kLooksPerClock = 16;

}  // namespace

thread_local ProductionScheduler::Worker* ProductionScheduler::tls_worker_ = nullptr;

Result<std::shared_ptr<ProductionScheduler>> ProductionScheduler::start(ProductionOptions options) {
  if (options.workers < 1 || options.messages_per_turn < 1) {
    return Error{Errc::invalid, 0, "a scheduler needs workers and messages_per_turn of at least 1"};
  }
  return std::shared_ptr<ProductionScheduler>(new ProductionScheduler(options));
}

ProductionScheduler::ProductionScheduler(const ProductionOptions& options)
    : messages_per_turn_(options.messages_per_turn),
      runs_continuations_(options.runs_continuations),
      cores_to_spare_(std::thread::hardware_concurrency() / kCoresPerWorker >=
                      static_cast<unsigned>(options.workers)) {
  for (int i = 0; i < options.workers; ++i) {
    workers_.push_back(std::make_unique<Worker>());
    workers_.back()->scheduler = this;
  }
  for (auto& worker : workers_) {
    worker->thread = std::thread([this, &self = *worker] { run_worker(self); });
  }
  timer_thread_ = std::thread([this] { run_timers(); });
}

ProductionScheduler::~ProductionScheduler() {
  stop();
}

Result<void> ProductionScheduler::bind(const CpuBinding& binding) {
  cores_to_spare_.store(binding.count() / kCoresPerWorker >= workers_.size(),
                        std::memory_order_relaxed);
  if (auto bound = binding.bind(timer_thread_); !bound) return bound;
  for (auto& worker : workers_) {
    if (auto bound = binding.bind(worker->thread); !bound) return bound;
  }
  return {};
}

// ---- the shared queue
// -------------------------------------------------------------------------------------

void ProductionScheduler::push_shared(Schedulable& job, bool wake_a_worker) noexcept {
  const std::scoped_lock lock(queue_mutex_);
  push_locked(job, wake_a_worker);
}

void ProductionScheduler::push_locked(Schedulable& job, bool wake_a_worker) noexcept {
  job.next_in_queue = nullptr;
  (queue_tail_ == nullptr ? queue_head_ : queue_tail_->next_in_queue) = &job;
  queue_tail_ = &job;
  queued_.fetch_add(1, std::memory_order_relaxed);
  const bool taken = looking_ && queue_head_ == &job;  // by the worker that looks for some
  if (wake_a_worker && sleeping_ > 0 && !taken) work_.notify_one();
}

Schedulable* ProductionScheduler::pop_locked() {
  auto* job = queue_head_;
  if (job == nullptr) return nullptr;
  queue_head_ = job->next_in_queue;
  if (queue_head_ == nullptr) queue_tail_ = nullptr;
  queued_.fetch_sub(1, std::memory_order_relaxed);
  return job;
}

Schedulable* ProductionScheduler::take_shared() {
  if (queued_.load(std::memory_order_relaxed) == 0) return nullptr;
  const std::scoped_lock lock(queue_mutex_);
  return pop_locked();
}

/// For a moment, or until there is some in the shared queue.
void ProductionScheduler::look_for_work() const noexcept {
  const auto start = clock_.now();
  do {
    for (int i = 0; i < kLooksPerClock; ++i) {
      if (queued_.load(std::memory_order_relaxed) != 0) return;
      cpu_relax();
    }
  } while (clock_.now() - start < kLooks);
}

/// The next job, however long it takes; null when the scheduler stops.
Schedulable* ProductionScheduler::wait_shared() {
  std::unique_lock lock(queue_mutex_);
  for (bool looked = false;;) {
    if (auto* job = pop_locked()) return job;
    if (stopping_) return nullptr;
    if (!looked && !looking_ && cores_to_spare_.load(std::memory_order_relaxed)) {
      looked = looking_ = true;
      lock.unlock();
      look_for_work();
      lock.lock();
      looking_ = false;
      continue;
    }
    if (++sleeping_ == workers_.size()) all_idle_.notify_all();
    work_.wait(lock);
    --sleeping_;
  }
}

// ---- workers
// ----------------------------------------------------------------------------------------------

void ProductionScheduler::submit(Schedulable& job) noexcept {
  auto* self = tls_worker_;
  if (self == nullptr || self->scheduler != this) {
    push_shared(job, true);
    return;
  }
  if (auto* displaced = self->next.exchange(&job, std::memory_order_seq_cst)) {
    push_shared(*displaced, true);
  }
  if (workers_.size() > 1 && !patrolling_.load(std::memory_order_seq_cst)) call_patrol();
}

bool ProductionScheduler::other_work(const Worker& self) const noexcept {
  return self.next.load(std::memory_order_relaxed) != nullptr ||
         queued_.load(std::memory_order_relaxed) > 0;
}

bool ProductionScheduler::may_linger() const noexcept {
  const auto* self = tls_worker_;
  return cores_to_spare_.load(std::memory_order_relaxed) && self != nullptr &&
         self->scheduler == this && !other_work(*self);
}

void ProductionScheduler::run_worker(Worker& self) {
  tls_worker_ = &self;
  if (!runs_continuations_) detail::this_thread_must_not_wait();
  int streak = 0;
  for (;;) {
    Schedulable* job = nullptr;
    if (streak >= kLongestStreak) {
      job = take_shared();
      streak = 0;
    }
    if (job == nullptr && self.next.load(std::memory_order_relaxed) != nullptr) {
      job = self.next.exchange(nullptr, std::memory_order_seq_cst);
      ++streak;
    }
    if (job == nullptr) {
      job = wait_shared();
      streak = 0;
    }
    if (job == nullptr) return;
    for (;;) {
      const auto turn = job->run(messages_per_turn_);
      self.turns.store(self.turns.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
      if (turn == Turn::idle || turn == Turn::ended) break;
      if (turn == Turn::wait) std::this_thread::yield();
      if (other_work(self)) {  // an actor that has more to do goes behind the others
        push_shared(*job, true);
        break;
      }
    }
  }
}

bool ProductionScheduler::drain(std::chrono::nanoseconds limit) {
  std::unique_lock lock(queue_mutex_);
  return all_idle_.wait_for(
      lock, limit, [this] { return queue_head_ == nullptr && sleeping_ == workers_.size(); });
}

void ProductionScheduler::stop() noexcept {
  std::map<TimerId, std::unique_ptr<TimerTask>> dropped;
  {
    const std::scoped_lock lock(timer_mutex_);
    timers_stopping_ = true;
    dropped = timers_.clear();
  }
  timer_changed_.notify_all();
  if (timer_thread_.joinable()) timer_thread_.join();
  {
    const std::scoped_lock lock(queue_mutex_);
    stopping_ = true;
  }
  work_.notify_all();
  for (auto& worker : workers_) {
    if (worker->thread.joinable()) worker->thread.join();
  }
}

// ---- the timer thread
// -------------------------------------------------------------------------------------

std::optional<TimerId> ProductionScheduler::schedule(std::chrono::nanoseconds delay,
                                                     std::unique_ptr<TimerTask> task) {
  const std::scoped_lock lock(timer_mutex_);
  if (timers_stopping_) return std::nullopt;
  const auto timer = timers_.add(clock_.now(), delay, std::move(task));
  if (timer && timer->due < timers_wake_at_) timer_changed_.notify_one();
  return timer;
}

bool ProductionScheduler::cancel(const TimerId& timer) noexcept {
  std::unique_ptr<TimerTask> removed;  // destroyed after the lock
  const std::scoped_lock lock(timer_mutex_);
  removed = timers_.remove(timer);
  return removed != nullptr;
}

void ProductionScheduler::run_timers() {
  std::unique_lock lock(timer_mutex_);
  while (!timers_stopping_) {
    const auto now = clock_.now();
    if (auto due = timers_.pop_due(now)) {
      lock.unlock();
      due->fire();
      due.reset();
      lock.lock();
      continue;
    }
    timers_wake_at_ = now + kLongestSleep;
    if (const auto next = timers_.next_due()) timers_wake_at_ = std::min(timers_wake_at_, *next);
    if (patrolling_.load(std::memory_order_relaxed)) {
      timers_wake_at_ = std::min<TimePoint>(timers_wake_at_, now + kPatrolPeriod);
    }
    timer_changed_.wait_until(lock, std::chrono::steady_clock::time_point(timers_wake_at_));
    if (patrolling_.load(std::memory_order_relaxed) && !patrol()) {
      // A worker that fills its slot now either sees this, or its slot is seen by the second look.
      patrolling_.store(false, std::memory_order_seq_cst);
      if (patrol()) patrolling_.store(true, std::memory_order_seq_cst);
    }
  }
}

void ProductionScheduler::call_patrol() noexcept {
  const std::scoped_lock lock(timer_mutex_);
  if (patrolling_.exchange(true, std::memory_order_seq_cst)) return;
  timer_changed_.notify_one();
}

/// Moves actors that wait behind a long handler to the shared queue. False if no worker has had a
/// turn since the last look and no slot is in use: there is nothing to watch.
bool ProductionScheduler::patrol() {
  bool active = false;
  for (auto& worker : workers_) {
    const auto turns = worker->turns.load(std::memory_order_relaxed);
    const bool progressed = turns != std::exchange(worker->turns_seen, turns);
    const bool waiting = worker->next.load(std::memory_order_seq_cst) != nullptr;
    active = active || progressed || waiting;
    if (progressed || !waiting) continue;
    const std::scoped_lock lock(queue_mutex_);  // so that drain() does not miss what is in between
    if (auto* stuck = worker->next.exchange(nullptr, std::memory_order_seq_cst)) {
      push_locked(*stuck, true);
    }
  }
  return active;
}

}  // namespace troupe
