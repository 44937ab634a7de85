#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>

namespace troupe {

/// Nanoseconds on a monotonic clock that all processes of a node share (CLOCK_MONOTONIC).
using TimePoint = std::chrono::nanoseconds;

/// Where protocol code gets the time from: the real clock in production, a manual one in tests.
class Clock {
 public:
  virtual ~Clock() = default;
  [[nodiscard]] virtual TimePoint now() const noexcept = 0;
};

/// The clock of the system that never goes back.
class SteadyClock final : public Clock {
 public:
  [[nodiscard]] TimePoint now() const noexcept override {
    return std::chrono::steady_clock::now().time_since_epoch();
  }
  /// For places that have no clock passed in: time stamps in shared memory, reports.
  static TimePoint time() noexcept { return std::chrono::steady_clock::now().time_since_epoch(); }
};

/// Moves only when told to. Any thread may read it.
class ManualClock final : public Clock {
 public:
  [[nodiscard]] TimePoint now() const noexcept override { return TimePoint(now_.load()); }
  void advance(std::chrono::nanoseconds by) { now_.fetch_add(by.count()); }

 private:
  std::atomic<std::int64_t> now_{0};
};

inline double to_ms(std::chrono::nanoseconds time) noexcept {
  return std::chrono::duration<double, std::milli>(time).count();
}

}  // namespace troupe
