#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstdint>

#include "device_host/engine/cuda/launch.hpp"

/// What cuDNN lacks.
namespace troupe::host::cuda::kernels {

/// Loads the kernels onto the current device: loaded later, the first launch would pay for it.
cudaError_t preload_dnn();

/// y[i] += bias[i % channels] for n elements, rounded once. Queues on the launch's stream and
/// returns. T is float, __half or __nv_bfloat16.
template <class T>
cudaError_t add_bias(const Launch& launch, std::uint64_t n, std::uint64_t channels, const T* bias,
                     T* y);

}  // namespace troupe::host::cuda::kernels
