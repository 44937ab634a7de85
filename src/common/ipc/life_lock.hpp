#pragma once

#include <pthread.h>

#include <chrono>

namespace troupe::ipc {

/// A lock in shared memory that a process holds for its whole life: who waits for it learns of the
/// death of its holder at once.
///
/// Intuition: when a process dies the kernel marks the robust mutexes it held and wakes who waits
/// for them before it tears down the address space and closes descriptors. With a CUDA context that
/// teardown takes some 0.05 to 0.1 s, and only then do sockets and pidfds tell of the end.
class LifeLock {
 public:
  /// By the process that makes the shared memory, before the other has it.
  void init() noexcept;
  /// By the thread that is to be watched: its own end counts, which comes with the process's.
  void hold() noexcept;

  enum class Wait { died, time_out };
  /// Waits for the holder's end, for about `timeout`. Memory that has been overwritten may count as
  /// died. Only once the holder holds it.
  Wait wait_for_end(std::chrono::nanoseconds timeout) noexcept;

 private:
  pthread_mutex_t mutex_;
};

}  // namespace troupe::ipc
