#pragma once

#include <cstddef>
#include <cstdint>

#include "device_host/engine/cuda/launch.hpp"
#include "lib/sparse/formats/kernels.cuh"

/// CSR matrices in blocked ELL form. T is float, double, float2 or double2, I std::int32_t or
/// std::int64_t. Every function queues on the launch's stream and returns.
namespace troupe::host::cuda::kernels {

cudaError_t preload_blocked_ell();

/// *width, which is 0, becomes the largest distance between two of block_rows + 1 offsets, at least
/// one row.
template <class I>
cudaError_t find_width(const Launch& launch, std::int64_t block_rows, const I* row_begin,
                       std::int64_t* width);

/// Where blocks go: `capacity` of them, at least one, for each row of blocks.
template <class T, class I>
struct EllTarget {
  std::int64_t block = 0, capacity = 0;
  I* column = nullptr;
  T* value = nullptr;
};
/// All places become padding.
template <class T, class I>
cudaError_t pad(const Launch& launch, std::int64_t block_rows, const std::int64_t* width,
                const EllTarget<T, I>& to);
/// The blocks with an element: `before` and row_begin as mark_blocks() and begin_block_rows() say.
/// Neither of the two writes anything where *width is above the capacity.
template <class T, class I>
cudaError_t fill_ell(const Launch& launch, const GivenRows<T, I>& from,
                     const BlockedOrder<I>& elements, const std::int64_t* before,
                     const I* row_begin, const std::int64_t* width, const EllTarget<T, I>& to);

}  // namespace troupe::host::cuda::kernels
