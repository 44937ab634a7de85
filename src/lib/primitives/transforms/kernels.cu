#include "lib/primitives/transforms/kernels.cuh"

#include "device_host/engine/cuda/launch.cuh"
#include "lib/primitives/transforms/elementwise.hpp"
#include "lib/primitives/transforms/narrow.cuh"

namespace troupe::host::cuda::kernels {
namespace {

struct ApplyNarrowUnary {
  ApplyUnary<float> apply;
  NarrowFloat format;

  __device__ std::uint16_t operator()(std::uint16_t x) const {
    return narrowed(format, apply(widened(format, x)));
  }
};
struct ApplyNarrowBinary {
  ApplyBinary<float> apply;
  NarrowFloat format;

  __device__ std::uint16_t operator()(std::uint16_t x, std::uint16_t y) const {
    return narrowed(format, apply(widened(format, x), widened(format, y)));
  }
};

/// With `packed` both are aligned to kVectorBytes.
template <class T, class Apply>
__global__ void transform_kernel(Apply apply, std::uint64_t n, const T* x, T* y, bool packed) {
  using P = Pack<T>;
  const std::uint64_t packs = packed ? n / P::kSize : 0;
  for (auto i = first_index(); i < packs; i += index_step()) {
    P pack = reinterpret_cast<const P*>(x)[i];
#pragma unroll
    for (int k = 0; k < P::kSize; ++k) pack.element[k] = apply(pack.element[k]);
    reinterpret_cast<P*>(y)[i] = pack;
  }
  for (auto i = packs * P::kSize + first_index(); i < n; i += index_step()) y[i] = apply(x[i]);
}

template <class T, class Apply>
__global__ void transform_pairs_kernel(Apply apply, std::uint64_t n, const T* x, const T* y, T* z,
                                       bool packed) {
  using P = Pack<T>;
  const std::uint64_t packs = packed ? n / P::kSize : 0;
  for (auto i = first_index(); i < packs; i += index_step()) {
    P pack = reinterpret_cast<const P*>(x)[i];
    const P other = reinterpret_cast<const P*>(y)[i];
#pragma unroll
    for (int k = 0; k < P::kSize; ++k) pack.element[k] = apply(pack.element[k], other.element[k]);
    reinterpret_cast<P*>(z)[i] = pack;
  }
  for (auto i = packs * P::kSize + first_index(); i < n; i += index_step())
    z[i] = apply(x[i], y[i]);
}

template <class From, class To>
__global__ void convert_kernel(std::uint64_t n, const From* x, To* y) {
  for (auto i = first_index(); i < n; i += index_step()) y[i] = converted<To>(x[i]);
}

template <class To>
__global__ void widen_kernel(std::uint64_t n, NarrowFloat format, const std::uint16_t* x, To* y) {
  for (auto i = first_index(); i < n; i += index_step())
    y[i] = converted<To>(widened(format, x[i]));
}
template <class From>
__global__ void narrow_kernel(std::uint64_t n, const From* x, NarrowFloat format,
                              std::uint16_t* y) {
  for (auto i = first_index(); i < n; i += index_step())
    y[i] = narrowed(format, static_cast<float>(x[i]));
}
__global__ void reformat_kernel(std::uint64_t n, NarrowFloat from, const std::uint16_t* x,
                                NarrowFloat to, std::uint16_t* y) {
  for (auto i = first_index(); i < n; i += index_step()) y[i] = narrowed(to, widened(from, x[i]));
}

/// How elements are read.
template <class T>
struct AsTheyAre {
  using Element = T;
  __device__ T operator()(T x) const { return x; }
};
struct Widened {
  using Element = std::uint16_t;
  NarrowFloat format;
  __device__ float operator()(std::uint16_t x) const { return widened(format, x); }
};

/// Each block makes one partial result. With `packed` the elements are aligned to kVectorBytes; the
/// order in which they are combined does not depend on that.
template <class Load, class T>
__global__ void __launch_bounds__(kThreads)
    reduce_kernel(Load load, Reducing<T> how, std::uint64_t n, const typename Load::Element* x,
                  bool packed, T* partial) {
  using P = Pack<typename Load::Element>;
  __shared__ T results[kThreads];
  const ApplyUnary<T> apply{how.op};
  const ApplyBinary<T> combine{how.combine};
  T all = how.initial;
  const std::uint64_t packs = n / P::kSize;
  for (auto i = first_index(); i < packs; i += index_step()) {
    P pack;
    if (packed) {
      pack = reinterpret_cast<const P*>(x)[i];
    } else {
#pragma unroll
      for (int k = 0; k < P::kSize; ++k) pack.element[k] = x[i * P::kSize + k];
    }
#pragma unroll
    for (int k = 0; k < P::kSize; ++k) {
      const T value = load(pack.element[k]);
      all = combine(all, how.applies ? apply(value) : value);
    }
  }
  for (auto i = packs * P::kSize + first_index(); i < n; i += index_step()) {
    const T value = load(x[i]);
    all = combine(all, how.applies ? apply(value) : value);
  }
  results[threadIdx.x] = all;
  for (unsigned width = kThreads / 2; width > 0; width /= 2) {
    __syncthreads();
    if (threadIdx.x < width)
      results[threadIdx.x] = combine(results[threadIdx.x], results[threadIdx.x + width]);
  }
  if (threadIdx.x == 0) partial[blockIdx.x] = results[0];
}

constexpr std::uint64_t kTileBytes = 16'384;

template <class Word>
__device__ void copy_words(const std::byte* from, std::byte* to, std::uint64_t bytes) {
  const auto words = bytes / sizeof(Word);
  for (std::uint64_t i = threadIdx.x; i < words; i += kThreads)
    reinterpret_cast<Word*>(to)[i] = reinterpret_cast<const Word*>(from)[i];
  for (auto i = words * sizeof(Word) + threadIdx.x; i < bytes; i += kThreads) to[i] = from[i];
}

/// Each block copies tiles of any of the ranges, so that one long range keeps all blocks busy.
__global__ void __launch_bounds__(kThreads) copy_kernel(Copies copies) {
  const auto tiles = copies.first_tile[copies.count];
  for (auto tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
    int low = 0, high = copies.count - 1;  // the last range that begins at this tile or before it
    while (low < high) {
      const int middle = (low + high + 1) / 2;
      if (copies.first_tile[middle] <= tile) {
        low = middle;
      } else {
        high = middle - 1;
      }
    }
    const auto begin = (tile - copies.first_tile[low]) * kTileBytes;
    const auto left = copies.bytes[low] - begin, bytes = left < kTileBytes ? left : kTileBytes;
    const auto* const from = copies.from[low] + begin;
    auto* const to = copies.to[low] + begin;
    const auto places =
        reinterpret_cast<std::uintptr_t>(from) | reinterpret_cast<std::uintptr_t>(to);
    if (places % sizeof(uint4) == 0) {
      copy_words<uint4>(from, to, bytes);
    } else if (places % sizeof(std::uint32_t) == 0) {
      copy_words<std::uint32_t>(from, to, bytes);
    } else {
      copy_words<std::byte>(from, to, bytes);
    }
  }
}

/// With a grid that does not depend on the device.
template <class Load, class T>
cudaError_t reduce_in_blocks(cudaStream_t stream, unsigned blocks, Load load,
                             const Reducing<T>& how, std::uint64_t n,
                             const typename Load::Element* x, T* partial) {
  cudaLaunchConfig_t config{};
  config.gridDim = dim3(blocks);
  config.blockDim = dim3(kThreads);
  config.stream = stream;
  return cudaLaunchKernelEx(&config, reduce_kernel<Load, T>, load, how, n, x, aligned(x), partial);
}

/// How many blocks make partial results of n elements.
unsigned blocks_that_reduce(std::uint64_t n) {
  constexpr std::uint64_t kElementsOfBlock = 16 * kThreads;
  const auto wanted = (n + kElementsOfBlock - 1) / kElementsOfBlock;
  return static_cast<unsigned>(wanted == 0                    ? 1
                               : wanted < kMostPartialResults ? wanted
                                                              : kMostPartialResults);
}

/// Combines partial results.
template <class T>
cudaError_t reduce_partial(cudaStream_t stream, unsigned blocks, Reducing<T> how, const T* partial,
                           T* result) {
  how.applies = false;
  return reduce_in_blocks(stream, 1, AsTheyAre<T>{}, how, blocks, partial, result);
}

template <class T>
std::uint64_t threads_for(std::uint64_t n, bool packed) {
  return packed ? (n + Pack<T>::kSize - 1) / Pack<T>::kSize : n;
}

}  // namespace

template <class T>
cudaError_t transform(const Launch& launch, primitives::Unary op, std::uint64_t n, const T* x,
                      T* y) {
  if (n == 0) return cudaSuccess;
  const bool packed = aligned(x) && aligned(y);
  return queue(launch, threads_for<T>(n, packed), transform_kernel<T, ApplyUnary<T>>,
               ApplyUnary<T>{op}, n, x, y, packed);
}

cudaError_t transform(const Launch& launch, primitives::Unary op, std::uint64_t n,
                      NarrowFloat format, const std::uint16_t* x, std::uint16_t* y) {
  if (n == 0) return cudaSuccess;
  const bool packed = aligned(x) && aligned(y);
  return queue(launch, threads_for<std::uint16_t>(n, packed),
               transform_kernel<std::uint16_t, ApplyNarrowUnary>, ApplyNarrowUnary{{op}, format}, n,
               x, y, packed);
}

template <class T>
cudaError_t transform(const Launch& launch, primitives::Binary op, std::uint64_t n, const T* x,
                      const T* y, T* z) {
  if (n == 0) return cudaSuccess;
  const bool packed = aligned(x) && aligned(y) && aligned(z);
  return queue(launch, threads_for<T>(n, packed), transform_pairs_kernel<T, ApplyBinary<T>>,
               ApplyBinary<T>{op}, n, x, y, z, packed);
}

cudaError_t transform(const Launch& launch, primitives::Binary op, std::uint64_t n,
                      NarrowFloat format, const std::uint16_t* x, const std::uint16_t* y,
                      std::uint16_t* z) {
  if (n == 0) return cudaSuccess;
  const bool packed = aligned(x) && aligned(y) && aligned(z);
  return queue(launch, threads_for<std::uint16_t>(n, packed),
               transform_pairs_kernel<std::uint16_t, ApplyNarrowBinary>,
               ApplyNarrowBinary{{op}, format}, n, x, y, z, packed);
}

template <class From, class To>
cudaError_t convert(const Launch& launch, std::uint64_t n, const From* x, To* y) {
  if (n == 0) return cudaSuccess;
  return queue(launch, n, convert_kernel<From, To>, n, x, y);
}

template <class To>
cudaError_t widen(const Launch& launch, std::uint64_t n, NarrowFloat format, const std::uint16_t* x,
                  To* y) {
  if (n == 0) return cudaSuccess;
  return queue(launch, n, widen_kernel<To>, n, format, x, y);
}

template <class From>
cudaError_t narrow(const Launch& launch, std::uint64_t n, const From* x, NarrowFloat format,
                   std::uint16_t* y) {
  if (n == 0) return cudaSuccess;
  return queue(launch, n, narrow_kernel<From>, n, x, format, y);
}

cudaError_t reformat(const Launch& launch, std::uint64_t n, NarrowFloat from,
                     const std::uint16_t* x, NarrowFloat to, std::uint16_t* y) {
  if (n == 0) return cudaSuccess;
  return queue(launch, n, reformat_kernel, n, from, x, to, y);
}

template <class T>
cudaError_t reduce(const Launch& launch, const Reducing<T>& how, std::uint64_t n, const T* x,
                   T* partial, T* result) {
  const auto blocks = blocks_that_reduce(n);
  const auto status = reduce_in_blocks(launch.stream, blocks, AsTheyAre<T>{}, how, n, x,
                                       blocks == 1 ? result : partial);
  if (status != cudaSuccess || blocks == 1) return status;
  return reduce_partial(launch.stream, blocks, how, partial, result);
}

/// The partial results are float, and so is the last of them.
cudaError_t reduce(const Launch& launch, const Reducing<float>& how, std::uint64_t n,
                   NarrowFloat format, const std::uint16_t* x, float* partial,
                   std::uint16_t* result) {
  const auto blocks = blocks_that_reduce(n);
  auto status = reduce_in_blocks(launch.stream, blocks, Widened{format}, how, n, x, partial);
  if (status == cudaSuccess && blocks > 1)
    status = reduce_partial(launch.stream, blocks, how, partial, partial);
  if (status != cudaSuccess) return status;
  return narrow(launch, 1, partial, format, result);
}

bool Copies::add(const std::byte* its_from, std::byte* its_to, std::uint64_t its_bytes) {
  if (count == kMost) return false;
  if (count == 0) first_tile[0] = 0;
  from[count] = its_from;
  to[count] = its_to;
  bytes[count] = its_bytes;
  first_tile[count + 1] =
      first_tile[count] + static_cast<std::uint32_t>((its_bytes + kTileBytes - 1) / kTileBytes);
  ++count;
  return true;
}

cudaError_t copy(const Launch& launch, const Copies& copies) {
  static_assert(sizeof(Copies) <= 4096);
  if (copies.count == 0) return cudaSuccess;
  const std::uint64_t tiles = copies.first_tile[copies.count];
  return queue(launch, tiles * kThreads, copy_kernel, copies);
}

using I32 = std::int32_t;
using I64 = std::int64_t;
using U32 = std::uint32_t;
using U64 = std::uint64_t;
using F32 = float;
using F64 = double;

#define TROUPE_CONVERT(From, To) template cudaError_t convert(const Launch&, U64, const From*, To*);
#define TROUPE_INSTANTIATE(T)                                                                     \
  template cudaError_t transform(const Launch&, primitives::Unary, U64, const T*, T*);            \
  template cudaError_t transform(const Launch&, primitives::Binary, U64, const T*, const T*, T*); \
  template cudaError_t reduce(const Launch&, const Reducing<T>&, U64, const T*, T*, T*);          \
  template cudaError_t widen(const Launch&, U64, NarrowFloat, const std::uint16_t*, T*);          \
  template cudaError_t narrow(const Launch&, U64, const T*, NarrowFloat, std::uint16_t*);         \
  TROUPE_CONVERT(T, I32)                                                                          \
  TROUPE_CONVERT(T, U32)                                                                          \
  TROUPE_CONVERT(T, I64)                                                                          \
  TROUPE_CONVERT(T, U64)                                                                          \
  TROUPE_CONVERT(T, F32)                                                                          \
  TROUPE_CONVERT(T, F64)
TROUPE_INSTANTIATE(I32)
TROUPE_INSTANTIATE(U32)
TROUPE_INSTANTIATE(I64)
TROUPE_INSTANTIATE(U64)
TROUPE_INSTANTIATE(F32)
TROUPE_INSTANTIATE(F64)
#undef TROUPE_INSTANTIATE
#undef TROUPE_CONVERT

}  // namespace troupe::host::cuda::kernels
