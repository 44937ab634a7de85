#pragma once

#include <cstdint>

#include "device_host/engine/cuda/launch.hpp"

namespace troupe::host::cuda::kernels {

/// C = alpha op(A) B + beta C, in device memory; T is float, double, float2 or double2, I
/// std::int32_t or std::int64_t. Element (i, j) of B is at i * b_row_step + j * b_column_step.
template <class T, class I>
struct SparseProduct {
  std::int64_t rows = 0, columns = 0;  ///< of C
  const I* row_begin = nullptr;        ///< of op(A); nullptr: it has no elements
  const I* column = nullptr;
  const T* value = nullptr;
  const I* place = nullptr;  ///< element k of op(A) is value[place[k]]; nullptr: value[k]
  bool conjugate = false;
  const T* b = nullptr;
  std::int64_t b_row_step = 0, b_column_step = 0;
  T* c = nullptr;
  std::int64_t c_row_step = 0, c_column_step = 0;
  ScalarValue<T> alpha, beta;
};

/// Loads the kernels onto the current device.
cudaError_t preload_spmm();

/// Queues the product. The same inputs give the same bits in every run. C has elements.
template <class T, class I>
cudaError_t spmm(const Launch& launch, const SparseProduct<T, I>& product);

}  // namespace troupe::host::cuda::kernels
