#include "device_host/engine/cuda/kernels.hpp"

#include "device_host/engine/cuda/launch.cuh"

namespace troupe::host::cuda::kernels {
namespace {

struct Bytes16 {
  std::uint8_t byte[kVectorBytes];
};

/// Up to 15 bytes before the first 16-byte boundary, `vectors` full ones, up to 15 bytes after.
/// `head` and `body` are the pattern as it stands at the start of each part.
__global__ void fill_kernel(std::uint8_t* start, unsigned head_bytes, std::uint64_t vectors,
                            unsigned tail_bytes, Bytes16 head, uint4 body) {
  auto* const aligned = reinterpret_cast<uint4*>(start + head_bytes);
  for (auto i = first_index(); i < vectors; i += index_step()) aligned[i] = body;
  if (blockIdx.x == 0) {
    if (threadIdx.x < head_bytes) start[threadIdx.x] = head.byte[threadIdx.x];
    if (threadIdx.x < tail_bytes) {
      auto* const tail = reinterpret_cast<std::uint8_t*>(aligned + vectors);
      tail[threadIdx.x] = reinterpret_cast<const std::uint8_t*>(&body)[threadIdx.x];
    }
  }
}

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

/// y[i] = alpha x[i] + beta y[i]; the parts that HasX and HasY exclude are not read.
template <class T, bool HasX, bool HasY>
__global__ void axpby_kernel(std::uint64_t n, Factor<T> alpha, const T* x, Factor<T> beta, T* y,
                             bool packed) {
  const T a = !HasX ? T(0) : alpha.device != nullptr ? *alpha.device : alpha.value;
  const T b = !HasY ? T(0) : beta.device != nullptr ? *beta.device : beta.value;
  const auto combine = [a, b](T u, T v) -> T {
    if constexpr (HasX && HasY) return a * u + b * v;
    if constexpr (HasX) return a * u;
    if constexpr (HasY) return b * v;
    return T(0);
  };
  std::uint64_t done = 0;
  if (packed) {
    using P = Pack<T>;
    const std::uint64_t packs = n / P::kSize;
    for (auto i = first_index(); i < packs; i += index_step()) {
      P u{}, v{};
      if constexpr (HasX) u = reinterpret_cast<const P*>(x)[i];
      if constexpr (HasY) v = reinterpret_cast<const P*>(y)[i];
#pragma unroll
      for (int k = 0; k < P::kSize; ++k) v.element[k] = combine(u.element[k], v.element[k]);
      reinterpret_cast<P*>(y)[i] = v;
    }
    done = packs * P::kSize;
  }
  for (auto i = done + first_index(); i < n; i += index_step()) {
    T u = 0, v = 0;
    if constexpr (HasX) u = x[i];
    if constexpr (HasY) v = y[i];
    y[i] = combine(u, v);
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
bool is_zero(const Factor<T>& factor) {
  return factor.device == nullptr && factor.value == T(0);
}

template <class T, class I>
__global__ void gather_kernel(std::uint64_t n, const T* x, const I* index, T* z) {
  for (auto i = first_index(); i < n; i += index_step()) z[i] = x[index[i]];
}

template <class T>
cudaError_t load_typed() {
  return load_all(gather_kernel<T, std::int32_t>, gather_kernel<T, std::int64_t>,
                  zip_kernel<T, Product>, zip_kernel<T, Quotient>, axpby_kernel<T, true, true>,
                  axpby_kernel<T, true, false>, axpby_kernel<T, false, true>,
                  axpby_kernel<T, false, false>);
}

}  // namespace

cudaError_t preload() {
  auto status = load_all(fill_kernel);
  if (status == cudaSuccess) status = load_typed<float>();
  if (status == cudaSuccess) status = load_typed<double>();
  return status == cudaSuccess ? preload_random() : status;
}

cudaError_t fill(const Launch& launch, void* destination,
                 const std::array<std::uint8_t, 16>& pattern, std::size_t size,
                 std::uint64_t count) {
  std::uint64_t bytes = count * size;
  if (bytes == 0) return cudaSuccess;
  const auto misalignment = reinterpret_cast<std::uintptr_t>(destination) % kVectorBytes;
  std::uint64_t head_bytes = (kVectorBytes - misalignment) % kVectorBytes;
  if (head_bytes > bytes) head_bytes = bytes;
  bytes -= head_bytes;

  Bytes16 head{};
  uint4 body{};
  for (std::size_t i = 0; i < kVectorBytes; ++i) {
    head.byte[i] = pattern[i % size];
    reinterpret_cast<std::uint8_t*>(&body)[i] = pattern[(head_bytes + i) % size];
  }
  const std::uint64_t vectors = bytes / kVectorBytes;
  return queue(launch, vectors > 0 ? vectors : 1, fill_kernel,
               static_cast<std::uint8_t*>(destination), head_bytes, vectors, bytes % kVectorBytes,
               head, body);
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
cudaError_t axpby(const Launch& launch, std::int64_t n, Factor<T> alpha, const T* x, Factor<T> beta,
                  T* y) {
  if (n <= 0) return cudaSuccess;
  const bool packed = aligned(x) && aligned(y);
  const auto count = static_cast<std::uint64_t>(n);
  const auto kernel = is_zero(beta) ? axpby_kernel<T, true, false> : axpby_kernel<T, true, true>;
  return queue(launch, items_of<T>(count, packed), kernel, count, alpha, x, beta, y, packed);
}

template <class T>
cudaError_t scale(const Launch& launch, std::int64_t n, Factor<T> beta, T* y) {
  if (n <= 0) return cudaSuccess;
  const bool packed = aligned(y);
  const auto count = static_cast<std::uint64_t>(n);
  const auto kernel = is_zero(beta) ? axpby_kernel<T, false, false> : axpby_kernel<T, false, true>;
  return queue(launch, items_of<T>(count, packed), kernel, count, Factor<T>{},
               static_cast<const T*>(nullptr), beta, y, packed);
}

template <class T, class I>
cudaError_t gather(const Launch& launch, std::int64_t n, const T* x, const I* index, T* z) {
  if (n <= 0) return cudaSuccess;
  const auto count = static_cast<std::uint64_t>(n);
  return queue(launch, count, gather_kernel<T, I>, count, x, index, z);
}

template cudaError_t gather(const Launch&, std::int64_t, const float*, const std::int32_t*, float*);
template cudaError_t gather(const Launch&, std::int64_t, const float*, const std::int64_t*, float*);
template cudaError_t gather(const Launch&, std::int64_t, const double*, const std::int32_t*,
                            double*);
template cudaError_t gather(const Launch&, std::int64_t, const double*, const std::int64_t*,
                            double*);
template cudaError_t multiply(const Launch&, std::int64_t, const float*, const float*, float*);
template cudaError_t multiply(const Launch&, std::int64_t, const double*, const double*, double*);
template cudaError_t divide(const Launch&, std::int64_t, const float*, const float*, float*);
template cudaError_t divide(const Launch&, std::int64_t, const double*, const double*, double*);
template cudaError_t axpby(const Launch&, std::int64_t, Factor<float>, const float*, Factor<float>,
                           float*);
template cudaError_t axpby(const Launch&, std::int64_t, Factor<double>, const double*,
                           Factor<double>, double*);
template cudaError_t scale(const Launch&, std::int64_t, Factor<float>, float*);
template cudaError_t scale(const Launch&, std::int64_t, Factor<double>, double*);

}  // namespace troupe::host::cuda::kernels
