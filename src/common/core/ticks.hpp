#pragma once

#include <cstdint>

#include <troupe/clock.hpp>

namespace troupe {

/// The processor's own counter: constant in rate and the same on all cores of a node, as the clock
/// is, but read in a few nanoseconds. For time stamps of every operation; TickScale makes times of
/// them.
inline std::uint64_t ticks() noexcept {
#if defined(__x86_64__)
  return __builtin_ia32_rdtsc();
#elif defined(__aarch64__)
  std::uint64_t value = 0;
  asm volatile("mrs %0, cntvct_el0" : "=r"(value));
  return value;
#else
  return static_cast<std::uint64_t>(SteadyClock::time().count());
#endif
}

/// What ticks since its making mean in time. Exact to the clock's drift over that span; immutable,
/// any thread.
class TickScale {
 public:
  TickScale() = default;

  /// Times of ticks, as of one moment: the longer the scale has lived, the better it knows the
  /// rate.
  class Reading {
   public:
    [[nodiscard]] TimePoint time_of(std::uint64_t then) const noexcept {
      const auto ago = static_cast<double>(static_cast<std::int64_t>(ticks_ - then));
      return time_ - TimePoint(static_cast<std::int64_t>(ago * ns_per_tick_));
    }
    [[nodiscard]] TimePoint now() const noexcept { return time_; }

    Reading(std::uint64_t ticks, TimePoint time, double ns_per_tick) noexcept
        : ticks_(ticks), time_(time), ns_per_tick_(ns_per_tick) {}

   private:
    std::uint64_t ticks_;
    TimePoint time_;
    double ns_per_tick_;
  };

  [[nodiscard]] Reading read() const noexcept {
    const auto now = ticks();
    const auto time = SteadyClock::time();
    const auto span = static_cast<double>(now - ticks_);
    return {now, time, span != 0 ? static_cast<double>((time - time_).count()) / span : 1};
  }

 private:
  std::uint64_t ticks_ = ticks();
  TimePoint time_ = SteadyClock::time();
};

}  // namespace troupe
