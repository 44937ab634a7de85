#pragma once

#include <array>
#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>

#include <troupe/error.hpp>
#include <troupe/lib/operation.hpp>

#include "common/ipc/unique_fd.hpp"
#include "device_host/engine/queue.hpp"

/// A thread that executes the tasks of one or several queues.
namespace troupe::host::cpu {

/// A failure of a queue: every mark carries it that is reached before it is over. Most are over
/// once they have been reported; that of a collective lasts as long as the communicator that
/// failed.
struct Failure {
  Error error;
  std::shared_ptr<std::atomic<bool>> over;
  bool lasts = false;  ///< beyond its report

  void reported() const {
    if (!lasts) over->store(true);
  }
};

/// What a mark stands for. `failure` is written before `reached`.
struct MarkState {
  std::atomic<int> reached = 0;
  std::shared_ptr<Failure> failure;
};

/// The eventfd on which the reactor sleeps. Any thread.
class CompletionSignal {
 public:
  CompletionSignal();
  [[nodiscard]] int fd() const noexcept { return fd_.get(); }
  void arm() noexcept { armed_.store(true); }
  /// Signals if armed. Call after the mark is visible as reached: then either this sees the
  /// reactor's arming or the reactor, which looks at its marks after arming, sees the mark.
  void mark_reached() noexcept;

 private:
  UniqueFd fd_;
  std::atomic<bool> armed_ = false;
};

struct Task {
  Queue queue;
  std::function<void()> work = {};           ///< may throw: that fails the queue
  std::function<void()> then = {};           ///< called afterwards in any case; does not throw
  std::shared_ptr<MarkState> wait_for = {};  ///< a mark of another queue, waited for first
  std::shared_ptr<MarkState> mark = {};      ///< reached afterwards
  std::shared_ptr<std::atomic<bool>> failure_over =
      {};  ///< when a failure is over; empty: once it is reported
};

/// Executes each queue's tasks in order, and of several queues the oldest task that need not wait:
/// a queue whose turn it is not holds up no other one.
class Worker {
 public:
  /// Tasks that fit into all queues together. Marks and waits still fit when work no longer does,
  /// so that what is queued can always be waited for.
  static constexpr std::size_t kWorkLimit = 65536;
  static constexpr std::size_t kLimit = 2 * kWorkLimit;

  /// `name` is the thread's, below 16 characters.
  Worker(const char* name, CompletionSignal& signal);
  ~Worker();
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  /// Any thread, never blocks. Errors: would_block.
  Result<void> push(Task task);
  /// A mark was reached somewhere: a task that waits for it may go on. Any thread.
  void look_again() noexcept;
  /// Whom to tell of marks that are reached here. Before the first task.
  void set_listener(std::function<void()> listener) { listener_ = std::move(listener); }
  /// From now on tasks' work is skipped; marks are still reached. Any thread.
  void drop_work() noexcept { dropping_.store(true); }
  /// Returns when everything queued is executed and the thread has ended. Nothing is pushed any
  /// more.
  void finish();

 private:
  struct Waiting {
    std::uint64_t number;  ///< in the order of push()
    Task task;
  };

  void loop();
  /// The queue whose first task comes next; nullptr if all wait. With the mutex.
  std::deque<Waiting>* next();
  void execute(Task& task);

  CompletionSignal& signal_;
  std::function<void()> listener_;
  std::atomic<bool> dropping_ = false;
  std::array<std::shared_ptr<Failure>, kQueueCount> failures_;  // the worker's thread only

  std::mutex mutex_;
  std::condition_variable wake_;
  std::array<std::deque<Waiting>, kQueueCount> queues_;
  std::size_t waiting_ = 0;  ///< tasks in all queues
  std::uint64_t pushed_ = 0;
  std::atomic<bool> stalled_ = false;  ///< all that is queued waits for marks
  bool ending_ = false;
  std::thread thread_;
};

}  // namespace troupe::host::cpu
