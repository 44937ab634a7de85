#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

namespace troupe::trace {

/// Places slices on tracks, where they may hold one another but must not overlap in part.
class Tracks {
 public:
  struct Placed {
    std::size_t lane = 0;  ///< of the track, from 0
    std::int64_t begin = 0;
  };

  /// Commands of one queue run one after another, and those that were found done together end
  /// together: a command begins when it was issued, and not before those found done earlier have
  /// ended. One that ends before an earlier one has ended is on another lane.
  Placed place(std::uint32_t track, std::int64_t issued, std::int64_t end) {
    auto& lanes = lanes_[track];
    const auto it =
        std::find_if(lanes.begin(), lanes.end(), [&](const Lane& l) { return end >= l.end; });
    const auto lane = static_cast<std::size_t>(it - lanes.begin());
    if (it == lanes.end()) lanes.push_back({issued, issued});
    auto& at = lanes[lane];
    const auto begin = std::min(end, std::max(issued, end == at.end ? at.begin : at.end));
    at = {begin, end};
    return {lane, begin};
  }

  /// The lane of a slice whose times are exact.
  std::size_t place_apart(std::uint32_t track, std::int64_t begin, std::int64_t end) {
    auto& lanes = lanes_[track];
    const auto it =
        std::find_if(lanes.begin(), lanes.end(), [&](const Lane& l) { return begin >= l.end; });
    const auto lane = static_cast<std::size_t>(it - lanes.begin());
    if (it == lanes.end()) lanes.emplace_back();
    lanes[lane] = {begin, end};
    return lane;
  }

 private:
  struct Lane {
    std::int64_t begin = 0, end = 0;  ///< of its last slice
  };
  std::map<std::uint32_t, std::vector<Lane>> lanes_;
};

}  // namespace troupe::trace
