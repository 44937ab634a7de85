#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <initializer_list>

namespace troupe::dnn {

inline constexpr std::size_t kMaxSpatial = 3;

/// A number for each spatial dimension, the slowest first: {height, width}.
struct Sizes {
  std::uint32_t rank = 0;  ///< more than kMaxSpatial is refused when the operation is submitted
  std::array<std::int64_t, kMaxSpatial> size{};

  Sizes() = default;
  Sizes(std::initializer_list<std::int64_t> list) : rank(static_cast<std::uint32_t>(list.size())) {
    std::copy_n(list.begin(), std::min(list.size(), kMaxSpatial), size.begin());
  }
  /// These, or `value` in each of `dimensions` dimensions where there are none.
  [[nodiscard]] Sizes or_all(std::int64_t value, std::uint32_t dimensions) const {
    Sizes sizes = *this;
    if (rank > 0 || dimensions > kMaxSpatial) return sizes;
    sizes.rank = dimensions;
    std::fill_n(sizes.size.begin(), dimensions, value);
    return sizes;
  }
};

}  // namespace troupe::dnn
