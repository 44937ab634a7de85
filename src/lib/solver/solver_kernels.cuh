#pragma once

#include <cstdint>

#include "device_host/engine/cuda/launch.hpp"

/// What cuSOLVER leaves to do: some of its functions have pivots of 32 bits, others of 64.
namespace troupe::host::cuda::kernels {

/// Copies the pivots of a matrix of that order; those outside of it become ones that exchange
/// nothing.
cudaError_t copy_pivots(const Launch& launch, const std::int64_t* from, std::int64_t* to,
                        std::int64_t count, std::int64_t order);
cudaError_t copy_pivots(const Launch& launch, const int* from, std::int64_t* to, std::int64_t count,
                        std::int64_t order);
cudaError_t copy_pivots(const Launch& launch, const std::int64_t* from, int* to, std::int64_t count,
                        std::int64_t order);

}  // namespace troupe::host::cuda::kernels
