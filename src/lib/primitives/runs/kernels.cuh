#pragma once

#include "lib/primitives/common/algorithms.cuh"

/// Algorithms that find places and then store what stands there, whatever its type. As those of
/// common/algorithms.cuh.
namespace troupe::host::cuda::kernels {

/// The first key of each run of equal ones and the value beside it, the first `capacity` of them,
/// and how many there are; n may be 0. Values have 4 or 8 bytes each.
struct UniqueKeys {
  const void* values = nullptr;
  std::size_t value_bytes = 0;
  std::int64_t capacity = 0;
  void* keys = nullptr;
  void* first_values = nullptr;
};
cudaError_t unique_by_key(Temporary& temporary, cudaStream_t stream, std::int64_t n,
                          const Keys& keys, const UniqueKeys& unique, std::int64_t* count);

/// Where the runs of at least two equal keys begin, the first `capacity` of them, and how many
/// there are; n may be 0.
cudaError_t find_long_runs(Temporary& temporary, cudaStream_t stream, std::int64_t n,
                           const Keys& keys, std::int64_t capacity, std::int64_t* offsets,
                           std::int64_t* count);
/// How long those are.
cudaError_t measure_long_runs(Temporary& temporary, cudaStream_t stream, std::int64_t n,
                              const Keys& keys, std::int64_t capacity, const std::int64_t* offsets,
                              std::int64_t* lengths, std::int64_t* count);

/// Elements of 2, 4 or 8 bytes that are parted by flags, and the ranges they go to.
struct ThreeWays {
  static constexpr int kWays = 3;

  const void* x = nullptr;
  std::size_t bytes = 0;
  const std::uint8_t* first_flags = nullptr;
  const std::uint8_t* second_flags = nullptr;
  void* ranges[kWays] = {};
  std::int64_t capacities[kWays] = {};
};
/// Parts n elements; n may be 0. The counts are those of the first two ranges.
cudaError_t partition_three_way(Temporary& temporary, cudaStream_t stream, std::int64_t n,
                                const ThreeWays& ways, std::int64_t* counts);

}  // namespace troupe::host::cuda::kernels
