#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <vector>

#include <troupe/clock.hpp>

namespace troupe {

/// At most so many restarts in any window of time. Once it is spent, restarting is not the cure.
///
/// The window slides: a restart counts until exactly `window` after it. Not synchronised; time is
/// passed in and must not run backwards.
class RestartBudget {
 public:
  RestartBudget(int max_restarts, std::chrono::nanoseconds window)
      : max_restarts_(static_cast<std::size_t>(std::max(max_restarts, 0))), window_(window) {}

  /// Takes one restart out of the budget; false if there is none left at `now`.
  [[nodiscard]] bool spend(TimePoint now) {
    std::erase_if(spent_, [&](TimePoint then) { return now - then >= window_; });
    if (spent_.size() >= max_restarts_) return false;
    spent_.push_back(now);
    return true;
  }

  /// How many restarts are left at `now`.
  [[nodiscard]] int left(TimePoint now) const {
    const auto counting = std::count_if(spent_.begin(), spent_.end(),
                                        [&](TimePoint then) { return now - then < window_; });
    return static_cast<int>(max_restarts_) - static_cast<int>(counting);
  }

  [[nodiscard]] int max_restarts() const noexcept { return static_cast<int>(max_restarts_); }
  [[nodiscard]] std::chrono::nanoseconds window() const noexcept { return window_; }

 private:
  std::size_t max_restarts_;
  std::chrono::nanoseconds window_;
  std::vector<TimePoint> spent_;
};

}  // namespace troupe
