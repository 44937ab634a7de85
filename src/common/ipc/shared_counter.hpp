#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>

namespace troupe::ipc {

/// A counter in shared memory that a thread of either process can wait for. Zero-filled memory is
/// one that stands at 0.
class SharedCounter {
 public:
  [[nodiscard]] std::uint32_t value() const noexcept { return value_.load(); }
  /// Counts on and wakes who waits; all that this thread did before is seen by who sees the count.
  void advance() noexcept;
  /// Waits until the counter differs from `seen`, for about `timeout` at most; what it is then.
  std::uint32_t wait_beyond(std::uint32_t seen, std::chrono::nanoseconds timeout) noexcept;

 private:
  std::atomic<std::uint32_t> value_;
};

}  // namespace troupe::ipc
