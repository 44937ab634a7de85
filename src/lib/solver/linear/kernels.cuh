#pragma once

#include <cstdint>

#include "device_host/engine/cuda/launch.hpp"

/// What cuSOLVER leaves to do: some of its functions have pivots of 32 bits, others of 64; sytrf
/// misses a first block that is zero, and trtri writes a diagonal that it takes for ones (12.0).
namespace troupe::host::cuda::kernels {

/// Copies the pivots of a matrix of that order; those outside of it become ones that exchange
/// nothing.
cudaError_t copy_pivots(const Launch& launch, const std::int64_t* from, std::int64_t* to,
                        std::int64_t count, std::int64_t order);
cudaError_t copy_pivots(const Launch& launch, const int* from, std::int64_t* to, std::int64_t count,
                        std::int64_t order);
cudaError_t copy_pivots(const Launch& launch, const std::int64_t* from, int* to, std::int64_t count,
                        std::int64_t order);

/// info = which block of D is the first in the order of elimination that is zero or no number, from
/// 1, or 0; a negative one stays. `pivots`: those of sytrf, negative ones of blocks 2 x 2. T:
/// float, double, float2, double2.
template <class T>
cudaError_t find_singular(const Launch& launch, const T* a, std::int64_t lda, const int* pivots,
                          int n, bool upper, int* info);
/// n > 0 elements, `from_step` and `to_step` elements apart.
template <class T>
cudaError_t copy_diagonal(const Launch& launch, const T* from, std::int64_t from_step, T* to,
                          std::int64_t to_step, std::int64_t n);

}  // namespace troupe::host::cuda::kernels
