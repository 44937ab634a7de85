#include "lib/solver/common/finite_kernels.cuh"

namespace troupe::host::cuda::kernels {
namespace {

constexpr int kThreads = 256;
constexpr std::int64_t kMostRows = 65535;  ///< of a grid

__device__ bool is_finite(float x) {
  return isfinite(x);
}
__device__ bool is_finite(double x) {
  return isfinite(x);
}
__device__ bool is_finite(float2 x) {
  return isfinite(x.x) && isfinite(x.y);
}
__device__ bool is_finite(double2 x) {
  return isfinite(x.x) && isfinite(x.y);
}
__device__ float real_part(float x) {
  return x;
}
__device__ double real_part(double x) {
  return x;
}
__device__ float real_part(float2 x) {
  return x.x;
}
__device__ double real_part(double2 x) {
  return x.x;
}
template <class T>
__device__ T number(int value);
template <>
__device__ float number<float>(int value) {
  return static_cast<float>(value);
}
template <>
__device__ double number<double>(int value) {
  return value;
}
template <>
__device__ float2 number<float2>(int value) {
  return make_float2(static_cast<float>(value), 0);
}
template <>
__device__ double2 number<double2>(int value) {
  return make_double2(value, 0);
}

template <class T>
__global__ void find_not_finite_kernel(Examined<T> with, int* found) {
  const std::int64_t count = with.rows * with.columns, step = std::int64_t{blockDim.x} * gridDim.x;
  for (std::int64_t matrix = blockIdx.y; matrix < with.batch; matrix += gridDim.y) {
    const T* const a = with.a + matrix * with.stride;
    bool bad = false;
    for (std::int64_t k = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x; k < count;
         k += step) {
      const std::int64_t i = k % with.rows, j = k / with.rows;
      const T x = a[j * with.leading + i];
      if (with.counting == Counting::all) {
        bad |= !is_finite(x);
      } else if (i == j) {
        bad |= !isfinite(real_part(x));
      } else {
        bad |= (with.counting == Counting::lower) == (i > j) && !is_finite(x);
      }
    }
    if (__syncthreads_or(bad) && threadIdx.x == 0) atomicAdd(found + matrix, 1);
  }
}

template <class T>
__global__ void clear_found_kernel(Examined<T> with, T* a, const int* found) {
  const std::int64_t count = with.rows * with.columns, step = std::int64_t{blockDim.x} * gridDim.x;
  for (std::int64_t matrix = blockIdx.y; matrix < with.batch; matrix += gridDim.y) {
    if (found[matrix] == 0) continue;
    for (std::int64_t k = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x; k < count;
         k += step) {
      const std::int64_t i = k % with.rows, j = k / with.rows;
      a[matrix * with.stride + j * with.leading + i] = number<T>(i == j ? 1 : 0);
    }
  }
}

template <class Real>
__global__ void tell_found_kernel(const int* found, std::int64_t batch, int told, int* info,
                                  Real* values, std::int64_t count) {
  const std::int64_t step = std::int64_t{blockDim.x} * gridDim.x;
  for (std::int64_t k = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x; k < batch * count;
       k += step) {
    const std::int64_t matrix = k / count;
    if (found[matrix] == 0) continue;
    values[k] = static_cast<Real>(nanf(""));
    if (k % count == 0) info[matrix] = told;
  }
}

/// One block to a matrix.
template <class T>
__device__ void look_for_pivot(const T* a, std::int64_t lda, std::int64_t n, int* info) {
  __shared__ int first;
  const int finished = *info > 0 ? *info - 1 : static_cast<int>(n);
  if (threadIdx.x == 0) first = finished;
  __syncthreads();
  for (int i = static_cast<int>(threadIdx.x); i < finished; i += kThreads) {
    if (isnan(real_part(a[i * (lda + 1)]))) atomicMin(&first, i);
  }
  __syncthreads();
  if (threadIdx.x == 0 && *info >= 0 && first < finished) *info = first + 1;
  __syncthreads();
}
template <class T>
__global__ void find_no_pivot_kernel(const T* a, std::int64_t lda, std::int64_t n, int* info) {
  look_for_pivot(a, lda, n, info);
}
template <class T>
__global__ void find_no_pivots_kernel(const T* const* a, std::int64_t lda, std::int64_t n,
                                      std::int64_t batch, int* info) {
  for (std::int64_t matrix = blockIdx.x; matrix < batch; matrix += gridDim.x)
    look_for_pivot(a[matrix], lda, n, info + matrix);
}

unsigned blocks_for(const Launch& launch, std::int64_t count) {
  const std::int64_t blocks = (count + kThreads - 1) / kThreads;
  const std::int64_t most = 4 * static_cast<std::int64_t>(launch.multiprocessors);
  return static_cast<unsigned>(blocks < 1 ? 1 : blocks < most ? blocks : most);
}
template <class T>
dim3 grid_for(const Launch& launch, const Examined<T>& examined) {
  const auto batch = examined.batch < kMostRows ? examined.batch : kMostRows;
  return {blocks_for(launch, examined.rows * examined.columns), static_cast<unsigned>(batch), 1};
}

}  // namespace

template <class T>
cudaError_t find_not_finite(const Launch& launch, const Examined<T>& examined, int* found) {
  find_not_finite_kernel<<<grid_for(launch, examined), kThreads, 0, launch.stream>>>(examined,
                                                                                     found);
  return cudaGetLastError();
}
template <class T>
cudaError_t clear_found(const Launch& launch, const Examined<T>& examined, T* a, const int* found) {
  clear_found_kernel<<<grid_for(launch, examined), kThreads, 0, launch.stream>>>(examined, a,
                                                                                 found);
  return cudaGetLastError();
}
template <class Real>
cudaError_t tell_found(const Launch& launch, const int* found, std::int64_t batch, int told,
                       int* info, Real* values, std::int64_t count) {
  tell_found_kernel<<<blocks_for(launch, batch * count), kThreads, 0, launch.stream>>>(
      found, batch, told, info, values, count);
  return cudaGetLastError();
}
template <class T>
cudaError_t find_no_pivot(const Launch& launch, const T* a, std::int64_t lda, std::int64_t n,
                          int* info) {
  find_no_pivot_kernel<<<1, kThreads, 0, launch.stream>>>(a, lda, n, info);
  return cudaGetLastError();
}
template <class T>
cudaError_t find_no_pivots(const Launch& launch, const T* const* a, std::int64_t lda,
                           std::int64_t n, std::int64_t batch, int* info) {
  find_no_pivots_kernel<<<blocks_for(launch, batch * kThreads), kThreads, 0, launch.stream>>>(
      a, lda, n, batch, info);
  return cudaGetLastError();
}

#define TROUPE_FINITE_KERNELS(T)                                                                  \
  template cudaError_t find_not_finite(const Launch&, const Examined<T>&, int*);                  \
  template cudaError_t clear_found(const Launch&, const Examined<T>&, T*, const int*);            \
  template cudaError_t find_no_pivot(const Launch&, const T*, std::int64_t, std::int64_t, int*);  \
  template cudaError_t find_no_pivots(const Launch&, const T* const*, std::int64_t, std::int64_t, \
                                      std::int64_t, int*);
TROUPE_FINITE_KERNELS(float)
TROUPE_FINITE_KERNELS(double)
TROUPE_FINITE_KERNELS(float2)
TROUPE_FINITE_KERNELS(double2)
template cudaError_t tell_found(const Launch&, const int*, std::int64_t, int, int*, float*,
                                std::int64_t);
template cudaError_t tell_found(const Launch&, const int*, std::int64_t, int, int*, double*,
                                std::int64_t);

}  // namespace troupe::host::cuda::kernels
