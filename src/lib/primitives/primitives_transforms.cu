#include "lib/primitives/primitives_transforms.cuh"

#include "device_host/engine/cuda/launch.cuh"
#include "lib/primitives/elementwise.hpp"

namespace troupe::host::cuda::kernels {
namespace {

/// With `packed` both are aligned to kVectorBytes.
template <class T>
__global__ void transform_kernel(ApplyUnary<T> apply, std::uint64_t n, const T* x, T* y,
                                 bool packed) {
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

template <class T>
__global__ void transform_pairs_kernel(ApplyBinary<T> apply, std::uint64_t n, const T* x,
                                       const T* y, T* z, bool packed) {
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

/// Each block makes one partial result. Without `applies` the elements are taken as they are.
template <class T>
__global__ void __launch_bounds__(kThreads)
    transform_reduce_kernel(ApplyUnary<T> apply, bool applies, ApplyBinary<T> combine, T initial,
                            std::uint64_t n, const T* x, T* partial) {
  __shared__ T results[kThreads];
  T all = initial;
  for (auto i = first_index(); i < n; i += index_step())
    all = combine(all, applies ? apply(x[i]) : x[i]);
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
template <class T>
cudaError_t reduce_in_blocks(cudaStream_t stream, unsigned blocks, ApplyUnary<T> apply,
                             bool applies, ApplyBinary<T> combine, T initial, std::uint64_t n,
                             const T* x, T* partial) {
  cudaLaunchConfig_t config{};
  config.gridDim = dim3(blocks);
  config.blockDim = dim3(kThreads);
  config.stream = stream;
  return cudaLaunchKernelEx(&config, transform_reduce_kernel<T>, apply, applies, combine, initial,
                            n, x, partial);
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
  return queue(launch, threads_for<T>(n, packed), transform_kernel<T>, ApplyUnary<T>{op}, n, x, y,
               packed);
}

template <class T>
cudaError_t transform(const Launch& launch, primitives::Binary op, std::uint64_t n, const T* x,
                      const T* y, T* z) {
  if (n == 0) return cudaSuccess;
  const bool packed = aligned(x) && aligned(y) && aligned(z);
  return queue(launch, threads_for<T>(n, packed), transform_pairs_kernel<T>, ApplyBinary<T>{op}, n,
               x, y, z, packed);
}

template <class From, class To>
cudaError_t convert(const Launch& launch, std::uint64_t n, const From* x, To* y) {
  if (n == 0) return cudaSuccess;
  return queue(launch, n, convert_kernel<From, To>, n, x, y);
}

template <class T>
cudaError_t transform_reduce(const Launch& launch, primitives::Unary op, primitives::Binary combine,
                             T initial, std::uint64_t n, const T* x, T* partial, T* result) {
  constexpr std::uint64_t kElementsOfBlock = 16 * kThreads;
  const auto wanted = (n + kElementsOfBlock - 1) / kElementsOfBlock;
  const auto blocks = wanted < kMostPartialResults ? wanted : kMostPartialResults;
  const ApplyUnary<T> apply{op};
  const ApplyBinary<T> combined{combine};
  if (blocks <= 1)
    return reduce_in_blocks(launch.stream, 1, apply, true, combined, initial, n, x, result);
  const auto status = reduce_in_blocks(launch.stream, static_cast<unsigned>(blocks), apply, true,
                                       combined, initial, n, x, partial);
  if (status != cudaSuccess) return status;
  return reduce_in_blocks<T>(launch.stream, 1, apply, false, combined, initial, blocks, partial,
                             result);
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
  template cudaError_t transform_reduce(const Launch&, primitives::Unary, primitives::Binary, T,  \
                                        U64, const T*, T*, T*);                                   \
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
