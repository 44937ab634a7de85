#include <cub/device/device_scan.cuh>

#include "device_host/engine/cuda/launch.cuh"
#include "lib/sparse/conversions/counting_kernels.cuh"

namespace troupe::host::cuda::kernels {
namespace {

template <class I>
__global__ void narrow_kernel(std::uint64_t n, const std::int64_t* numbers, I* offsets) {
  constexpr std::int64_t kMost = sizeof(I) == 4 ? INT32_MAX : INT64_MAX;
  for (auto i = first_index(); i < n; i += index_step())
    offsets[i] = static_cast<I>(numbers[i] < kMost ? numbers[i] : kMost);
}

}  // namespace

cudaError_t preload_counting() {
  return load_all(narrow_kernel<std::int32_t>, narrow_kernel<std::int64_t>);
}

cudaError_t counting_bytes(std::int64_t n, std::size_t* bytes) {
  std::int64_t* const none = nullptr;
  *bytes = 0;
  return cub::DeviceScan::ExclusiveSum(nullptr, *bytes, none, none, n);
}

cudaError_t add_up(const Launch& launch, std::int64_t n, std::int64_t* counts, void* memory,
                   std::size_t bytes) {
  return cub::DeviceScan::ExclusiveSum(memory, bytes, counts, counts, n, launch.stream);
}

template <class I>
cudaError_t narrow(const Launch& launch, std::int64_t n, const std::int64_t* numbers, I* offsets) {
  const auto count = static_cast<std::uint64_t>(n);
  return queue(launch, count, narrow_kernel<I>, count, numbers, offsets);
}

template cudaError_t narrow(const Launch&, std::int64_t, const std::int64_t*, std::int32_t*);
template cudaError_t narrow(const Launch&, std::int64_t, const std::int64_t*, std::int64_t*);

}  // namespace troupe::host::cuda::kernels
