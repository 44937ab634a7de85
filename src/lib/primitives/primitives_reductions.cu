#include <thrust/iterator/counting_iterator.h>
#include <thrust/iterator/tabulate_output_iterator.h>
#include <thrust/iterator/transform_iterator.h>
#include <cub/device/device_reduce.cuh>
#include <cub/device/device_segmented_reduce.cuh>
#include <cuda/functional>
#include <cuda/std/functional>

#include <type_traits>

#include "lib/primitives/primitives_kernels.cuh"

namespace troupe::host::cuda::kernels {
namespace {

/// As cuda::minimum and cuda::maximum, but a NaN wins against every number.
struct MinimumOrNan {
  template <class T>
  __host__ __device__ T operator()(T a, T b) const {
    return b < a || b != b ? b : a;
  }
};
struct MaximumOrNan {
  template <class T>
  __host__ __device__ T operator()(T a, T b) const {
    return a < b || b != b ? b : a;
  }
};

/// CUB has instructions for those of integers.
template <class T>
using Minimum = std::conditional_t<std::is_floating_point_v<T>, MinimumOrNan, ::cuda::minimum<>>;
template <class T>
using Maximum = std::conditional_t<std::is_floating_point_v<T>, MaximumOrNan, ::cuda::maximum<>>;

/// Which of the two is known when it runs: that halves the number of kernels, which wait for memory
/// anyway.
struct SmallestOrLargest {
  bool largest;

  template <class T>
  __host__ __device__ T operator()(T a, T b) const {
    return (largest ? a < b : b < a) || b != b ? b : a;
  }
};
/// An element and where it stands; -1: nowhere.
template <class T>
struct Found {
  T value;
  std::int64_t index;
};
template <class T>
struct FindIn {
  const T* x;

  __host__ __device__ Found<T> operator()(std::int64_t index) const { return {x[index], index}; }
};
/// A total order, so that CUB may combine in any order of its own.
struct FirstExtreme {
  bool largest;

  template <class T>
  __host__ __device__ Found<T> operator()(const Found<T>& a, const Found<T>& b) const {
    if (a.index < 0) return b;
    if (b.index < 0) return a;
    const bool a_nan = a.value != a.value, b_nan = b.value != b.value;
    if (a_nan != b_nan) return a_nan ? a : b;
    if (!a_nan) {
      if (a.value < b.value) return largest ? b : a;
      if (b.value < a.value) return largest ? a : b;
    }
    return a.index < b.index ? a : b;
  }
};
template <class T>
struct StoreFound {
  T* value;
  std::int64_t* index;

  __host__ __device__ void operator()(std::int64_t, const Found<T>& found) const {
    *value = found.value;
    *index = found.index;
  }
};

struct SegmentBegin {
  const std::int64_t* offsets;
  std::int64_t n;

  __host__ __device__ std::int64_t operator()(std::int64_t segment) const {
    const auto offset = offsets[segment];
    return offset < 0 ? 0 : offset < n ? offset : n;
  }
};
/// Never before it begins.
struct SegmentEnd {
  SegmentBegin begin;

