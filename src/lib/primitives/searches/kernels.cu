#include "lib/primitives/searches/kernels.cuh"

#include "device_host/engine/cuda/launch.cuh"
#include "lib/primitives/common/words.cuh"

namespace troupe::host::cuda::kernels {
namespace {

/// The order of Sort: that of the ranks, in which -0 counts as +0.
template <class U>
struct Ranks {
  Ranking<U> ranking;
  bool floating;

  __device__ U operator()(U word) const {
    return ranking.to_rank(floating && word == kSignBit<U> ? U(0) : word);
  }
};

template <class U>
__global__ void search_kernel(std::int64_t n, const U* sorted, Ranks<U> rank, bool upper,
                              std::uint64_t count, const U* values, std::int64_t* positions) {
  for (auto i = first_index(); i < count; i += index_step()) {
    const U value = rank(values[i]);
    std::int64_t begin = 0, end = n;  // the position is within [begin, end]
    while (begin < end) {
      const auto middle = begin + (end - begin) / 2;
      const U here = rank(sorted[middle]);
      const bool before = upper ? here <= value : here < value;
      if (before)
        begin = middle + 1;
      else
        end = middle;
    }
    positions[i] = begin;
  }
}

}  // namespace

template <class U>
cudaError_t search(const Launch& launch, std::int64_t n, const U* sorted, const Meaning& meaning,
                   bool upper, std::int64_t count, const U* values, std::int64_t* positions) {
  if (count <= 0) return cudaSuccess;
  const auto items = static_cast<std::uint64_t>(count);
  const Ranks<U> rank{Ranking<U>(meaning.floating, meaning.is_signed, false), meaning.floating};
  return queue(launch, items, search_kernel<U>, n, sorted, rank, upper, items, values, positions);
}

#define TROUPE_SEARCH(U)                                                                   \
  template cudaError_t search(const Launch&, std::int64_t, const U*, const Meaning&, bool, \
                              std::int64_t, const U*, std::int64_t*);
TROUPE_SEARCH(std::uint16_t)
TROUPE_SEARCH(std::uint32_t)
TROUPE_SEARCH(std::uint64_t)
#undef TROUPE_SEARCH

}  // namespace troupe::host::cuda::kernels
