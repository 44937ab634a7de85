#pragma once

#include <cstddef>
#include <cstdint>

#include "device_host/engine/cuda/launch.hpp"

/// Every function queues on the launch's stream and returns. T is float, double, float2 or double2,
/// I std::int32_t or std::int64_t.
namespace troupe::host::cuda::kernels {

cudaError_t preload_sparse_vectors();

/// `count` elements, which may be 0: x[i] stands at the place index[i].
template <class T, class I>
struct SparseVector {
  std::int64_t count = 0;
  const I* index = nullptr;
  const T* x = nullptr;
};

/// y[index[i]] = x[i]
template <class T, class I>
cudaError_t scatter(const Launch& launch, const SparseVector<T, I>& x, T* y);
/// y = alpha x + beta y, y having `length` elements; they are not read where beta is 0.
template <class T, class I>
cudaError_t axpby(const Launch& launch, ScalarValue<T> alpha, const SparseVector<T, I>& x,
                  ScalarValue<T> beta, std::int64_t length, T* y);
/// (x[i], y_i) = (c x[i] + s y_i, c y_i - conj(s) x[i]), y_i being y[index[i]]; Real is float or
/// double.
template <class T, class Real, class I>
cudaError_t rotate(const Launch& launch, std::int64_t count, const I* index, ScalarValue<Real> c,
                   ScalarValue<T> s, T* x, T* y);

/// How many elements product() works in.
inline constexpr std::size_t kPartialSums = 256;
/// result[0] = the sum of x[i] y[index[i]]
template <class T, class I>
cudaError_t product(const Launch& launch, const SparseVector<T, I>& x, bool conjugate, const T* y,
                    T* partial, T* result);

}  // namespace troupe::host::cuda::kernels
