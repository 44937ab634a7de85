#pragma once

#include <atomic>
#include <cstdint>

namespace troupe {

/// A count that is raised by one thread at a time and lowered by one at a time, each without a
/// locked instruction: such a one waits until all that was stored before it has left the core.
/// Either side has a cache line of its own.
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
  /// For those that raise: whether value() is no more than this. The other side's line is read only
  /// where the answer depends on it.
  [[nodiscard]] bool is_at_most(std::uint64_t most) noexcept {
    const auto raised = raised_.load(std::memory_order_relaxed);
    if (raised - lowered_seen_ > most) lowered_seen_ = lowered_.load(std::memory_order_acquire);
    return raised - lowered_seen_ <= most;
  }

 private:
  alignas(64) std::atomic<std::uint64_t> raised_{0};
  std::uint64_t lowered_seen_ = 0;  ///< by those that raise
  alignas(64) std::atomic<std::uint64_t> lowered_{0};
};

}  // namespace troupe
