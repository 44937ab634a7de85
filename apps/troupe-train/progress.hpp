#pragma once

#include <chrono>
#include <cstdio>
#include <mutex>

namespace troupe::train {

/// Lines of progress, which come as the device gets there. Any thread.
class Progress {
 public:
  explicit Progress(double tokens_of_step) : tokens_of_step_(tokens_of_step) {}

  /// That step is done. A step that is repeated after a fault is no news.
  void done(std::int64_t step, float loss) {
    const std::lock_guard lock(mutex_);
    const auto now = Clock::now();
    if (step <= last_) return;
    if (last_ < 0) {
      first_ = step, began_ = now;
      std::printf("step %lld: loss %.4f\n", static_cast<long long>(step),
                  static_cast<double>(loss));
    } else {
      std::printf("step %lld: loss %.4f, %.4g tokens/s\n", static_cast<long long>(step),
                  static_cast<double>(loss),
                  tokens_of_step_ * static_cast<double>(step - last_) / seconds(ended_, now));
    }
    std::fflush(stdout);
    last_ = step, ended_ = now;
  }
  struct Span {
    std::int64_t steps;
    double seconds;
  };
  /// From the first line to the last one.
  [[nodiscard]] Span span() const {
    const std::lock_guard lock(mutex_);
    return {last_ - first_, seconds(began_, ended_)};
  }

 private:
  using Clock = std::chrono::steady_clock;
  static double seconds(Clock::time_point from, Clock::time_point to) {
    return std::chrono::duration<double>(to - from).count();
  }

  const double tokens_of_step_;
  mutable std::mutex mutex_;
  std::int64_t first_ = -1, last_ = -1;
  Clock::time_point began_, ended_;
};

}  // namespace troupe::train
