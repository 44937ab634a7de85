#include "lib/primitives/primitives_kernels.cuh"

#include <cub/device/device_scan.cuh>
#include <cub/version.cuh>

namespace troupe::host::cuda::kernels {

int cub_version() {
  return CUB_VERSION;
}

template <class T>
cudaError_t inclusive_sum(Temporary& temporary, cudaStream_t stream, std::int64_t n, const T* x,
                          T* y) {
  return cub::DeviceScan::InclusiveSum(temporary.memory, temporary.bytes, x, y, n, stream);
}

template <class T>
cudaError_t exclusive_sum(Temporary& temporary, cudaStream_t stream, std::int64_t n, const T* x,
                          T* y) {
  return cub::DeviceScan::ExclusiveSum(temporary.memory, temporary.bytes, x, y, n, stream);
}

using U32 = std::uint32_t;
using U64 = std::uint64_t;

template cudaError_t inclusive_sum(Temporary&, cudaStream_t, std::int64_t, const U32*, U32*);
template cudaError_t inclusive_sum(Temporary&, cudaStream_t, std::int64_t, const U64*, U64*);
template cudaError_t exclusive_sum(Temporary&, cudaStream_t, std::int64_t, const U32*, U32*);
template cudaError_t exclusive_sum(Temporary&, cudaStream_t, std::int64_t, const U64*, U64*);

}  // namespace troupe::host::cuda::kernels
