#pragma once

#include "lib/primitives/primitives_kernels.cuh"

/// Comparing keys whose type is known when a kernel runs.
namespace troupe::host::cuda::kernels {

template <class K>
__host__ __device__ bool differ(const void* keys, std::int64_t i, std::int64_t j) {
  const auto* const typed = static_cast<const K*>(keys);
  return !(typed[i] == typed[j]);
}

/// Whether a run of equal keys begins at i.
__host__ __device__ inline bool run_begins(const Keys& keys, std::int64_t i) {
  if (i == 0) return true;
  switch (keys.kind) {
    case KeyKind::u32: return differ<std::uint32_t>(keys.at, i - 1, i);
    case KeyKind::u64: return differ<std::uint64_t>(keys.at, i - 1, i);
    case KeyKind::f32: return differ<float>(keys.at, i - 1, i);
    default: return differ<double>(keys.at, i - 1, i);
  }
}

}  // namespace troupe::host::cuda::kernels
