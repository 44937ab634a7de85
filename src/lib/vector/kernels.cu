#include "lib/vector/kernels.cuh"

#include "device_host/engine/cuda/launch.cuh"

namespace troupe::host::cuda::kernels {
namespace {

struct Product {
  template <class T>
  __device__ T operator()(T x, T y) const {
    return x * y;
  }
};
struct Quotient {
  template <class T>
  __device__ T operator()(T x, T y) const {
    return x / y;
  }
};

/// z[i] = f(x[i], y[i]). With `packed` all three are 16-byte aligned.
template <class T, class F>
__global__ void zip_kernel(std::uint64_t n, const T* x, const T* y, T* z, bool packed, F f) {
  std::uint64_t done = 0;
  if (packed) {
    using P = Pack<T>;
    const std::uint64_t packs = n / P::kSize;
    for (auto i = first_index(); i < packs; i += index_step()) {
      const P a = reinterpret_cast<const P*>(x)[i];
      const P b = reinterpret_cast<const P*>(y)[i];
      P c;
#pragma unroll
      for (int k = 0; k < P::kSize; ++k) c.element[k] = f(a.element[k], b.element[k]);
      reinterpret_cast<P*>(z)[i] = c;
    }
    done = packs * P::kSize;
  }
  for (auto i = done + first_index(); i < n; i += index_step()) z[i] = f(x[i], y[i]);
}

/// y[i] = alpha x[i] + beta y[i]; y is not read unless ReadsY, and beta not used.
template <class T, bool ReadsY>
__global__ void axpby_kernel(std::uint64_t n, ScalarValue<T> alpha, const T* x, ScalarValue<T> beta,
                             T* y, bool packed) {
  const T a = alpha.device != nullptr ? *alpha.device : alpha.value;
  const T b = !ReadsY ? T(0) : beta.device != nullptr ? *beta.device : beta.value;
  const auto combine = [a, b](T u, T v) -> T {
    if constexpr (ReadsY) {
      return a * u + b * v;
    } else {
      return a * u;
    }
  };
  std::uint64_t done = 0;
  if (packed) {
    using P = Pack<T>;
    const std::uint64_t packs = n / P::kSize;
    for (auto i = first_index(); i < packs; i += index_step()) {
      const P u = reinterpret_cast<const P*>(x)[i];
      P v{};
      if constexpr (ReadsY) v = reinterpret_cast<const P*>(y)[i];
#pragma unroll
      for (int k = 0; k < P::kSize; ++k) v.element[k] = combine(u.element[k], v.element[k]);
      reinterpret_cast<P*>(y)[i] = v;
    }
    done = packs * P::kSize;
  }
  for (auto i = done + first_index(); i < n; i += index_step()) {
    T v = 0;
    if constexpr (ReadsY) v = y[i];
    y[i] = combine(x[i], v);
  }
}

/// How many threads' worth of work n elements are.
template <class T>
std::uint64_t items_of(std::uint64_t n, bool packed) {
  return packed ? (n + Pack<T>::kSize - 1) / Pack<T>::kSize : n;
}

template <class T, class F>
cudaError_t zip(const Launch& launch, std::int64_t n, const T* x, const T* y, T* z, F f) {
  if (n <= 0) return cudaSuccess;
  const bool packed = aligned(x) && aligned(y) && aligned(z);
  const auto count = static_cast<std::uint64_t>(n);
  return queue(launch, items_of<T>(count, packed), zip_kernel<T, F>, count, x, y, z, packed, f);
}

template <class T>
cudaError_t load_typed() {
  return load_all(zip_kernel<T, Product>, zip_kernel<T, Quotient>, axpby_kernel<T, true>,
                  axpby_kernel<T, false>);
}

}  // namespace

cudaError_t preload_vector() {
  const auto status = load_typed<float>();
  return status == cudaSuccess ? load_typed<double>() : status;
}

template <class T>
cudaError_t multiply(const Launch& launch, std::int64_t n, const T* x, const T* y, T* z) {
  return zip(launch, n, x, y, z, Product{});
}
template <class T>
cudaError_t divide(const Launch& launch, std::int64_t n, const T* x, const T* y, T* z) {
  return zip(launch, n, x, y, z, Quotient{});
}

template <class T>
cudaError_t axpby(const Launch& launch, std::int64_t n, ScalarValue<T> alpha, const T* x,
                  ScalarValue<T> beta, T* y) {
  if (n <= 0) return cudaSuccess;
  const bool packed = aligned(x) && aligned(y);
  const auto count = static_cast<std::uint64_t>(n);
  const auto kernel = beta.is_zero_value() ? axpby_kernel<T, false> : axpby_kernel<T, true>;
  return queue(launch, items_of<T>(count, packed), kernel, count, alpha, x, beta, y, packed);
}

template cudaError_t multiply(const Launch&, std::int64_t, const float*, const float*, float*);
template cudaError_t multiply(const Launch&, std::int64_t, const double*, const double*, double*);
template cudaError_t divide(const Launch&, std::int64_t, const float*, const float*, float*);
template cudaError_t divide(const Launch&, std::int64_t, const double*, const double*, double*);
template cudaError_t axpby(const Launch&, std::int64_t, ScalarValue<float>, const float*,
                           ScalarValue<float>, float*);
template cudaError_t axpby(const Launch&, std::int64_t, ScalarValue<double>, const double*,
                           ScalarValue<double>, double*);

}  // namespace troupe::host::cuda::kernels
