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

/// What a batch's array of addresses is made of: at most so many go with one launch.
inline constexpr std::size_t kAddresses = 256;
struct Addresses {
  void* address[kAddresses];
};
/// Writes the first `count` to device memory.
cudaError_t write_addresses(const Launch& launch, void** destination, const Addresses& addresses,
                            std::size_t count);

/// Where matrices of a batch lie in one buffer.
struct Places {
  std::byte* base = nullptr;
  std::size_t element = 0;                ///< bytes
  const std::int64_t* offsets = nullptr;  ///< device memory, in elements
  std::int64_t last = 0;                  ///< the largest that is allowed
};
/// Writes `count` addresses to device memory; those of offsets that are negative or too large
/// become the base, and are added to `outside`, in device memory.
cudaError_t write_addresses(const Launch& launch, void** destination, const Places& places,
                            std::uint64_t count, unsigned long long* outside);

// condition.cu

/// As preload(), of the one kernel that a driver may not have what it needs for.
cudaError_t preload_condition();
/// Sets a conditional node's value to whether *flag is not 0.
cudaError_t set_condition(const Launch& launch, cudaGraphConditionalHandle handle,
                          const std::int32_t* flag);

}  // namespace troupe::host::cuda::kernels
