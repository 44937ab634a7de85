#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

/// The kernels of the library. All of them queue on the stream and return. T: float or double.
namespace tridiagonal::kernels {

/// A batch of systems in device memory.
template <class T>
struct Batch {
  std::int64_t n, batch;
  const T *lower, *diagonal, *upper;
};

/// x = the solutions; a thread for each system. `ratios`: room for batch x n elements; `rows`: for
/// batch integers. *info, in any memory that the device can write: as Solve::info.
template <class T>
cudaError_t solve(cudaStream_t stream, const Batch<T>& a, const T* b, T* x, T* ratios,
                  std::int32_t* rows, std::int32_t* info);
/// r = b - A x; a thread for each row.
template <class T>
cudaError_t residual(cudaStream_t stream, const Batch<T>& a, const T* x, const T* b, T* r);

}  // namespace tridiagonal::kernels
