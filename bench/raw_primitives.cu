#include "raw_primitives.hpp"

#include <cub/device/device_radix_sort.cuh>
#include <cub/device/device_scan.cuh>

namespace troupe::bench {

cudaError_t cub_sort(void* temporary, std::size_t& bytes, const std::uint32_t* keys,
                     std::uint32_t* sorted, std::int64_t n, cudaStream_t stream) {
  return cub::DeviceRadixSort::SortKeys(temporary, bytes, keys, sorted, n, 0, 32, stream);
}

cudaError_t cub_inclusive_sum(void* temporary, std::size_t& bytes, const std::uint32_t* x,
                              std::uint32_t* y, std::int64_t n, cudaStream_t stream) {
  return cub::DeviceScan::InclusiveSum(temporary, bytes, x, y, n, stream);
}

}  // namespace troupe::bench
