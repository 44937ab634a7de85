#pragma once

#include <cstdint>

#include "device_host/engine/cuda/launch.hpp"

/// The function queues on the launch's stream and returns. T is a type that NCCL reduces: an
/// integer of 8, 32 or 64 bits, float, double, __half, __nv_bfloat16, __nv_fp8_e4m3 or
/// __nv_fp8_e5m2.
namespace troupe::host::cuda::kernels {

/// Loads the kernels onto the current device: loaded later, the first launch would pay for it.
cudaError_t preload_collective();

/// z = scalar x: a scaled reduction over one rank. Vectors may be the same, but must not overlap
/// otherwise; n may be 0. Integers wrap around, narrow numbers are rounded once, to the nearest.
template <class T>
cudaError_t scale(const Launch& launch, std::uint64_t n, ScalarValue<T> scalar, const T* x, T* z);

}  // namespace troupe::host::cuda::kernels
