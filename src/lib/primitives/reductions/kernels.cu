#include <thrust/iterator/counting_iterator.h>
#include <thrust/iterator/tabulate_output_iterator.h>
#include <thrust/iterator/transform_iterator.h>
#include <cub/device/device_reduce.cuh>
#include <cub/device/device_segmented_reduce.cuh>

#include <limits>

#include "lib/primitives/common/words.cuh"

namespace troupe::host::cuda::kernels {
namespace {

/// Where an element stands, and its rank: the smaller, the better.
template <class U>
struct Found {
  U rank;
  std::int64_t index;
};
constexpr std::int64_t kNowhere = std::numeric_limits<std::int64_t>::max();

template <class U>
struct FindIn {
  const U* x;
  Ranking<U> ranking;
  Magnitude<U> magnitude;
  U infinity;

  __host__ __device__ Found<U> operator()(std::int64_t index) const {
    const U word = x[index], size = magnitude(word);
    if (size > infinity) return {U(0), index};  // a NaN is before all numbers
    return {ranking.to_rank(size == 0 ? size : word), index};
  }
};
/// A total order, so that CUB may combine in any order of its own.
struct First {
  template <class U>
  __host__ __device__ Found<U> operator()(const Found<U>& a, const Found<U>& b) const {
    const bool is_b = b.rank < a.rank || (b.rank == a.rank && b.index < a.index);
    return {is_b ? b.rank : a.rank, is_b ? b.index : a.index};
  }
};
template <class U>
struct StoreFound {
  const U* x;
  U initial;
  U* value;
  std::int64_t* index;

  __host__ __device__ void operator()(std::int64_t, const Found<U>& found) const {
    const bool is_there = found.index != kNowhere;
    *value = is_there ? x[found.index] : initial;
    *index = is_there ? found.index : -1;
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

}  // namespace

template <class T>
cudaError_t sum(Temporary& temporary, cudaStream_t stream, std::int64_t n, const T* x, T* result) {
  return cub::DeviceReduce::Sum(temporary.memory, temporary.bytes, x, result, n, stream);
}

template <class U>
cudaError_t find_extreme(Temporary& temporary, cudaStream_t stream, std::int64_t n, const U* x,
                         const Meaning& meaning, bool largest, U initial, U* value,
                         std::int64_t* index) {
  const thrust::counting_iterator<std::int64_t> first(0);
  const FindIn<U> find{x, Ranking<U>(meaning.floating, meaning.is_signed, largest),
                       Magnitude<U>(meaning), static_cast<U>(meaning.infinity)};
  return cub::DeviceReduce::Reduce(
      temporary.memory, temporary.bytes, thrust::make_transform_iterator(first, find),
      thrust::make_tabulate_output_iterator(StoreFound<U>{x, initial, value, index}), n, First{},
      Found<U>{kAllBits<U>, kNowhere}, stream);
}

template <class T>
cudaError_t segmented_reduce(Temporary& temporary, cudaStream_t stream, const Segments& segments,
                             const T* x, Combine<T> combine, T initial, T* result) {
  const thrust::counting_iterator<std::int64_t> first(0);
  const SegmentBegin begin{segments.offsets, segments.n};
  return cub::DeviceSegmentedReduce::Reduce(
      temporary.memory, temporary.bytes, x, result, segments.count,
      thrust::make_transform_iterator(first, begin),
      thrust::make_transform_iterator(first, SegmentEnd{begin}), combine, initial, stream);
}

using I64 = std::int64_t;
using U16 = std::uint16_t;
using U32 = std::uint32_t;
using U64 = std::uint64_t;

#define TROUPE_INSTANTIATE(U)                                                                      \
  template cudaError_t find_extreme(Temporary&, cudaStream_t, I64, const U*, const Meaning&, bool, \
                                    U, U*, I64*);
TROUPE_INSTANTIATE(U16)
TROUPE_INSTANTIATE(U32)
TROUPE_INSTANTIATE(U64)
#undef TROUPE_INSTANTIATE

#define TROUPE_INSTANTIATE(T)                                                                \
  template cudaError_t sum(Temporary&, cudaStream_t, I64, const T*, T*);                     \
  template cudaError_t segmented_reduce(Temporary&, cudaStream_t, const Segments&, const T*, \
                                        Combine<T>, T, T*);
TROUPE_INSTANTIATE(U32)
TROUPE_INSTANTIATE(U64)
TROUPE_INSTANTIATE(float)
TROUPE_INSTANTIATE(double)
#undef TROUPE_INSTANTIATE

}  // namespace troupe::host::cuda::kernels
