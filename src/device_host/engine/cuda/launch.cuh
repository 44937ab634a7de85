#pragma once

#include <cstddef>
#include <cstdint>

#include "device_host/engine/cuda/launch.hpp"

/// What the files of kernels share, in the engine and in libraries: launching, loading, walking
/// over elements.
namespace troupe::host::cuda::kernels {

inline constexpr int kThreads = 256;
inline constexpr int kBlocksPerMultiprocessor = 16;
inline constexpr std::size_t kVectorBytes = 16;

/// As many blocks as there is work for `items` threads, up to what fills the device.
inline unsigned blocks_for(const Launch& launch, std::uint64_t items) {
  const std::uint64_t wanted = (items + kThreads - 1) / kThreads;
  const auto limit = static_cast<std::uint64_t>(launch.multiprocessors) * kBlocksPerMultiprocessor;
  return static_cast<unsigned>(wanted < limit ? wanted : limit);
}

/// Launches without going through cudaGetLastError, which would report what others left there.
template <class... Parameters, class... Arguments>
cudaError_t queue(const Launch& launch, std::uint64_t items, void (*kernel)(Parameters...),
                  Arguments... arguments) {
  cudaLaunchConfig_t config{};
  config.gridDim = dim3(blocks_for(launch, items));
  config.blockDim = dim3(kThreads);
  config.stream = launch.stream;
  return cudaLaunchKernelEx(&config, kernel, static_cast<Parameters>(arguments)...);
}

template <class Kernel>
cudaError_t load(Kernel* kernel) {
  cudaFuncAttributes attributes;
  return cudaFuncGetAttributes(&attributes, kernel);
}
/// The first failure of several loads.
template <class... Kernels>
cudaError_t load_all(Kernels*... kernels) {
  cudaError_t status = cudaSuccess;
  (..., (status == cudaSuccess ? status = load(kernels) : status));
  return status;
}

__device__ inline std::uint64_t first_index() {
  return static_cast<std::uint64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
}
__device__ inline std::uint64_t index_step() {
  return static_cast<std::uint64_t>(gridDim.x) * blockDim.x;
}

/// kVectorBytes of T that are loaded and stored at once.
template <class T>
struct alignas(kVectorBytes) Pack {
  static constexpr int kSize = kVectorBytes / sizeof(T);
  T element[kSize];
};

inline bool aligned(const void* pointer) {
  return reinterpret_cast<std::uintptr_t>(pointer) % kVectorBytes == 0;
}

}  // namespace troupe::host::cuda::kernels
