#pragma once

#include "lib/sparse/dense/spmm_kernels.cuh"
#include "lib/sparse/looks/sums.hpp"

/// The looks at products of sparse matrices on the cuda engine: see sums.hpp. T is float,
/// double, float2 or double2, I std::int32_t or std::int64_t.
namespace troupe::host::cuda::kernels {

/// Loads the kernels onto the current device: loaded later, the first launch would pay for it.
cudaError_t preload_checks();

/// The first element of C, counted row by row, that is wrong, kNothingWrong if none is,
/// and what was found of it.
struct SparseVerdict {
  static constexpr unsigned long long kNothingWrong = ~0ull;
  unsigned long long first = kNothingWrong;
  sums::SparseJudgement judged;
};
/// A product whose matrix is in sliced ELL, with so many rows in a slice: row_begin has where each
/// slice begins.
template <class T, class I>
struct SlicedProduct : SparseProduct<T, I> {
  std::int64_t slice_rows = 0;
};
/// A product that has been carried out; `before`: what C was, if it was read. Queues on the
/// launch's stream and returns.
template <class T, class I>
cudaError_t judge(const Launch& launch, const SparseProduct<T, I>& product, const T* before,
                  const sums::Rounding& rounding, SparseVerdict* verdict);
template <class T, class I>
cudaError_t judge(const Launch& launch, const SlicedProduct<T, I>& product, const T* before,
                  const sums::Rounding& rounding, SparseVerdict* verdict);

/// Makes an element grossly wrong, and finite: for tests.
template <class T>
cudaError_t spoil(const Launch& launch, T* element);

}  // namespace troupe::host::cuda::kernels
