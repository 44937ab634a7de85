#pragma once

#include <cstdint>
#include <mutex>
#include <utility>
#include <vector>

#include <troupe/corruption.hpp>

namespace troupe::rank_process {

/// The wrong numbers that were found, and how many intervals were verified. Any thread.
class CorruptionStatus {
 public:
  [[nodiscard]] std::vector<Corruption> all() const {
    const std::lock_guard lock(mutex_);
    return all_;
  }
  void add(Corruption corruption) {
    const std::lock_guard lock(mutex_);
    all_.push_back(std::move(corruption));
  }
  /// Intervals between commits that were done twice.
  [[nodiscard]] std::int64_t verified() const {
    const std::lock_guard lock(mutex_);
    return verified_;
  }
  void count_verified() {
    const std::lock_guard lock(mutex_);
    ++verified_;
  }

 private:
  mutable std::mutex mutex_;
  std::vector<Corruption> all_;
  std::int64_t verified_ = 0;
};

}  // namespace troupe::rank_process
