#pragma once

#include <cstdint>

#include "device_host/engine/cuda/launch.hpp"

/// Kernels that look for infinite elements and NaN, which cuSOLVER does not check for.
namespace troupe::host::cuda::kernels {

/// The elements of a matrix that are checked: all, or one triangle of a Hermitian matrix, with only
/// the real parts on its diagonal.
enum class Counting { all, lower, upper };

/// `batch` matrices, `stride` elements apart.
template <class T>
struct Examined {
  const T* a = nullptr;
  std::int64_t rows = 0, columns = 0, leading = 0;
  Counting counting = Counting::all;
  std::int64_t stride = 0, batch = 1;
};

/// Adds to found[i] if matrix i has an element that is not finite. T: float, double, float2,
/// double2.
template <class T>
cudaError_t find_not_finite(const Launch& launch, const Examined<T>& examined, int* found);
/// Makes unit matrices of those that have been found, so that what iterates comes to an end.
template <class T>
cudaError_t clear_found(const Launch& launch, const Examined<T>& examined, T* a, const int* found);
/// info[i] = `told`, and the `count` values of matrix i are no numbers, where it has been found.
/// Real: float, double.
template <class Real>
cudaError_t tell_found(const Launch& launch, const int* found, std::int64_t batch, int told,
                       int* info, Real* values, std::int64_t count);

/// *info = the first pivot of a factor of Cholesky's that is no number, from 1, if the
/// factorisation has come so far.
template <class T>
cudaError_t find_no_pivot(const Launch& launch, const T* a, std::int64_t lda, std::int64_t n,
                          int* info);
/// The same of matrices at `batch` addresses in device memory.
template <class T>
cudaError_t find_no_pivots(const Launch& launch, const T* const* a, std::int64_t lda,
                           std::int64_t n, std::int64_t batch, int* info);

}  // namespace troupe::host::cuda::kernels
