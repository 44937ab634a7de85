#include "lib/primitives/sorts/kernels.cuh"

#include "device_host/engine/cuda/launch.cuh"
#include "lib/primitives/common/words.cuh"

namespace troupe::host::cuda::kernels {
namespace {

__global__ void places_kernel(std::uint64_t n, std::uint32_t* places) {
  for (auto i = first_index(); i < n; i += index_step()) places[i] = static_cast<std::uint32_t>(i);
}

__global__ void segments_kernel(std::uint64_t n, const std::uint32_t* places, Offsets offsets,
                                std::uint32_t* numbers) {
  for (auto i = first_index(); i < n; i += index_step()) {
    const std::int64_t place = places[i];
    std::uint64_t low = 0, high = offsets.count + 1;
    while (low < high) {
      const auto middle = low + (high - low) / 2;
      if (offsets.at[middle] <= place) {
        low = middle + 1;
      } else {
        high = middle;
      }
    }
    numbers[i] = static_cast<std::uint32_t>(low);
  }
}

template <class T>
__global__ void take_kernel(std::uint64_t n, const std::uint32_t* places, Offsets offsets,
                            const T* x, T* y) {
  const auto begin = offsets.at[0], end = offsets.at[offsets.count];
  for (auto i = first_index(); i < n; i += index_step()) {
    const auto at = static_cast<std::int64_t>(i);
    y[i] = x[begin <= at && at < end ? places[i] : i];
  }
}

/// The ranks of keys, where -0 is +0.
template <class K>
struct Ranks {
  Ranking<K> ranking;

  __device__ K operator()(K key) const {
    return ranking.to_rank(key == kSignBit<K> ? K(key & ~ranking.floating) : key);
  }
};

/// How many of the first `taken` keys of the merged sequence are of a; where they are equal, those
/// of a come first. `at_a(i)` and `at_b(i)`: the rank of a key. O. Green, R. McColl and D. Bader,
/// "GPU merge path: a GPU merging algorithm", ICS 2012.
template <class AtA, class AtB>
__device__ std::uint64_t merge_path(std::uint64_t taken, std::uint64_t n_a, std::uint64_t n_b,
                                    AtA at_a, AtB at_b) {
  std::uint64_t low = taken > n_b ? taken - n_b : 0, high = taken < n_a ? taken : n_a;
  while (low < high) {
    const auto middle = low + (high - low) / 2;
    if (at_b(taken - 1 - middle) < at_a(middle)) {
      high = middle;
    } else {
      low = middle + 1;
    }
  }
  return low;
}

constexpr int kMergedByThread = 8;
constexpr std::uint64_t kMergedTile = kThreads * kMergedByThread;

/// Each block makes tiles of the merged sequence. The ranks of a tile's keys lie in shared memory,
/// those of a before those of b; there each thread finds out which keys its part consists of.
template <class K, class V>
__global__ void __launch_bounds__(kThreads)
    merge_kernel(Ranks<K> rank_of, Pairs<K, V> a, Pairs<K, V> b, K* merged, V* merged_values) {
  __shared__ K ranks[kMergedTile];
  __shared__ std::uint16_t sources[kMergedTile];
  __shared__ std::uint64_t bounds[2];
  const auto n = a.n + b.n;
  const auto step = gridDim.x * kMergedTile;
  for (auto begin = blockIdx.x * kMergedTile; begin < n; begin += step) {
    const auto count = n - begin < kMergedTile ? n - begin : kMergedTile;
    if (threadIdx.x < 2) {
      bounds[threadIdx.x] = merge_path(
          begin + threadIdx.x * count, a.n, b.n,
          [&](std::uint64_t i) { return rank_of(a.keys[i]); },
          [&](std::uint64_t i) { return rank_of(b.keys[i]); });
    }
    __syncthreads();
    const auto begin_a = bounds[0], begin_b = begin - begin_a;
    // Of keys that are not sorted the tile may have any number: see that it has room for them.
    std::uint64_t of_a = bounds[1] > begin_a ? bounds[1] - begin_a : 0;
    if (of_a > count) of_a = count;
    const auto of_b = count - of_a;
    for (std::uint64_t i = threadIdx.x; i < count; i += kThreads)
      ranks[i] = rank_of(i < of_a ? a.keys[begin_a + i] : b.keys[begin_b + i - of_a]);
    __syncthreads();

    const std::uint64_t first = threadIdx.x * kMergedByThread;
    if (first < count) {
      auto next_a = merge_path(
          first, of_a, of_b, [&](std::uint64_t i) { return ranks[i]; },
          [&](std::uint64_t i) { return ranks[of_a + i]; });
      auto next_b = of_a + first - next_a;
      for (auto i = first; i < first + kMergedByThread && i < count; ++i) {
        const bool from_b = next_a == of_a || (next_b < count && ranks[next_b] < ranks[next_a]);
        sources[i] = static_cast<std::uint16_t>(from_b ? next_b++ : next_a++);
      }
    }
    __syncthreads();
    for (std::uint64_t i = threadIdx.x; i < count; i += kThreads) {
      const std::uint64_t source = sources[i];
      const bool from_a = source < of_a;
      const auto at = from_a ? begin_a + source : begin_b + source - of_a;
      merged[begin + i] = from_a ? a.keys[at] : b.keys[at];
      if (merged_values != nullptr) merged_values[begin + i] = from_a ? a.values[at] : b.values[at];
    }
    __syncthreads();
  }
}

}  // namespace

cudaError_t number_places(const Launch& launch, std::uint64_t n, std::uint32_t* places) {
  return queue(launch, n, places_kernel, n, places);
}

cudaError_t number_segments(const Launch& launch, std::uint64_t n, const std::uint32_t* places,
                            const Offsets& offsets, std::uint32_t* numbers) {
  return queue(launch, n, segments_kernel, n, places, offsets, numbers);
}

template <class T>
cudaError_t take(const Launch& launch, std::uint64_t n, const std::uint32_t* places,
                 const Offsets& offsets, const T* x, T* y) {
  return queue(launch, n, take_kernel<T>, n, places, offsets, x, y);
}

template <class K, class V>
cudaError_t merge(const Launch& launch, KeyOrder order, const Pairs<K, V>& a, const Pairs<K, V>& b,
                  K* merged, V* merged_values) {
  const auto threads = (a.n + b.n + kMergedByThread - 1) / kMergedByThread;
  if (threads == 0) return cudaSuccess;
  return queue(launch, threads, merge_kernel<K, V>,
               Ranks<K>{{order.floating, order.is_signed, order.descending}}, a, b, merged,
               merged_values);
}

using U16 = std::uint16_t;
using U32 = std::uint32_t;
using U64 = std::uint64_t;

template cudaError_t take(const Launch&, U64, const U32*, const Offsets&, const U16*, U16*);
template cudaError_t take(const Launch&, U64, const U32*, const Offsets&, const U32*, U32*);
template cudaError_t take(const Launch&, U64, const U32*, const Offsets&, const U64*, U64*);

#define TROUPE_INSTANTIATE(K, V)                                                                  \
  template cudaError_t merge(const Launch&, KeyOrder, const Pairs<K, V>&, const Pairs<K, V>&, K*, \
                             V*);
TROUPE_INSTANTIATE(U16, U32)
TROUPE_INSTANTIATE(U16, U64)
TROUPE_INSTANTIATE(U32, U32)
TROUPE_INSTANTIATE(U32, U64)
TROUPE_INSTANTIATE(U64, U32)
TROUPE_INSTANTIATE(U64, U64)
#undef TROUPE_INSTANTIATE

}  // namespace troupe::host::cuda::kernels
