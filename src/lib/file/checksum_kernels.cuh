#pragma once

#include <cstdint>

#include "device_host/engine/cuda/launch.hpp"

namespace troupe::host::cuda::kernels {

/// Queues what sets *sum to the sum of checksum.hpp over `words` words at `data`, which need not be
/// aligned.
cudaError_t crc32_sum(const Launch& launch, const void* data, std::uint64_t words,
                      std::uint32_t* sum);
cudaError_t load_crc32();

}  // namespace troupe::host::cuda::kernels
