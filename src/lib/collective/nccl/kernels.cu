#include "lib/collective/nccl/kernels.cuh"

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp8.h>

#include <type_traits>

#include "device_host/engine/cuda/launch.cuh"

namespace troupe::host::cuda::kernels {
namespace {

template <class T>
__device__ T product(T x, T y) {
  if constexpr (std::is_integral_v<T>) {
    // Unsigned: signed overflow is undefined.
    return static_cast<T>(static_cast<std::uint64_t>(x) * static_cast<std::uint64_t>(y));
  } else if constexpr (std::is_floating_point_v<T>) {
    return x * y;
  } else {
    // A float holds products of narrow numbers exactly.
    return T(static_cast<float>(x) * static_cast<float>(y));
  }
}

/// With `packed` both are 16-byte aligned.
template <class T>
__global__ void scale_kernel(std::uint64_t n, ScalarValue<T> scalar, const T* x, T* z,
                             bool packed) {
  const T by = scalar.device != nullptr ? *scalar.device : scalar.value;
  std::uint64_t done = 0;
  if (packed) {
    using P = Pack<T>;
    const std::uint64_t packs = n / P::kSize;
    for (auto i = first_index(); i < packs; i += index_step()) {
      P pack = reinterpret_cast<const P*>(x)[i];
#pragma unroll
      for (int k = 0; k < P::kSize; ++k) pack.element[k] = product(by, pack.element[k]);
      reinterpret_cast<P*>(z)[i] = pack;
    }
    done = packs * P::kSize;
  }
  for (auto i = done + first_index(); i < n; i += index_step()) z[i] = product(by, x[i]);
}

template <class... T>
cudaError_t load_for() {
  return load_all(&scale_kernel<T>...);
}

}  // namespace

cudaError_t preload_collective() {
  return load_for<__half, __nv_bfloat16, float, double, __nv_fp8_e4m3, __nv_fp8_e5m2, std::int8_t,
                  std::uint8_t, std::int32_t, std::uint32_t, std::int64_t, std::uint64_t>();
}

template <class T>
cudaError_t scale(const Launch& launch, std::uint64_t n, ScalarValue<T> scalar, const T* x, T* z) {
  if (n == 0) return cudaSuccess;
  const bool packed = aligned(x) && aligned(z);
  const auto items = packed ? (n + Pack<T>::kSize - 1) / Pack<T>::kSize : n;
  return queue(launch, items, scale_kernel<T>, n, scalar, x, z, packed);
}

template cudaError_t scale(const Launch&, std::uint64_t, ScalarValue<__half>, const __half*,
                           __half*);
template cudaError_t scale(const Launch&, std::uint64_t, ScalarValue<__nv_bfloat16>,
                           const __nv_bfloat16*, __nv_bfloat16*);
template cudaError_t scale(const Launch&, std::uint64_t, ScalarValue<float>, const float*, float*);
template cudaError_t scale(const Launch&, std::uint64_t, ScalarValue<double>, const double*,
                           double*);
template cudaError_t scale(const Launch&, std::uint64_t, ScalarValue<__nv_fp8_e4m3>,
                           const __nv_fp8_e4m3*, __nv_fp8_e4m3*);
template cudaError_t scale(const Launch&, std::uint64_t, ScalarValue<__nv_fp8_e5m2>,
                           const __nv_fp8_e5m2*, __nv_fp8_e5m2*);
template cudaError_t scale(const Launch&, std::uint64_t, ScalarValue<std::int8_t>,
                           const std::int8_t*, std::int8_t*);
template cudaError_t scale(const Launch&, std::uint64_t, ScalarValue<std::uint8_t>,
                           const std::uint8_t*, std::uint8_t*);
template cudaError_t scale(const Launch&, std::uint64_t, ScalarValue<std::int32_t>,
                           const std::int32_t*, std::int32_t*);
template cudaError_t scale(const Launch&, std::uint64_t, ScalarValue<std::uint32_t>,
                           const std::uint32_t*, std::uint32_t*);
template cudaError_t scale(const Launch&, std::uint64_t, ScalarValue<std::int64_t>,
                           const std::int64_t*, std::int64_t*);
template cudaError_t scale(const Launch&, std::uint64_t, ScalarValue<std::uint64_t>,
                           const std::uint64_t*, std::uint64_t*);

}  // namespace troupe::host::cuda::kernels
