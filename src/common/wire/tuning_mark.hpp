#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <span>

namespace troupe::wire {

/// What a library's plan begins with that comes of a measurement, and is worth keeping from run to
/// run.
inline constexpr std::array<char, 16> kTuningMark = {'t', 'r', 'o', 'u', 'p', 'e', ' ',
                                                     't', 'u', 'n', 'i', 'n', 'g'};

inline bool is_tuning(std::span<const std::byte> plan) {
  return plan.size() > kTuningMark.size() && std::equal(kTuningMark.begin(), kTuningMark.end(),
                                                        reinterpret_cast<const char*>(plan.data()));
}

}  // namespace troupe::wire
