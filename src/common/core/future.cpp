#include <troupe/future.hpp>

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <climits>
#include <ctime>

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

void run(StateBase::Continuation* continuation) noexcept {
  ++continuations;
  continuation->run();
  delete continuation;
  --continuations;
}

/// How often a waiter looks between two readings of the clock, which cost as much as a look.
constexpr int kLooksPerClock = 16;

}  // namespace

bool in_continuation() noexcept {
  return continuations > 0;
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
  Continuation* oldest = nullptr;  // reverse, so that they run in the order they were attached
  while (newest != nullptr) {
    auto* next = std::exchange(newest->next, oldest);
    oldest = std::exchange(newest, next);
  }
  while (oldest != nullptr) {
    auto* next = oldest->next;
    run(std::exchange(oldest, next));
  }
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
    joint->parts[i].attach([joint] {
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
    });
  }
  return result;
}

}  // namespace troupe
