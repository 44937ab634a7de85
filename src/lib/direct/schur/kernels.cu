#include "lib/direct/schur/kernels.cuh"

#include "device_host/engine/cuda/launch.cuh"

/// A warp computes an element of the residual. Which lane adds what, and in which order, depends on
/// the structure alone.
namespace troupe::host::cuda::kernels {
namespace {

constexpr unsigned kLanes = 32, kAllLanes = 0xffff'ffffu;

__device__ float multiply_add(float a, float b, float sum) {
  return fmaf(a, b, sum);
}
__device__ double multiply_add(double a, double b, double sum) {
  return fma(a, b, sum);
}
template <class Complex>
__device__ Complex multiply_add(Complex a, Complex b, Complex sum) {
  sum.x = multiply_add(a.x, b.x, multiply_add(-a.y, b.y, sum.x));
  sum.y = multiply_add(a.x, b.y, multiply_add(a.y, b.x, sum.y));
  return sum;
}
__device__ float conjugated(float x) {
  return x;
}
__device__ double conjugated(double x) {
  return x;
}
__device__ float2 conjugated(float2 x) {
  return {x.x, -x.y};
}
__device__ double2 conjugated(double2 x) {
  return {x.x, -x.y};
}
__device__ float plus(float a, float b) {
  return a + b;
}
__device__ double plus(double a, double b) {
  return a + b;
}
template <class Complex>
__device__ Complex plus(Complex a, Complex b) {
  return {a.x + b.x, a.y + b.y};
}
__device__ float minus(float a, float b) {
  return a - b;
}
__device__ double minus(double a, double b) {
  return a - b;
}
template <class Complex>
__device__ Complex minus(Complex a, Complex b) {
  return {a.x - b.x, a.y - b.y};
}
/// The sum of all lanes, in all lanes.
__device__ float sum_of_lanes(float x) {
  for (unsigned step = kLanes / 2; step > 0; step /= 2) x += __shfl_xor_sync(kAllLanes, x, step);
  return x;
}
__device__ double sum_of_lanes(double x) {
  for (unsigned step = kLanes / 2; step > 0; step /= 2) x += __shfl_xor_sync(kAllLanes, x, step);
  return x;
}
template <class Complex>
__device__ Complex sum_of_lanes(Complex x) {
  x.x = sum_of_lanes(x.x);
  x.y = sum_of_lanes(x.y);
  return x;
}

template <class T, class I>
__global__ void residual_kernel(Residual<T, I> of) {
  const std::int64_t lane = threadIdx.x % kLanes;
  const auto step = static_cast<std::int64_t>(index_step() / kLanes);
  for (auto row = static_cast<std::int64_t>(first_index() / kLanes); row < of.n; row += step) {
    T sum{};
    if (of.takes_below || of.takes_above) {
      const std::int64_t end = of.row_begin[row + 1];
      for (std::int64_t k = of.row_begin[row] + lane; k < end; k += kLanes) {
        const std::int64_t column = of.column[k];
        const bool counts = column == row || (column < row ? of.takes_below : of.takes_above);
        if (counts) sum = multiply_add(of.value[k], of.x[column], sum);
      }
    }
    if (of.mirror.begin != nullptr) {
      const std::int64_t end = of.mirror.begin[row + 1];
      for (std::int64_t k = of.mirror.begin[row] + lane; k < end; k += kLanes) {
        const T value = of.value[of.mirror.place[k]];
        sum = multiply_add(of.conjugates_mirror ? conjugated(value) : value, of.x[of.mirror.row[k]],
                           sum);
      }
    }
    sum = sum_of_lanes(sum);
    if (lane == 0) of.r[row] = minus(of.b[row], sum);
  }
}

template <class T>
__global__ void correct_kernel(std::int64_t n, const T* correction, T* x) {
  for (auto i = first_index(); i < static_cast<std::uint64_t>(n); i += index_step())
    x[i] = plus(x[i], correction[i]);
}

}  // namespace

template <class T, class I>
cudaError_t residual(const Launch& launch, const Residual<T, I>& of) {
  return queue(launch, static_cast<std::uint64_t>(of.n) * kLanes, residual_kernel<T, I>, of);
}
template <class T>
cudaError_t correct(const Launch& launch, std::int64_t n, const T* correction, T* x) {
  return queue(launch, static_cast<std::uint64_t>(n), correct_kernel<T>, n, correction, x);
}

cudaError_t preload_direct() {
  return load_all(residual_kernel<float, std::int32_t>, residual_kernel<double, std::int32_t>,
                  residual_kernel<float2, std::int32_t>, residual_kernel<double2, std::int32_t>,
                  residual_kernel<float, std::int64_t>, residual_kernel<double, std::int64_t>,
                  residual_kernel<float2, std::int64_t>, residual_kernel<double2, std::int64_t>,
                  correct_kernel<float>, correct_kernel<double>, correct_kernel<float2>,
                  correct_kernel<double2>);
}

#define TROUPE_DIRECT_KERNELS(T)                                                  \
  template cudaError_t residual(const Launch&, const Residual<T, std::int32_t>&); \
  template cudaError_t residual(const Launch&, const Residual<T, std::int64_t>&); \
  template cudaError_t correct(const Launch&, std::int64_t, const T*, T*);
TROUPE_DIRECT_KERNELS(float)
TROUPE_DIRECT_KERNELS(double)
TROUPE_DIRECT_KERNELS(float2)
TROUPE_DIRECT_KERNELS(double2)

}  // namespace troupe::host::cuda::kernels
