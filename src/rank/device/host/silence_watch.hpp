#pragma once

#include <algorithm>
#include <chrono>
#include <utility>

#include <troupe/clock.hpp>

namespace troupe::rank_process {

/// How long a device host has said nothing, as far as regular looks have seen time pass.
///
/// The time between two looks counts as `longest_look` at most. A virtual machine may stand still
/// and let its processes go on in any order afterwards; a device host is not late because of that.
class SilenceWatch {
 public:
  explicit SilenceWatch(std::chrono::nanoseconds longest_look) : longest_look_(longest_look) {}

  void start(TimePoint now) { looked_ = now; }
  /// Ahead of what one look asks.
  void look(TimePoint now) {
    passed_ = std::min(now - std::exchange(looked_, now), longest_look_);
    seen_ += passed_;
  }
  /// All the time that looks have seen pass.
  [[nodiscard]] TimePoint seen() const noexcept { return seen_; }
  /// `beat`: when the host that serves has beaten last. Once a look.
  [[nodiscard]] std::chrono::nanoseconds silent(TimePoint beat) {
    const bool same = std::exchange(beat_, beat) == beat;
    return silent_ = same ? silent_ + passed_ : std::min(looked_ - beat, passed_);
  }

 private:
  std::chrono::nanoseconds longest_look_, passed_{0}, silent_{0};
  TimePoint looked_{}, seen_{}, beat_{};
};

}  // namespace troupe::rank_process
