#include "lib/fft/looks/kernels.cuh"

#include "device_host/engine/cuda/launch.cuh"
#include "device_host/engine/cuda/stored.cuh"

namespace troupe::host::cuda::kernels {
namespace {

using sums::FftSums;
using sums::Number;

constexpr int kWarp = 32;
/// The elements that a warp adds up.
constexpr std::int64_t kElementsOfWarp = 2048;

template <class F>
cudaError_t with_number(FftNumber number, F&& f) {
  switch (number) {
    case FftNumber::f16: return f(__half{});
    case FftNumber::bf16: return f(__nv_bfloat16{});
    case FftNumber::f32: return f(float{});
    case FftNumber::f64: break;
  }
  return f(double{});
}

__global__ void weights_kernel(sums::FftWeights of, Number* weights) {
  for (auto i = first_index(); i < static_cast<std::uint64_t>(of.n); i += index_step())
    weights[i] = sums::weight(of, static_cast<std::int64_t>(i));
}

__device__ Number weight_at(const FftSide& side, const std::int64_t (&at)[3]) {
  return side.weights[0][at[0]] * (side.weights[1][at[1]] * side.weights[2][at[2]]);
}

template <class T>
__global__ void elements_kernel(FftSide side, std::uint64_t chunks, FftSums* sums) {
  const std::int64_t volume = side.extents[0] * side.extents[1] * side.extents[2];
  const auto tasks = chunks * static_cast<std::uint64_t>(side.batch);
  const auto* const data = static_cast<const T*>(side.data);
  for (auto task = first_index() / kWarp; task < tasks; task += index_step() / kWarp) {
    const auto transform = static_cast<std::int64_t>(task / chunks);
    const auto begin = static_cast<std::int64_t>(task % chunks) * kElementsOfWarp;
    const auto end = min(begin + kElementsOfWarp, volume);
    FftSums sum;
    for (auto e = begin + static_cast<std::int64_t>(threadIdx.x % kWarp); e < end; e += kWarp) {
      const std::int64_t at[3] = {e / side.extents[2] / side.extents[1],
                                  e / side.extents[2] % side.extents[1], e % side.extents[2]};
      const auto place = transform * side.distance + at[0] * side.pitch[0] + at[1] * side.pitch[1] +
                         at[2] * side.pitch[2];
      const Number x = side.complex ? Number{wide(data[2 * place]), wide(data[2 * place + 1])}
                                    : Number{wide(data[place]), 0};
      if (!side.half) {
        add_element(sum, x, weight_at(side, at));
        continue;
      }
      std::int64_t image[3];
      for (int i = 0; i < 3; ++i) image[i] = at[i] == 0 ? 0 : side.full[i] - at[i];
      const auto last = at[side.last];
      add_half(sum, x, weight_at(side, at), weight_at(side, image),
               last == 0 || 2 * last == side.full[side.last]);
    }
    double* const parts[] = {&sums[transform].sum.re, &sums[transform].sum.im,
                             &sums[transform].mirrored.re, &sums[transform].mirrored.im,
                             &sums[transform].size};
    const double values[] = {sum.sum.re, sum.sum.im, sum.mirrored.re, sum.mirrored.im, sum.size};
#pragma unroll
    for (int i = 0; i < 5; ++i) {
      const double of_warp = over_warp(values[i]);
      if (threadIdx.x % kWarp == 0) atomicAdd(parts[i], of_warp);
    }
  }
}

__device__ sums::FftJudgement judge_transform(const FftCheck& check, std::uint64_t at) {
  return sums::judge(check.input[at], check.output[at].sum, check.volume, check.half,
                     check.lopsided, check.rounding);
}
__global__ void judge_kernel(FftCheck check, FftVerdict* verdict) {
  const auto batch = static_cast<std::uint64_t>(check.batch);
  for (auto at = first_index(); at < batch; at += index_step()) {
    if (judge_transform(check, at).wrong)
      atomicMin(&verdict->first, static_cast<unsigned long long>(at));
  }
}
__global__ void tell_kernel(FftCheck check, FftVerdict* verdict) {
  if (verdict->first != FftVerdict::kNothingWrong)
    verdict->judged = judge_transform(check, verdict->first);
}

template <class T>
__global__ void spoil_kernel(T* number) {
  spoil_element(*number);
}

cudaLaunchConfig_t one_thread(const Launch& launch) {
  cudaLaunchConfig_t config{};
  config.gridDim = config.blockDim = dim3(1);
  config.stream = launch.stream;
  return config;
}

}  // namespace

cudaError_t preload_checks() {
  return load_all(&weights_kernel, &elements_kernel<__half>, &elements_kernel<__nv_bfloat16>,
                  &elements_kernel<float>, &elements_kernel<double>, &judge_kernel, &tell_kernel,
                  &spoil_kernel<__half>, &spoil_kernel<__nv_bfloat16>, &spoil_kernel<float>,
                  &spoil_kernel<double>);
}

cudaError_t write_weights(const Launch& launch, const sums::FftWeights& of, Number* weights) {
  return queue(launch, static_cast<std::uint64_t>(of.n), weights_kernel, of, weights);
}

cudaError_t add_elements(const Launch& launch, const FftSide& side, FftSums* sums) {
  const std::int64_t volume = side.extents[0] * side.extents[1] * side.extents[2];
  const auto chunks = static_cast<std::uint64_t>((volume + kElementsOfWarp - 1) / kElementsOfWarp);
  return with_number(side.number, [&](auto zero) {
    return queue(launch, chunks * static_cast<std::uint64_t>(side.batch) * kWarp,
                 elements_kernel<decltype(zero)>, side, chunks, sums);
  });
}

cudaError_t judge(const Launch& launch, const FftCheck& check, FftVerdict* verdict) {
  const auto status =
      queue(launch, static_cast<std::uint64_t>(check.batch), judge_kernel, check, verdict);
  if (status != cudaSuccess) return status;
  const auto config = one_thread(launch);
  return cudaLaunchKernelEx(&config, tell_kernel, check, verdict);
}

cudaError_t spoil(const Launch& launch, FftNumber number, void* data, std::int64_t index) {
  return with_number(number, [&](auto zero) {
    using T = decltype(zero);
    const auto config = one_thread(launch);
    return cudaLaunchKernelEx(&config, spoil_kernel<T>, static_cast<T*>(data) + index);
  });
}

}  // namespace troupe::host::cuda::kernels
