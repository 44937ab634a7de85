#pragma once

#include <cstddef>
#include <cstdint>

#include "device_host/engine/cuda/launch.hpp"

/// Counts that become offsets. I is std::int32_t or std::int64_t. Every function queues on the
/// launch's stream and returns.
namespace troupe::host::cuda::kernels {

cudaError_t preload_counting();

/// How much device memory add_up() works in.
cudaError_t counting_bytes(std::int64_t n, std::size_t* bytes);
/// Of n counts, at least one, each becomes the sum of those before it.
cudaError_t add_up(const Launch& launch, std::int64_t n, std::int64_t* counts, void* memory,
                   std::size_t bytes);
/// The same numbers as indices, n of them: what I cannot count stands as its maximum.
template <class I>
cudaError_t narrow(const Launch& launch, std::int64_t n, const std::int64_t* numbers, I* offsets);

}  // namespace troupe::host::cuda::kernels
