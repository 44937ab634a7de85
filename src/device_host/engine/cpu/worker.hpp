#pragma once

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

/// A thread that executes queued tasks in order, for one or several lanes.
namespace troupe::host::cpu {

/// A failure of a lane: every mark carries it that is reached before it is over. On most lanes it
/// is over once it has been reported; on the collective lane it lasts as long as the communicator
/// that failed.
struct Failure {
  Error error;
  std::shared_ptr<std::atomic<bool>> over;
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
  Lane lane{};
  std::function<void()> work = {};           ///< may throw: that fails the lane
  std::function<void()> then = {};           ///< called afterwards in any case; does not throw
  std::shared_ptr<MarkState> wait_for = {};  ///< a mark of another worker, waited for first
  std::shared_ptr<MarkState> mark = {};      ///< reached afterwards
  std::shared_ptr<std::atomic<bool>> failure_over =
      {};  ///< when a failure is over; empty: once it is reported
};

class Worker {
 public:
  /// Tasks that fit into the queue. Marks and waits still fit when work no longer does, so that
  /// what is queued can always be waited for.
  static constexpr std::size_t kWorkLimit = 65536;
  static constexpr std::size_t kLimit = 2 * kWorkLimit;

  /// `name` is the thread's, below 16 characters.
  Worker(const char* name, CompletionSignal& signal);
  ~Worker();
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  /// Any thread, never blocks. Errors: would_block.
  Result<void> push(Task task);
  /// From now on tasks' work is skipped; marks are still reached. Any thread.
  void drop_work() noexcept { dropping_.store(true); }

 private:
  void loop();
  void execute(Task& task);

  CompletionSignal& signal_;
  std::atomic<bool> dropping_ = false;
  std::shared_ptr<Failure> failures_[kLaneCount];  // the worker's thread only

  std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<Task> queue_;
  bool ending_ = false;
  std::thread thread_;
};

}  // namespace troupe::host::cpu
