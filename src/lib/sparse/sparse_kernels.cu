#include "lib/sparse/sparse_kernels.cuh"

#include "device_host/engine/cuda/launch.cuh"

namespace troupe::host::cuda::kernels {
namespace {

/// y[i] = beta y[i]; unless ReadsY, y is not read, and beta counts as 0.
template <class T, bool ReadsY>
__global__ void scale_kernel(std::uint64_t n, ScalarValue<T> beta, T* y) {
  const T b = !ReadsY ? T(0) : beta.device != nullptr ? *beta.device : beta.value;
  for (auto i = first_index(); i < n; i += index_step()) {
    T value = 0;
    if constexpr (ReadsY) value = b * y[i];
    y[i] = value;
  }
}

template <class T, class I>
__global__ void gather_kernel(std::uint64_t n, const T* x, const I* index, T* z) {
  for (auto i = first_index(); i < n; i += index_step()) z[i] = x[index[i]];
}

template <class T>
cudaError_t load_typed() {
  return load_all(scale_kernel<T, true>, scale_kernel<T, false>, gather_kernel<T, std::int32_t>,
                  gather_kernel<T, std::int64_t>);
}

}  // namespace

cudaError_t preload_sparse() {
  auto status = load_typed<float>();
  if (status == cudaSuccess) status = load_typed<double>();
  if (status != cudaSuccess) return status;
  return load_all(gather_kernel<float2, std::int32_t>, gather_kernel<float2, std::int64_t>,
                  gather_kernel<double2, std::int32_t>, gather_kernel<double2, std::int64_t>);
}

template <class T>
cudaError_t scale(const Launch& launch, std::int64_t n, ScalarValue<T> beta, T* y) {
  if (n <= 0) return cudaSuccess;
  const auto count = static_cast<std::uint64_t>(n);
  const auto kernel = beta.is_zero_value() ? scale_kernel<T, false> : scale_kernel<T, true>;
  return queue(launch, count, kernel, count, beta, y);
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
template cudaError_t scale(const Launch&, std::int64_t, ScalarValue<float>, float*);
template cudaError_t scale(const Launch&, std::int64_t, ScalarValue<double>, double*);

}  // namespace troupe::host::cuda::kernels
