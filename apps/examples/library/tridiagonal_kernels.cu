#include "tridiagonal_kernels.cuh"

namespace tridiagonal::kernels {
namespace {

constexpr int kThreads = 128;
constexpr std::int32_t kNone = INT32_MAX;

unsigned blocks_for(std::int64_t threads) {
  return static_cast<unsigned>((threads + kThreads - 1) / kThreads);
}

template <class T>
__global__ void solve_each(Batch<T> a, const T* b, T* x, T* ratios, std::int32_t* rows) {
  const auto system = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (system >= a.batch) return;
  rows[system] = kNone;
  const auto first = system * a.n;
  T ratio = 0, last = 0;
  for (std::int64_t i = 0; i < a.n; ++i) {
    const auto at = first + i;
    const T lower = i == 0 ? T(0) : a.lower[at];
    const T pivot = a.diagonal[at] - lower * ratio;
    if (pivot == T(0)) {
      rows[system] = static_cast<std::int32_t>(at + 1);
      return;
    }
    ratios[at] = ratio = a.upper[at] / pivot;
    x[at] = last = (b[at] - lower * last) / pivot;
  }
  for (auto at = first + a.n - 2; at >= first; --at) x[at] = last = x[at] - ratios[at] * last;
}

/// *info = the least of the rows, 0 if there is none.
__global__ void first_of(std::int64_t batch, const std::int32_t* rows, std::int32_t* info) {
  __shared__ std::int32_t least;
  if (threadIdx.x == 0) least = kNone;
  __syncthreads();
  for (std::int64_t i = threadIdx.x; i < batch; i += blockDim.x) atomicMin(&least, rows[i]);
  __syncthreads();
  if (threadIdx.x == 0) *info = least == kNone ? 0 : least;
}

template <class T>
__global__ void residual_of_row(Batch<T> a, const T* x, const T* b, T* r) {
  const auto at = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (at >= a.n * a.batch) return;
  T sum = a.diagonal[at] * x[at];
  if (at % a.n != 0) sum += a.lower[at] * x[at - 1];
  if (at % a.n != a.n - 1) sum += a.upper[at] * x[at + 1];
  r[at] = b[at] - sum;
}

}  // namespace

template <class T>
cudaError_t solve(cudaStream_t stream, const Batch<T>& a, const T* b, T* x, T* ratios,
                  std::int32_t* rows, std::int32_t* info) {
  solve_each<<<blocks_for(a.batch), kThreads, 0, stream>>>(a, b, x, ratios, rows);
  first_of<<<1, kThreads, 0, stream>>>(a.batch, rows, info);
  return cudaGetLastError();
}

template <class T>
cudaError_t residual(cudaStream_t stream, const Batch<T>& a, const T* x, const T* b, T* r) {
  residual_of_row<<<blocks_for(a.n * a.batch), kThreads, 0, stream>>>(a, x, b, r);
  return cudaGetLastError();
}

template cudaError_t solve(cudaStream_t, const Batch<float>&, const float*, float*, float*,
                           std::int32_t*, std::int32_t*);
template cudaError_t solve(cudaStream_t, const Batch<double>&, const double*, double*, double*,
                           std::int32_t*, std::int32_t*);
template cudaError_t residual(cudaStream_t, const Batch<float>&, const float*, const float*,
                              float*);
template cudaError_t residual(cudaStream_t, const Batch<double>&, const double*, const double*,
                              double*);

}  // namespace tridiagonal::kernels
