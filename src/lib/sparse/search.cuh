#pragma once

#include <cstdint>

namespace troupe::host::cuda::kernels {

/// How many of `count` ascending numbers are below x, or not above it.
template <class N>
__device__ std::int64_t count_below(const N* ascending, std::int64_t count, std::int64_t x,
                                    bool or_equal) {
  std::int64_t low = 0, high = count;
  while (low < high) {
    const std::int64_t middle = low + (high - low) / 2;
    const auto number = static_cast<std::int64_t>(ascending[middle]);
    if (number < x || (or_equal && number == x)) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low;
}

/// Which row of a CSR matrix element k is in; `rows` if none.
template <class I>
__device__ std::int64_t row_of(const I* row_begin, std::int64_t rows, std::int64_t k) {
  const auto row = count_below(row_begin, rows + 1, k, true) - 1;
  return row < 0 ? rows : row;
}

}  // namespace troupe::host::cuda::kernels
