#pragma once

#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <troupe/gpu_health.hpp>

namespace troupe::rank_process {

/// What the GPUs of all ranks have said of their health. Any thread.
class HealthStatus {
 public:
  [[nodiscard]] std::vector<HealthEvent> events() const {
    const std::lock_guard lock(mutex_);
    return events_;
  }
  void add(HealthEvent event) {
    const std::lock_guard lock(mutex_);
    events_.push_back(std::move(event));
  }
  /// Why this rank's GPU, which says that it is failing, is to be left; nullopt: it is not.
  [[nodiscard]] std::optional<std::string> failing() const {
    const std::lock_guard lock(mutex_);
    return failing_;
  }
  /// The first reason counts.
  void set_failing(const std::string& why) {
    const std::lock_guard lock(mutex_);
    if (!failing_) failing_ = why;
  }

 private:
  mutable std::mutex mutex_;
  std::vector<HealthEvent> events_;
  std::optional<std::string> failing_;
};

}  // namespace troupe::rank_process
