#pragma once

#include <cstdint>

#include "device_host/engine/cuda/launch.hpp"

namespace troupe::host::cuda::kernels {

/// to = alpha from, or its conjugate: dense matrices of T in device memory, which is float, double,
/// float2 or double2. Element (i, j) is at i * row_step + j * column_step. `to` may be `from`.
template <class T>
struct ScaledCopy {
  std::int64_t rows = 0, columns = 0;
  const T* from = nullptr;
  std::int64_t from_row_step = 1, from_column_step = 0;
  T* to = nullptr;
  std::int64_t to_row_step = 1, to_column_step = 0;
  ScalarValue<T> alpha;
  bool conjugate = false;
};

/// Loads the kernels onto the current device.
cudaError_t preload_triangular();

/// Queues the copy; there may be no elements.
template <class T>
cudaError_t copy_scaled(const Launch& launch, const ScaledCopy<T>& copy);

}  // namespace troupe::host::cuda::kernels
