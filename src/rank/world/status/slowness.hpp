#pragma once

#include <mutex>
#include <optional>
#include <utility>

#include "rank/protocol/message.hpp"

namespace troupe::rank_process {

/// The finding that this rank is slower than the others, once the leader has made it. Any thread.
class Slowness {
 public:
  /// The first finding counts.
  void set(const from_supervisor::Slow& slow) {
    const std::lock_guard lock(mutex_);
    if (found_) return;
    found_ = slow;
    untold_ = true;
  }
  [[nodiscard]] std::optional<from_supervisor::Slow> found() const {
    const std::lock_guard lock(mutex_);
    return found_;
  }
  /// The finding, once.
  [[nodiscard]] std::optional<from_supervisor::Slow> take() {
    const std::lock_guard lock(mutex_);
    return std::exchange(untold_, false) ? found_ : std::nullopt;
  }

 private:
  mutable std::mutex mutex_;
  std::optional<from_supervisor::Slow> found_;
  bool untold_ = false;
};

}  // namespace troupe::rank_process
