#include "lib/sparse/vectors/gather_kernels.cuh"

#include "device_host/engine/cuda/launch.cuh"

namespace troupe::host::cuda::kernels {
namespace {

template <class T, class I>
__global__ void gather_kernel(std::uint64_t n, const T* x, const I* index, T* z) {
  for (auto i = first_index(); i < n; i += index_step()) z[i] = x[index[i]];
}

template <class T>
cudaError_t load_typed() {
  return load_all(gather_kernel<T, std::int32_t>, gather_kernel<T, std::int64_t>);
}

}  // namespace

cudaError_t preload_sparse() {
  for (const auto load :
       {load_typed<float>, load_typed<double>, load_typed<float2>, load_typed<double2>}) {
    if (const auto status = load(); status != cudaSuccess) return status;
  }
  return cudaSuccess;
}

template <class T, class I>
cudaError_t gather(const Launch& launch, std::int64_t n, const T* x, const I* index, T* z) {
  if (n <= 0) return cudaSuccess;
  const auto count = static_cast<std::uint64_t>(n);
  return queue(launch, count, gather_kernel<T, I>, count, x, index, z);
}

#define TROUPE_GATHER(T)                                                                       \
  template cudaError_t gather(const Launch&, std::int64_t, const T*, const std::int32_t*, T*); \
  template cudaError_t gather(const Launch&, std::int64_t, const T*, const std::int64_t*, T*);
TROUPE_GATHER(float)
TROUPE_GATHER(double)
TROUPE_GATHER(float2)
TROUPE_GATHER(double2)
#undef TROUPE_GATHER

}  // namespace troupe::host::cuda::kernels
