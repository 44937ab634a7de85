#include "lib/solver/solver_kernels.cuh"

namespace troupe::host::cuda::kernels {
namespace {

constexpr int kThreads = 256;

template <class From, class To>
__global__ void copy_pivots_kernel(const From* from, To* to, std::int64_t count,
                                   std::int64_t order) {
  const std::int64_t step = std::int64_t{blockDim.x} * gridDim.x;
  for (std::int64_t i = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < count; i += step) {
    const std::int64_t pivot = from[i];
    const bool inside = pivot != 0 && pivot <= order && pivot >= -order;
    to[i] = static_cast<To>(inside ? pivot : i + 1);
  }
}

template <class From, class To>
cudaError_t queue(const Launch& launch, const From* from, To* to, std::int64_t count,
                  std::int64_t order) {
  if (count == 0) return cudaSuccess;
  const std::int64_t blocks = (count + kThreads - 1) / kThreads;
  const std::int64_t most = 4 * static_cast<std::int64_t>(launch.multiprocessors);
  copy_pivots_kernel<<<static_cast<unsigned>(blocks < most ? blocks : most), kThreads, 0,
                       launch.stream>>>(from, to, count, order);
  return cudaGetLastError();
}

}  // namespace

cudaError_t copy_pivots(const Launch& launch, const std::int64_t* from, std::int64_t* to,
                        std::int64_t count, std::int64_t order) {
  return queue(launch, from, to, count, order);
}
cudaError_t copy_pivots(const Launch& launch, const int* from, std::int64_t* to, std::int64_t count,
                        std::int64_t order) {
  return queue(launch, from, to, count, order);
}
cudaError_t copy_pivots(const Launch& launch, const std::int64_t* from, int* to, std::int64_t count,
                        std::int64_t order) {
  return queue(launch, from, to, count, order);
}

}  // namespace troupe::host::cuda::kernels
