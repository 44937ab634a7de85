#include "lib/primitives/runs/kernels.cuh"

#include <thrust/iterator/counting_iterator.h>
#include <thrust/iterator/tabulate_output_iterator.h>
#include <cub/device/device_partition.cuh>
#include <cub/device/device_select.cuh>

#include "lib/primitives/common/keys.cuh"

namespace troupe::host::cuda::kernels {
namespace {

/// Copies an element of 2, 4 or 8 bytes.
__host__ __device__ inline void copy_element(std::size_t bytes, const void* from, std::int64_t i,
                                             void* to, std::int64_t at) {
  if (bytes == sizeof(std::uint32_t)) {
    static_cast<std::uint32_t*>(to)[at] = static_cast<const std::uint32_t*>(from)[i];
  } else if (bytes == sizeof(std::uint64_t)) {
    static_cast<std::uint64_t*>(to)[at] = static_cast<const std::uint64_t*>(from)[i];
  } else {
    static_cast<std::uint16_t*>(to)[at] = static_cast<const std::uint16_t*>(from)[i];
  }
}

/// Which places of keys are found. That is known when a kernel runs: one selection serves all.
enum class Found : std::uint32_t { begin_of_run, begin_of_long_run, end_of_long_run };

struct IsFound {
  Keys keys;
  std::int64_t n;
  Found found;

  __host__ __device__ bool operator()(std::int64_t i) const {
    const bool begins = run_begins(keys, i);
    if (found == Found::begin_of_run) return begins;
    const bool ends = i + 1 == n || run_begins(keys, i + 1);
    return found == Found::begin_of_long_run ? begins && !ends : ends && !begins;
  }
};

/// What is stored of the place i that is found as number `at`.
struct StoreFound {
  Keys keys;
  Found found;
  UniqueKeys unique;
  std::int64_t capacity;
  const std::int64_t* offsets;
  std::int64_t* places;  ///< offsets or lengths

  __host__ __device__ void operator()(std::int64_t at, std::int64_t i) const {
    if (at >= capacity) return;
    if (found == Found::begin_of_run) {
      copy_element(keys.bytes, keys.at, i, unique.keys, at);
      copy_element(unique.value_bytes, unique.values, i, unique.first_values, at);
    } else if (found == Found::begin_of_long_run) {
      places[at] = i;
    } else {
      places[at] = i + 1 - offsets[at];
    }
  }
};

cudaError_t find(Temporary& temporary, cudaStream_t stream, std::int64_t n, const StoreFound& store,
                 std::int64_t* count) {
  return cub::DeviceSelect::If(temporary.memory, temporary.bytes,
                               thrust::counting_iterator<std::int64_t>(0),
                               thrust::make_tabulate_output_iterator(store), count, n,
                               IsFound{store.keys, n, store.found}, stream);
}

struct IsFlagged {
  const std::uint8_t* flags;

  __host__ __device__ bool operator()(std::int64_t i) const { return flags[i] != 0; }
};
struct StoreElement {
  std::size_t bytes;
  const void* x;
  void* range;
  std::int64_t capacity;

  __host__ __device__ void operator()(std::int64_t at, std::int64_t i) const {
    if (at < capacity) copy_element(bytes, x, i, range, at);
  }
};

}  // namespace

cudaError_t unique_by_key(Temporary& temporary, cudaStream_t stream, std::int64_t n,
                          const Keys& keys, const UniqueKeys& unique, std::int64_t* count) {
  return find(temporary, stream, n,
              {keys, Found::begin_of_run, unique, unique.capacity, nullptr, nullptr}, count);
}

cudaError_t find_long_runs(Temporary& temporary, cudaStream_t stream, std::int64_t n,
                           const Keys& keys, std::int64_t capacity, std::int64_t* offsets,
                           std::int64_t* count) {
  return find(temporary, stream, n,
              {keys, Found::begin_of_long_run, {}, capacity, nullptr, offsets}, count);
}

cudaError_t measure_long_runs(Temporary& temporary, cudaStream_t stream, std::int64_t n,
                              const Keys& keys, std::int64_t capacity, const std::int64_t* offsets,
                              std::int64_t* lengths, std::int64_t* count) {
  return find(temporary, stream, n, {keys, Found::end_of_long_run, {}, capacity, offsets, lengths},
              count);
}

cudaError_t partition_three_way(Temporary& temporary, cudaStream_t stream, std::int64_t n,
                                const ThreeWays& ways, std::int64_t* counts) {
  const auto range = [&](int way) {
    return thrust::make_tabulate_output_iterator(
        StoreElement{ways.bytes, ways.x, ways.ranges[way], ways.capacities[way]});
  };
  return cub::DevicePartition::If(temporary.memory, temporary.bytes,
                                  thrust::counting_iterator<std::int64_t>(0), range(0), range(1),
                                  range(2), counts, n, IsFlagged{ways.first_flags},
                                  IsFlagged{ways.second_flags}, stream);
}

}  // namespace troupe::host::cuda::kernels
