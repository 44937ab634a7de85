#pragma once

#include "lib/sparse/common/numbers.cuh"
#include "lib/sparse/formats/kernels.cuh"

/// Places of a sparse matrix that occur more than once, and count as the sum of their elements.
namespace troupe::host::cuda::kernels {

/// The sum of all elements at the place of element k, which is in that row, in the order in which
/// they stand; false if k is not the first of them. The elements of a block stand in the order of
/// the matrix, so that those of one row are neighbours: at most as many as a block has columns,
/// unless some occur more than once.
template <class T, class I>
__device__ bool sum_at_place(const GivenRows<T, I>& from, const BlockedOrder<I>& elements,
                             std::uint64_t k, std::int64_t row, T* sum) {
  const auto count = static_cast<std::uint64_t>(elements.count);
  const auto key = elements.key[k];
  const std::int64_t begin = from.row_begin[row], end = from.row_begin[row + 1];
  const I column = from.column[elements.place[k]];
  for (auto i = k; i > 0 && elements.key[i - 1] == key && elements.place[i - 1] >= begin; --i) {
    if (from.column[elements.place[i - 1]] == column) return false;
  }
  *sum = from.value[elements.place[k]];
  for (auto i = k + 1; i < count && elements.key[i] == key && elements.place[i] < end; ++i) {
    if (from.column[elements.place[i]] == column) *sum = add(*sum, from.value[elements.place[i]]);
  }
  return true;
}

}  // namespace troupe::host::cuda::kernels
