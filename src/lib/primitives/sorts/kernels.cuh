#pragma once

#include "lib/primitives/common/algorithms.cuh"

/// Sorts, what those of segments need beside, and merges. Every function queues on a stream and
/// returns.
namespace troupe::host::cuda::kernels {

/// The order of keys, which are given by their bits: that of CUB's radix sort.
struct KeyOrder {
  bool floating = false, is_signed = false, descending = false;
};
/// The bits of keys that are compared, [begin, end) from the lowest on.
struct Bits {
  int begin = 0, end = 0;
};
/// Stable radix sorts of n keys, which are not modified; n > 0. U is an unsigned integer of 16, 32
/// or 64 bits, V one of 32 or 64 bits: values are moved, whatever they mean. Floating-point keys
/// are compared by all their bits.
template <class U>
cudaError_t sort_keys(Temporary& temporary, cudaStream_t stream, std::int64_t n, Bits bits,
                      const KeyOrder& order, const U* keys, U* sorted_keys);
template <class U, class V>
cudaError_t sort_pairs(Temporary& temporary, cudaStream_t stream, std::int64_t n, Bits bits,
                       const KeyOrder& order, const U* keys, U* sorted_keys, const V* values,
                       V* sorted_values);

/// Where segments begin and end: `count` + 1 offsets.
struct Offsets {
  const std::int64_t* at = nullptr;
  std::uint64_t count = 0;
};

/// places[i] = i.
cudaError_t number_places(const Launch& launch, std::uint64_t n, std::uint32_t* places);
/// numbers[i]: how many offsets are not above places[i], which is the number of its segment, from 1
/// on.
cudaError_t number_segments(const Launch& launch, std::uint64_t n, const std::uint32_t* places,
                            const Offsets& offsets, std::uint32_t* numbers);
/// y[i] = x[places[i]] within the segments, and x[i] outside of them. T is an unsigned integer of
/// 16, 32 or 64 bits.
template <class T>
cudaError_t take(const Launch& launch, std::uint64_t n, const std::uint32_t* places,
                 const Offsets& offsets, const T* x, T* y);

/// Keys and what belongs to them; without values `values` is not set.
template <class K, class V>
struct Pairs {
  std::uint64_t n = 0;
  const K* keys = nullptr;
  const V* values = nullptr;
};
/// Both inputs merged. Nothing is read or written outside of them whatever their order is. K and V
/// are as for sorts.
template <class K, class V>
cudaError_t merge(const Launch& launch, KeyOrder order, const Pairs<K, V>& a, const Pairs<K, V>& b,
                  K* merged, V* merged_values);

}  // namespace troupe::host::cuda::kernels
