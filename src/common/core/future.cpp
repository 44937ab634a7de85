#include <troupe/future.hpp>

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <climits>
#include <condition_variable>
#include <ctime>
#include <deque>
#include <functional>
#include <mutex>
#include <new>
#include <thread>

#include "common/core/continuations.hpp"

namespace troupe::detail {
namespace {

/// Stands in the continuation list of a state that is resolved.
StateBase::Continuation* closed() noexcept {
  return reinterpret_cast<StateBase::Continuation*>(std::uintptr_t{1});
}

void futex_wait(std::atomic<std::uint32_t>& word, std::uint32_t expected, const timespec* time) {
  syscall(SYS_futex, reinterpret_cast<std::uint32_t*>(&word), FUTEX_WAIT_PRIVATE, expected, time,
          nullptr, 0);
}

}  // namespace

namespace {

/// Freed states of the commonest size, that of a Future<void>, up to kMaxKept of them.
struct StatePool {
  static constexpr std::size_t kBytes = sizeof(State<void>);
  static constexpr std::size_t kMaxKept = 65536;
  struct Free {
    Free* next;
  };

  ~StatePool() {
    while (head != nullptr) ::operator delete(std::exchange(head, head->next));
    kept = kMaxKept;  // states freed by destructors that run later go to the heap
  }
  Free* head = nullptr;
  std::size_t kept = 0;
};
thread_local StatePool pool;

/// How many continuations the thread is in: one may resolve another future.
thread_local int continuations = 0;
thread_local bool must_not_wait = false;

void run(StateBase::Continuation* continuation) noexcept {
  ++continuations;
  {
    const Binding binding(continuation->errand.timeline());
    continuation->run();
  }
  delete continuation;
  --continuations;
}

void run_all(StateBase::Continuation* first) noexcept {
  while (first != nullptr) {
    auto* const next = first->next;
    run(std::exchange(first, next));
  }
}

/// Threads for the continuations that the resolving thread must not run itself: as many as are in
/// one at a time, so that one that waits keeps nothing from running, up to kMost.
class ContinuationThreads {
 public:
  static ContinuationThreads& instance() {
    static ContinuationThreads threads;
    return threads;
  }
  ~ContinuationThreads() {
    {
      const std::lock_guard lock(mutex_);
      stop_ = true;
    }
    work_.notify_all();
    for (auto& thread : threads_) thread.join();
  }

  void give(StateBase::Continuation* chain) {
    {
      const std::lock_guard lock(mutex_);
      chains_.push_back(chain);
      if (chains_.size() > idle_ && threads_.size() < kMost)
        threads_.emplace_back([this] { work(); });
    }
    work_.notify_one();
  }

  bool wait_until_idle(std::chrono::nanoseconds limit) {
    std::unique_lock lock(mutex_);
    return ended_.wait_for(lock, limit, [this] { return chains_.empty() && running_ == 0; });
  }

 private:
  static constexpr std::size_t kMost = 64;

  void work() {
    std::unique_lock lock(mutex_);
    for (;;) {
      ++idle_;
      work_.wait(lock, [this] { return stop_ || !chains_.empty(); });
      --idle_;
      if (chains_.empty()) return;
      auto* const chain = chains_.front();
      chains_.pop_front();
      ++running_;
      lock.unlock();
      run_all(chain);
      lock.lock();
      --running_;
      ended_.notify_all();
    }
  }

