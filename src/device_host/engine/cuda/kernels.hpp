#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "device_host/engine/cuda/launch.hpp"

/// The engine's own kernels.
namespace troupe::host::cuda::kernels {

/// Loads them onto the current device: loaded later, the first launch would pay for it.
cudaError_t preload();

/// Repeats the first `size` (1, 2, 4, 8 or 16) bytes of the pattern `count` times from
/// `destination` on. Queues on the launch's stream and returns; `count` may be 0.
cudaError_t fill(const Launch& launch, void* destination,
                 const std::array<std::uint8_t, 16>& pattern, std::size_t size,
                 std::uint64_t count);

}  // namespace troupe::host::cuda::kernels
