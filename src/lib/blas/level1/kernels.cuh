#pragma once

#include <cstdint>

#include "device_host/engine/cuda/launch.hpp"

/// What cuBLAS leaves to do.
namespace troupe::host::cuda::kernels {

/// Counts from 0 what cuBLAS counts from 1.
cudaError_t decrement(const Launch& launch, std::int64_t* value);

}  // namespace troupe::host::cuda::kernels
