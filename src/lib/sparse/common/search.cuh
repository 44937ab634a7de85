#pragma once

#include <cstdint>
#include <type_traits>

/// Searches in device memory.
namespace troupe::host::cuda::kernels {

/// How many of `count` ascending numbers are below x, or not above it. -1 is above all others, as
/// it is sorted.
template <class N>
__device__ std::int64_t count_below(const N* ascending, std::int64_t count, std::int64_t x,
                                    bool or_equal) {
  std::int64_t low = 0, high = count;
  const auto limit = static_cast<std::uint64_t>(x);
  while (low < high) {
    const std::int64_t middle = low + (high - low) / 2;
    const auto number =
        static_cast<std::uint64_t>(static_cast<std::make_unsigned_t<N>>(ascending[middle]));
    if (number < limit || (or_equal && number == limit)) {
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
