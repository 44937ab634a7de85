#pragma once

#include "lib/primitives/common/algorithms.cuh"

/// Comparing keys whose type is known when a kernel runs.
namespace troupe::host::cuda::kernels {

template <class U>
__host__ __device__ std::uint64_t word_at(const void* words, std::int64_t i) {
  return static_cast<const U*>(words)[i];
}
__host__ __device__ inline std::uint64_t key_at(const Keys& keys, std::int64_t i) {
  if (keys.bytes == sizeof(std::uint32_t)) return word_at<std::uint32_t>(keys.at, i);
  if (keys.bytes == sizeof(std::uint64_t)) return word_at<std::uint64_t>(keys.at, i);
  return word_at<std::uint16_t>(keys.at, i);
}

/// Whether a run of equal keys begins at i: -0 and +0 are equal, a NaN equals nothing.
__host__ __device__ inline bool run_begins(const Keys& keys, std::int64_t i) {
  if (i == 0) return true;
  const auto a = key_at(keys, i - 1), b = key_at(keys, i);
  const bool same = a == b && (a & keys.magnitude) <= keys.infinity;
  return !same && ((a | b) & keys.magnitude) != 0;
}

}  // namespace troupe::host::cuda::kernels
