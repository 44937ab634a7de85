#pragma once

#include <cstdint>

#include "device_host/engine/cuda/launch.hpp"

/// Every function queues on the launch's stream and returns; element counts may be 0. T is float,
/// double, float2 or double2, I std::int32_t or std::int64_t.
namespace troupe::host::cuda::kernels {

/// Loads the kernels onto the current device: loaded later, the first launch would pay for it.
cudaError_t preload_sparse();

/// z[i] = x[index[i]]
template <class T, class I>
cudaError_t gather(const Launch& launch, std::int64_t n, const T* x, const I* index, T* z);

}  // namespace troupe::host::cuda::kernels
