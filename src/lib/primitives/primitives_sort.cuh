#pragma once

#include <cub/device/device_radix_sort.cuh>

#include "lib/primitives/primitives_kernels.cuh"

/// What both files of sorts consist of.
///
/// Each type of key with each size of value is a set of kernels of its own. There are none for keys
/// of 8 bits or for f16 and bf16: they would double the time to compile and the size of the module.
/// Values are moved as words, so that one set serves all their types.
namespace troupe::host::cuda::kernels {
namespace {

template <bool kDescending, class K>
cudaError_t sort_keys(Temporary& temporary, cudaStream_t stream, std::int64_t n, const K* keys,
                      K* sorted_keys) {
  constexpr int kBits = 8 * sizeof(K);
  using cub::DeviceRadixSort;
  if constexpr (kDescending) {
    return DeviceRadixSort::SortKeysDescending(temporary.memory, temporary.bytes, keys, sorted_keys,
                                               n, 0, kBits, stream);
  } else {
    return DeviceRadixSort::SortKeys(temporary.memory, temporary.bytes, keys, sorted_keys, n, 0,
                                     kBits, stream);
  }
}

template <bool kDescending, class K, class V>
cudaError_t sort_pairs(Temporary& temporary, cudaStream_t stream, std::int64_t n, const K* keys,
                       const V* values, K* sorted_keys, V* sorted_values) {
  constexpr int kBits = 8 * sizeof(K);
  using cub::DeviceRadixSort;
  if constexpr (kDescending) {
    return DeviceRadixSort::SortPairsDescending(temporary.memory, temporary.bytes, keys,
                                                sorted_keys, values, sorted_values, n, 0, kBits,
                                                stream);
  } else {
    return DeviceRadixSort::SortPairs(temporary.memory, temporary.bytes, keys, sorted_keys, values,
                                      sorted_values, n, 0, kBits, stream);
  }
}

}  // namespace

template <class K, bool kDescending>
cudaError_t Sorter<K, kDescending>::run(Temporary& temporary, cudaStream_t stream, std::int64_t n,
                                        const K* keys, K* sorted_keys) {
  return sort_keys<kDescending>(temporary, stream, n, keys, sorted_keys);
}

template <class K, bool kDescending>
cudaError_t Sorter<K, kDescending>::run(Temporary& temporary, cudaStream_t stream, std::int64_t n,
                                        const K* keys, const std::uint32_t* values, K* sorted_keys,
                                        std::uint32_t* sorted_values) {
  return sort_pairs<kDescending>(temporary, stream, n, keys, values, sorted_keys, sorted_values);
}

template <class K, bool kDescending>
cudaError_t Sorter<K, kDescending>::run(Temporary& temporary, cudaStream_t stream, std::int64_t n,
                                        const K* keys, const std::uint64_t* values, K* sorted_keys,
                                        std::uint64_t* sorted_values) {
  return sort_pairs<kDescending>(temporary, stream, n, keys, values, sorted_keys, sorted_values);
}

}  // namespace troupe::host::cuda::kernels
