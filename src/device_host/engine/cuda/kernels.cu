#include "device_host/engine/cuda/kernels.hpp"

#include "device_host/engine/cuda/launch.cuh"

namespace troupe::host::cuda::kernels {
namespace {

struct Bytes16 {
  std::uint8_t byte[kVectorBytes];
};

/// Up to 15 bytes before the first 16-byte boundary, `vectors` full ones, up to 15 bytes after.
/// `head` and `body` are the pattern as it stands at the start of each part.
__global__ void fill_kernel(std::uint8_t* start, unsigned head_bytes, std::uint64_t vectors,
                            unsigned tail_bytes, Bytes16 head, uint4 body) {
  auto* const aligned = reinterpret_cast<uint4*>(start + head_bytes);
  for (auto i = first_index(); i < vectors; i += index_step()) aligned[i] = body;
  if (blockIdx.x == 0) {
    if (threadIdx.x < head_bytes) start[threadIdx.x] = head.byte[threadIdx.x];
    if (threadIdx.x < tail_bytes) {
      auto* const tail = reinterpret_cast<std::uint8_t*>(aligned + vectors);
      tail[threadIdx.x] = reinterpret_cast<const std::uint8_t*>(&body)[threadIdx.x];
    }
  }
}

__global__ void addresses_kernel(void** destination, Addresses addresses, unsigned count) {
  if (threadIdx.x < count) destination[threadIdx.x] = addresses.address[threadIdx.x];
}
static_assert(kAddresses == kThreads, "an address a thread");

__global__ void places_kernel(void** destination, Places places, std::uint64_t count,
                              unsigned long long* outside) {
  for (auto i = first_index(); i < count; i += index_step()) {
    const auto offset = places.offsets[i];
    const bool inside = offset >= 0 && offset <= places.last;
    if (!inside) atomicAdd(outside, 1ull);
    destination[i] =
        places.base + (inside ? static_cast<std::uint64_t>(offset) * places.element : 0);
  }
}

}  // namespace

cudaError_t preload() {
  return load_all(fill_kernel, addresses_kernel, places_kernel);
}

cudaError_t write_addresses(const Launch& launch, void** destination, const Addresses& addresses,
                            std::size_t count) {
  return queue(launch, 1, addresses_kernel, destination, addresses, count);
}

cudaError_t write_addresses(const Launch& launch, void** destination, const Places& places,
                            std::uint64_t count, unsigned long long* outside) {
  if (count == 0) return cudaSuccess;
  return queue(launch, count, places_kernel, destination, places, count, outside);
}

cudaError_t fill(const Launch& launch, void* destination,
                 const std::array<std::uint8_t, 16>& pattern, std::size_t size,
                 std::uint64_t count) {
  std::uint64_t bytes = count * size;
  if (bytes == 0) return cudaSuccess;
  const auto misalignment = reinterpret_cast<std::uintptr_t>(destination) % kVectorBytes;
  std::uint64_t head_bytes = (kVectorBytes - misalignment) % kVectorBytes;
  if (head_bytes > bytes) head_bytes = bytes;
  bytes -= head_bytes;

  Bytes16 head{};
  uint4 body{};
  for (std::size_t i = 0; i < kVectorBytes; ++i) {
    head.byte[i] = pattern[i % size];
    reinterpret_cast<std::uint8_t*>(&body)[i] = pattern[(head_bytes + i) % size];
  }
  const std::uint64_t vectors = bytes / kVectorBytes;
  return queue(launch, vectors > 0 ? vectors : 1, fill_kernel,
               static_cast<std::uint8_t*>(destination), head_bytes, vectors, bytes % kVectorBytes,
               head, body);
}

}  // namespace troupe::host::cuda::kernels
