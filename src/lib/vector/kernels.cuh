#pragma once

#include <cstdint>

#include "device_host/engine/cuda/launch.hpp"

/// Every function queues on the launch's stream and returns; element counts may be 0. T is float or
/// double; vectors may be the same, but must not overlap otherwise.
namespace troupe::host::cuda::kernels {

/// Loads the kernels onto the current device: loaded later, the first launch would pay for it.
cudaError_t preload_vector();

/// z = x .* y
template <class T>
cudaError_t multiply(const Launch& launch, std::int64_t n, const T* x, const T* y, T* z);
/// z = x ./ y
template <class T>
cudaError_t divide(const Launch& launch, std::int64_t n, const T* x, const T* y, T* z);
/// y = alpha x + beta y; y is not read if beta is the value 0
template <class T>
cudaError_t axpby(const Launch& launch, std::int64_t n, ScalarValue<T> alpha, const T* x,
                  ScalarValue<T> beta, T* y);

}  // namespace troupe::host::cuda::kernels
