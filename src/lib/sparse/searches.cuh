#pragma once

#include <cstdint>

/// Searches in device memory.
namespace troupe::host::cuda::kernels {

/// How many of `count` ascending numbers are below x, or not above it.
template <class I>
__device__ std::int64_t count_below(const I* ascending, std::int64_t count, std::int64_t x,
                                    bool or_equal) {
  std::int64_t low = 0, high = count;
  while (low < high) {
    const std::int64_t middle = low + (high - low) / 2;
    const std::int64_t number = ascending[middle];
    if (number < x || (or_equal && number == x)) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low;
}

}  // namespace troupe::host::cuda::kernels
