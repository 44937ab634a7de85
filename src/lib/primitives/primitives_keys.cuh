#pragma once

#include "lib/primitives/words.cuh"

/// Comparing keys whose type is known when a kernel runs.
namespace troupe::host::cuda::kernels {

template <class U>
__host__ __device__ bool differ(const Keys& keys, std::int64_t i, std::int64_t j) {
  const auto* const words = static_cast<const U*>(keys.at);
  return !Equal<U>(keys.meaning)(words[i], words[j]);
}

/// Whether a run of equal keys begins at i.
__host__ __device__ inline bool run_begins(const Keys& keys, std::int64_t i) {
  if (i == 0) return true;
  if (keys.bytes == sizeof(std::uint32_t)) return differ<std::uint32_t>(keys, i - 1, i);
  if (keys.bytes == sizeof(std::uint64_t)) return differ<std::uint64_t>(keys, i - 1, i);
  return differ<std::uint16_t>(keys, i - 1, i);
}

}  // namespace troupe::host::cuda::kernels
