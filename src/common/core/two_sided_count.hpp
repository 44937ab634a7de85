#pragma once

#include <atomic>
#include <cstdint>

namespace troupe {

/// A count that is raised by one thread at a time and lowered by one at a time, each without a
/// locked instruction: such a one waits until all that was stored before it has left the core.
class TwoSidedCount {
 public:
  /// Whoever raises serialises.
  void raise(std::uint64_t by = 1) noexcept {
    raised_.store(raised_.load(std::memory_order_relaxed) + by, std::memory_order_relaxed);
  }
  /// Whoever lowers serialises; nothing is lowered that was not raised before.
  void lower(std::uint64_t by = 1) noexcept {
    lowered_.store(lowered_.load(std::memory_order_relaxed) + by, std::memory_order_release);
  }
  /// For those that raise: at least what it is. What was done before a lower() that it counts is
  /// seen.
  [[nodiscard]] std::uint64_t value() const noexcept {
    const auto lowered = lowered_.load(std::memory_order_acquire);
    return raised_.load(std::memory_order_relaxed) - lowered;
  }

 private:
  std::atomic<std::uint64_t> raised_{0}, lowered_{0};
};

}  // namespace troupe
