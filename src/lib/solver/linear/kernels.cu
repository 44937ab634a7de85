#include "lib/solver/linear/kernels.cuh"

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

constexpr unsigned kWithin = 1024;  ///< threads of a kernel of one block

__device__ bool is_singular(float x) {
  return x == 0 || x != x;
}
__device__ bool is_singular(double x) {
  return x == 0 || x != x;
}
__device__ bool is_singular(float2 x) {
  return (x.x == 0 && x.y == 0) || x.x != x.x || x.y != x.y;
}
__device__ bool is_singular(double2 x) {
  return (x.x == 0 && x.y == 0) || x.x != x.x || x.y != x.y;
}

template <class T>
__global__ void find_singular_kernel(const T* a, std::int64_t lda, const int* pivots, int n,
                                     bool upper, int* info) {
  __shared__ int first;  // in the order of elimination, from 0
  if (threadIdx.x == 0) first = n;
  __syncthreads();
  for (int step = static_cast<int>(threadIdx.x); step < n; step += static_cast<int>(kWithin)) {
    const int k = upper ? n - 1 - step : step;
    if (pivots[k] > 0 && is_singular(a[k * (lda + 1)])) atomicMin(&first, step);
  }
  __syncthreads();
  if (threadIdx.x == 0 && *info >= 0) *info = first == n ? 0 : upper ? n - first : first + 1;
}

template <class T>
__global__ void copy_diagonal_kernel(const T* from, std::int64_t from_step, T* to,
                                     std::int64_t to_step, std::int64_t n) {
  const std::int64_t step = std::int64_t{blockDim.x} * gridDim.x;
  for (std::int64_t i = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < n; i += step)
    to[i * to_step] = from[i * from_step];
}

unsigned blocks_for(const Launch& launch, std::int64_t count) {
  const std::int64_t blocks = (count + kThreads - 1) / kThreads;
  const std::int64_t most = 4 * static_cast<std::int64_t>(launch.multiprocessors);
  return static_cast<unsigned>(blocks < most ? blocks : most);
}

template <class From, class To>
cudaError_t queue(const Launch& launch, const From* from, To* to, std::int64_t count,
                  std::int64_t order) {
  if (count == 0) return cudaSuccess;
  copy_pivots_kernel<<<blocks_for(launch, count), kThreads, 0, launch.stream>>>(from, to, count,
                                                                                order);
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

template <class T>
cudaError_t find_singular(const Launch& launch, const T* a, std::int64_t lda, const int* pivots,
                          int n, bool upper, int* info) {
  find_singular_kernel<<<1, kWithin, 0, launch.stream>>>(a, lda, pivots, n, upper, info);
  return cudaGetLastError();
}
template <class T>
cudaError_t copy_diagonal(const Launch& launch, const T* from, std::int64_t from_step, T* to,
                          std::int64_t to_step, std::int64_t n) {
  copy_diagonal_kernel<<<blocks_for(launch, n), kThreads, 0, launch.stream>>>(from, from_step, to,
                                                                              to_step, n);
  return cudaGetLastError();
}

#define TROUPE_SOLVER_KERNELS(T)                                                                   \
  template cudaError_t find_singular(const Launch&, const T*, std::int64_t, const int*, int, bool, \
                                     int*);                                                        \
  template cudaError_t copy_diagonal(const Launch&, const T*, std::int64_t, T*, std::int64_t,      \
                                     std::int64_t);
TROUPE_SOLVER_KERNELS(float)
TROUPE_SOLVER_KERNELS(double)
TROUPE_SOLVER_KERNELS(float2)
TROUPE_SOLVER_KERNELS(double2)

}  // namespace troupe::host::cuda::kernels
