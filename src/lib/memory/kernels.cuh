#pragma once

#include <cstdint>

#include "device_host/engine/cuda/launch.hpp"

namespace troupe::host::cuda::kernels {

/// Queues what sets *result to the digest (memory::Digest) of `bytes` bytes at `data`, which need
/// not be aligned.
cudaError_t digest(const Launch& launch, const void* data, std::uint64_t bytes,
                   std::uint64_t* result);
/// Queues what changes that bit of the memory at `data` (memory::Flip).
cudaError_t flip(const Launch& launch, void* data, std::uint64_t bit);
cudaError_t load_memory();

}  // namespace troupe::host::cuda::kernels
