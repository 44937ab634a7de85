#include "lib/dnn/kernels.cuh"

#include "device_host/engine/cuda/launch.cuh"

namespace troupe::host::cuda::kernels {
namespace {

__device__ float sum(float a, float b) {
  return a + b;
}
__device__ __half sum(__half a, __half b) {
  return __float2half_rn(__half2float(a) + __half2float(b));
}
__device__ __nv_bfloat16 sum(__nv_bfloat16 a, __nv_bfloat16 b) {
  return __float2bfloat16_rn(__bfloat162float(a) + __bfloat162float(b));
}

template <class T>
__global__ void add_bias_kernel(std::uint64_t n, std::uint64_t channels, const T* bias, T* y) {
  const auto step = index_step();
  const auto channel_step = step % channels;  // divisions are slow: only before the loop
  auto channel = first_index() % channels;
  for (auto i = first_index(); i < n; i += step) {
    y[i] = sum(y[i], bias[channel]);
    channel += channel_step;
    if (channel >= channels) channel -= channels;
  }
}

}  // namespace

cudaError_t preload_dnn() {
  return load_all(&add_bias_kernel<float>, &add_bias_kernel<__half>,
                  &add_bias_kernel<__nv_bfloat16>);
}

template <class T>
cudaError_t add_bias(const Launch& launch, std::uint64_t n, std::uint64_t channels, const T* bias,
                     T* y) {
  return queue(launch, n, &add_bias_kernel<T>, n, channels, bias, y);
}

template cudaError_t add_bias(const Launch&, std::uint64_t, std::uint64_t, const float*, float*);
template cudaError_t add_bias(const Launch&, std::uint64_t, std::uint64_t, const __half*, __half*);
template cudaError_t add_bias(const Launch&, std::uint64_t, std::uint64_t, const __nv_bfloat16*,
                              __nv_bfloat16*);

}  // namespace troupe::host::cuda::kernels
