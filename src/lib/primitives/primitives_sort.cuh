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
cudaError_t sort_keys(Temporary& temporary, cudaStream_t stream, std::int64_t n, Bits bits,
                      const K* keys, K* sorted_keys) {
  using cub::DeviceRadixSort;
  if constexpr (kDescending) {
    return DeviceRadixSort::SortKeysDescending(temporary.memory, temporary.bytes, keys, sorted_keys,
                                               n, bits.begin, bits.end, stream);
  } else {
    return DeviceRadixSort::SortKeys(temporary.memory, temporary.bytes, keys, sorted_keys, n,
                                     bits.begin, bits.end, stream);
  }
}

template <bool kDescending, class K, class V>
cudaError_t sort_pairs(Temporary& temporary, cudaStream_t stream, std::int64_t n, Bits bits,
                       const K* keys, const V* values, K* sorted_keys, V* sorted_values) {
  using cub::DeviceRadixSort;
  if constexpr (kDescending) {
    return DeviceRadixSort::SortPairsDescending(temporary.memory, temporary.bytes, keys,
                                                sorted_keys, values, sorted_values, n, bits.begin,
                                                bits.end, stream);
  } else {
    return DeviceRadixSort::SortPairs(temporary.memory, temporary.bytes, keys, sorted_keys, values,
                                      sorted_values, n, bits.begin, bits.end, stream);
  }
}

}  // namespace

template <class K, bool kDescending>
cudaError_t Sorter<K, kDescending>::run(Temporary& temporary, cudaStream_t stream, std::int64_t n,
                                        Bits bits, const K* keys, K* sorted_keys) {
  return sort_keys<kDescending>(temporary, stream, n, bits, keys, sorted_keys);
}

template <class K, bool kDescending>
cudaError_t Sorter<K, kDescending>::run(Temporary& temporary, cudaStream_t stream, std::int64_t n,
                                        Bits bits, const K* keys, const std::uint32_t* values,
                                        K* sorted_keys, std::uint32_t* sorted_values) {
  return sort_pairs<kDescending>(temporary, stream, n, bits, keys, values, sorted_keys,
                                 sorted_values);
}

template <class K, bool kDescending>
cudaError_t Sorter<K, kDescending>::run(Temporary& temporary, cudaStream_t stream, std::int64_t n,
                                        Bits bits, const K* keys, const std::uint64_t* values,
                                        K* sorted_keys, std::uint64_t* sorted_values) {
  return sort_pairs<kDescending>(temporary, stream, n, bits, keys, values, sorted_keys,
                                 sorted_values);
}

}  // namespace troupe::host::cuda::kernels