  __host__ __device__ std::int64_t operator()(std::int64_t segment) const {
    const auto from = begin(segment), to = begin(segment + 1);
    return from < to ? to : from;
  }
};

template <class T, class Combine>
cudaError_t reduce_segments(Temporary& temporary, cudaStream_t stream, const Segments& segments,
                            const T* x, Combine combine, T initial, T* result) {
  const thrust::counting_iterator<std::int64_t> first(0);
  const SegmentBegin begin{segments.offsets, segments.n};
  return cub::DeviceSegmentedReduce::Reduce(
      temporary.memory, temporary.bytes, x, result, segments.count,
      thrust::make_transform_iterator(first, begin),
      thrust::make_transform_iterator(first, SegmentEnd{begin}), combine, initial, stream);
}

}  // namespace

template <class T>
cudaError_t sum(Temporary& temporary, cudaStream_t stream, std::int64_t n, const T* x, T* result) {
  return cub::DeviceReduce::Sum(temporary.memory, temporary.bytes, x, result, n, stream);
}

template <class T>
cudaError_t minimum(Temporary& temporary, cudaStream_t stream, std::int64_t n, const T* x,
                    T initial, T* result) {
  return cub::DeviceReduce::Reduce(temporary.memory, temporary.bytes, x, result, n, Minimum<T>{},
                                   initial, stream);
}

template <class T>
cudaError_t maximum(Temporary& temporary, cudaStream_t stream, std::int64_t n, const T* x,
                    T initial, T* result) {
  return cub::DeviceReduce::Reduce(temporary.memory, temporary.bytes, x, result, n, Maximum<T>{},
                                   initial, stream);
}

template <class T>
cudaError_t product(Temporary& temporary, cudaStream_t stream, std::int64_t n, const T* x,
                    T* result) {
  return cub::DeviceReduce::Reduce(temporary.memory, temporary.bytes, x, result, n,
                                   ::cuda::std::multiplies<>{}, T(1), stream);
}

template <class T>
cudaError_t reduce(Temporary& temporary, cudaStream_t stream, std::int64_t n, const T* x,
                   Combine<T> combine, T initial, T* result) {
  return cub::DeviceReduce::Reduce(temporary.memory, temporary.bytes, x, result, n, combine,
                                   initial, stream);
}

template <class T>
cudaError_t find_extreme(Temporary& temporary, cudaStream_t stream, std::int64_t n, const T* x,
                         bool largest, T initial, T* value, std::int64_t* index) {
  const thrust::counting_iterator<std::int64_t> first(0);
  return cub::DeviceReduce::Reduce(
      temporary.memory, temporary.bytes, thrust::make_transform_iterator(first, FindIn<T>{x}),
      thrust::make_tabulate_output_iterator(StoreFound<T>{value, index}), n, FirstExtreme{largest},
      Found<T>{initial, -1}, stream);
}

template <class T>
cudaError_t segmented_sum(Temporary& temporary, cudaStream_t stream, const Segments& segments,
                          const T* x, T* result) {
  return reduce_segments(temporary, stream, segments, x, ::cuda::std::plus<>{}, T(0), result);
}

template <class T>
cudaError_t segmented_extreme(Temporary& temporary, cudaStream_t stream, const Segments& segments,
                              const T* x, bool largest, T initial, T* result) {
  return reduce_segments(temporary, stream, segments, x, SmallestOrLargest{largest}, initial,
                         result);
}

using I32 = std::int32_t;
using I64 = std::int64_t;
using U32 = std::uint32_t;
using U64 = std::uint64_t;

#define TROUPE_INSTANTIATE(T)                                                                    \
  template cudaError_t minimum(Temporary&, cudaStream_t, I64, const T*, T, T*);                  \
  template cudaError_t maximum(Temporary&, cudaStream_t, I64, const T*, T, T*);                  \
  template cudaError_t find_extreme(Temporary&, cudaStream_t, I64, const T*, bool, T, T*, I64*); \
  template cudaError_t segmented_extreme(Temporary&, cudaStream_t, const Segments&, const T*,    \
                                         bool, T, T*);
TROUPE_INSTANTIATE(I32)
TROUPE_INSTANTIATE(U32)
TROUPE_INSTANTIATE(I64)
TROUPE_INSTANTIATE(U64)
TROUPE_INSTANTIATE(float)
TROUPE_INSTANTIATE(double)
#undef TROUPE_INSTANTIATE

/// Signed integers are added and multiplied as unsigned ones.
#define TROUPE_INSTANTIATE(T)                                                \
  template cudaError_t sum(Temporary&, cudaStream_t, I64, const T*, T*);     \
  template cudaError_t product(Temporary&, cudaStream_t, I64, const T*, T*); \
  template cudaError_t segmented_sum(Temporary&, cudaStream_t, const Segments&, const T*, T*);
TROUPE_INSTANTIATE(U32)
TROUPE_INSTANTIATE(U64)
TROUPE_INSTANTIATE(float)
TROUPE_INSTANTIATE(double)
#undef TROUPE_INSTANTIATE

template cudaError_t reduce(Temporary&, cudaStream_t, I64, const U32*, Combine<U32>, U32, U32*);
template cudaError_t reduce(Temporary&, cudaStream_t, I64, const U64*, Combine<U64>, U64, U64*);

}  // namespace troupe::host::cuda::kernels
