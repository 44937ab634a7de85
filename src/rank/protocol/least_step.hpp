#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace troupe::rank_process {

/// How far all of a group are, each of whom says ever greater steps.
class LeastStep {
 public:
  /// All of them are at this step.
  void begin(std::size_t size, std::int64_t step) {
    steps_.assign(size, step);
    least_ = step;
  }
  /// `count` of them from `first` on are that far. The step that all have reached, if it has grown.
  std::optional<std::int64_t> say(std::size_t first, std::size_t count, std::int64_t step) {
    for (auto i = first; i < first + count; ++i) steps_[i] = std::max(steps_[i], step);
    const auto least = *std::min_element(steps_.begin(), steps_.end());
    if (least <= least_) return std::nullopt;
    return least_ = least;
  }

 private:
  std::vector<std::int64_t> steps_;
  std::int64_t least_ = -1;
};

}  // namespace troupe::rank_process
