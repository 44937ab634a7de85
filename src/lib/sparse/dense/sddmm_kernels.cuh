#pragma once

#include <cstdint>

#include "device_host/engine/cuda/launch.hpp"

namespace troupe::host::cuda::kernels {

/// The elements of alpha A B + beta C that a matrix C of dense blocks has, in device memory; T is
/// float, double, float2 or double2, I std::int32_t or std::int64_t. Element (i, j) of A and of B
/// is at i * row_step + j * column_step.
template <class T, class I>
struct SampledProduct {
  std::int64_t block_rows = 0, extent = 1, blocks = 0;  ///< of C; extent: of a block
  const I *row_begin = nullptr, *column = nullptr;
  bool by_column = false;  ///< how the elements of a block follow one another
  T* value = nullptr;
  std::int64_t k = 0;  ///< columns of A
  const T* a = nullptr;
  std::int64_t a_row_step = 0, a_column_step = 0;
  const T* b = nullptr;
  std::int64_t b_row_step = 0, b_column_step = 0;
  ScalarValue<T> alpha, beta;
};

/// Loads the kernels onto the current device.
cudaError_t preload_sddmm();

/// Queues the product. The same inputs give the same bits in every run. There are blocks.
template <class T, class I>
cudaError_t sddmm(const Launch& launch, const SampledProduct<T, I>& product);

}  // namespace troupe::host::cuda::kernels