  std::mutex mutex_;
  std::condition_variable work_, ended_;
  std::deque<StateBase::Continuation*> chains_;
  std::size_t idle_ = 0, running_ = 0;
  bool stop_ = false;
  std::vector<std::thread> threads_;
};

/// See set_error_account().
struct Account {
  std::mutex mutex;
  EnterError enter;
};
Account& account() {
  static Account one;
  return one;
}

Error entered(Error error, Heard heard) {
  if (error.read) {  // it was entered before, and is only passed on
    set_read(error, false);
    return error;
  }
  const auto* const timeline = bound_timeline();
  if (timeline != nullptr && timeline->standing() == TimelineState::Standing::undone) return error;
  const std::lock_guard lock(account().mutex);
  return account().enter ? account().enter(std::move(error), heard) : error;
}

/// How often a waiter looks between two readings of the clock, which cost as much as a look.
constexpr int kLooksPerClock = 16;

}  // namespace

bool in_continuation() noexcept {
  return continuations > 0;
}

void this_thread_must_not_wait() noexcept {
  must_not_wait = true;
}

bool wait_for_continuations(std::chrono::nanoseconds limit) {
  return ContinuationThreads::instance().wait_until_idle(limit);
}

void set_error_account(EnterError enter) {
  const std::lock_guard lock(account().mutex);
  account().enter = std::move(enter);
}

Error enter_error(Error error) {
  return entered(std::move(error), Heard::by_all);
}

Error enter_answer(Error error) {
  return entered(std::move(error), Heard::by_asker);
}

Error error_of_exception() noexcept {
  try {
    throw;
  } catch (const Exception& e) {
    return enter_error(e.error());
  } catch (const std::bad_alloc&) {
    return enter_error({Errc::out_of_memory, 0, "host memory (std::bad_alloc)"});
  } catch (const std::exception& e) {
    return enter_error({Errc::internal, 0, e.what()});
  } catch (...) {
    return enter_error({Errc::internal, 0, "a function of the program threw no std::exception"});
  }
}

void* allocate_state(std::size_t bytes) {
  if (bytes != StatePool::kBytes || pool.head == nullptr) return ::operator new(bytes);
  --pool.kept;
  return std::exchange(pool.head, pool.head->next);
}

void free_state(void* memory, std::size_t bytes) noexcept {
  if (bytes != StatePool::kBytes || pool.kept >= StatePool::kMaxKept)
    return ::operator delete(memory);
  ++pool.kept;
  pool.head = new (memory) StatePool::Free{pool.head};
}

StateBase::~StateBase() {
  auto* node = continuations_.load(std::memory_order_acquire);
  while (node != nullptr && node != closed()) delete std::exchange(node, node->next);
}

void StateBase::wait() noexcept {
  while (!wait_for(std::chrono::hours(1))) {
  }
}

bool StateBase::wait_for(std::chrono::nanoseconds time) noexcept {
  if (ready()) return true;
  const auto start = std::chrono::steady_clock::now();
  if (progress_ != nullptr) {
    const auto spin = std::min<std::chrono::nanoseconds>(progress_->spin_time(), time);
    const int at_once = spin > std::chrono::nanoseconds::zero() ? kLooksPerClock : 1;
    do {
      for (int looks = 0; looks < at_once; ++looks) {
        progress_->poll();
        if (ready()) return true;
      }
    } while (std::chrono::steady_clock::now() - start < spin);
    progress_->before_sleep();
    progress_->poll();
  }
  for (;;) {
    std::uint32_t state = kPending;
    ready_.compare_exchange_strong(state, kSleeper, std::memory_order_acq_rel);
    if (state == kReady) return true;
    const auto left = time - (std::chrono::steady_clock::now() - start);
    if (left <= std::chrono::nanoseconds::zero()) return false;
    const timespec limit{.tv_sec = static_cast<time_t>(left.count() / 1'000'000'000),
                         .tv_nsec = static_cast<long>(left.count() % 1'000'000'000)};
    futex_wait(ready_, kSleeper, &limit);
  }
}

void StateBase::attach(Continuation* continuation) noexcept {
  auto* head = continuations_.load(std::memory_order_acquire);
  do {
    if (head == closed()) {
      run(continuation);
      return;
    }
    continuation->next = head;
  } while (!continuations_.compare_exchange_weak(head, continuation, std::memory_order_acq_rel));
}

void StateBase::publish() noexcept {
  retain();  // a continuation may drop the last outside reference
  if (ready_.exchange(kReady, std::memory_order_acq_rel) == kSleeper) {
    syscall(SYS_futex, reinterpret_cast<std::uint32_t*>(&ready_), FUTEX_WAKE_PRIVATE, INT_MAX,
            nullptr, nullptr, 0);
  }
  auto* newest = continuations_.exchange(closed(), std::memory_order_acq_rel);
  Continuation* here = nullptr;  // reversed, so that they run in the order they were attached
  Continuation* elsewhere = nullptr;
  while (newest != nullptr) {
    newest->errand.begin();
    auto*& list = must_not_wait && !newest->quick ? elsewhere : here;
    auto* const next = std::exchange(newest->next, list);
    list = std::exchange(newest, next);
  }
  if (elsewhere != nullptr) ContinuationThreads::instance().give(elsewhere);
  run_all(here);
  release();
}

}  // namespace troupe::detail

namespace troupe {

Future<void> when_all(std::vector<Future<void>> futures) {
  struct Joint {
    std::atomic<std::size_t> left;
    std::vector<Future<void>> parts;
    Promise<void> promise;
  };
  if (futures.empty()) return Future<void>(Result<void>());
  auto joint = std::make_shared<Joint>();
  joint->left = futures.size();
  joint->parts = std::move(futures);
  auto result = joint->promise.future();
  const auto count = joint->parts.size();  // the last continuation clears the vector
  for (std::size_t i = 0; i < count; ++i) {
    joint->parts[i].attach(
        [joint] {
          if (joint->left.fetch_sub(1) != 1) return;
          Result<void> outcome;
          for (const auto& part : joint->parts) {
            if (outcome.ok()) {
              outcome = part.state_->outcome();
            } else {
              (void)part.wait();
            }
          }
          joint->promise.resolve(std::move(outcome));
          joint->parts.clear();
        },
        true, false);
  }
  return result;
}

}  // namespace troupe
