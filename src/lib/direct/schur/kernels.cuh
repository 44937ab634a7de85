#pragma once

#include <cstdint>

#include "device_host/engine/cuda/launch.hpp"

/// What refines the solution of a sparse system.
namespace troupe::host::cuda::kernels {

/// Elements of a CSR matrix by their columns, for those that stand in another row than their own of
/// op(A): those of column i are at begin[i] to begin[i + 1]. In device memory.
template <class I>
struct Mirror {
  const I* begin = nullptr;  ///< nullptr: there are none
  const I* row = nullptr;
  const I* place = nullptr;  ///< of its value among those of A
};

/// r = b - op(A) x, with n rows, in device memory; T is float, double, float2 or double2, I
/// std::int32_t or std::int64_t.
template <class T, class I>
struct Residual {
  std::int64_t n = 0;
  const I* row_begin = nullptr;
  const I* column = nullptr;
  const T* value = nullptr;
  bool takes_below = true,
       takes_above = true;  ///< of its diagonal; without both, nothing of A's rows
  Mirror<I> mirror;
  bool conjugates_mirror = false;
  const T* b = nullptr;
  const T* x = nullptr;
  T* r = nullptr;
};

/// Loads the kernels onto the current device.
cudaError_t preload_direct();

/// Queues it. The same inputs give the same bits in every run.
template <class T, class I>
cudaError_t residual(const Launch& launch, const Residual<T, I>& of);
/// Queues x += correction, of n elements.
template <class T>
cudaError_t correct(const Launch& launch, std::int64_t n, const T* correction, T* x);

}  // namespace troupe::host::cuda::kernels
