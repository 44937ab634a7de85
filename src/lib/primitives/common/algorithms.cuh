#pragma once

#include <cstddef>
#include <cstdint>

#include "device_host/engine/cuda/launch.hpp"
#include "lib/primitives/common/combine.hpp"

/// CUB's device-wide algorithms. Every function queues on a stream and returns. The result of each
/// is the same, bit for bit, in every run on the same device.
namespace troupe::host::cuda::kernels {

/// CUB_VERSION of the headers that the kernels are made of: 100000 * major + 100 * minor + patch.
int cub_version();

/// Device memory that an algorithm works in. Where `memory` is not set, a function queues nothing:
/// it only sets `bytes` to what it needs.
struct Temporary {
  void* memory = nullptr;
  std::size_t bytes = 0;
};

/// What elements are, of which a kernel sees the bits as unsigned integers.
struct Meaning {
  bool floating = false, is_signed = false;
  std::uint64_t infinity = ~std::uint64_t{0};  ///< of floating-point numbers; what is above is NaN
};

/// The sum of n elements; n may be 0. T is an unsigned integer of 32 or 64 bits, float or double.
template <class T>
cudaError_t sum(Temporary& temporary, cudaStream_t stream, std::int64_t n, const T* x, T* result);
/// The smallest or largest of n elements, where the first NaN is that, and the place of the first
/// such; `initial` and -1 if n is 0. U is an unsigned integer of 16, 32 or 64 bits.
template <class U>
cudaError_t find_extreme(Temporary& temporary, cudaStream_t stream, std::int64_t n, const U* x,
                         const Meaning& meaning, bool largest, U initial, U* value,
                         std::int64_t* index);

/// Segments of n elements, from one offset to the next. They are cut at 0 and n.
struct Segments {
  std::int64_t n = 0, count = 0;
  const std::int64_t* offsets = nullptr;
};
/// The elements of each segment and `initial` combined; T as in sum. There is at least one segment.
template <class T>
cudaError_t segmented_reduce(Temporary& temporary, cudaStream_t stream, const Segments& segments,
                             const T* x, Combine<T> combine, T initial, T* result);

/// Prefix sums of n elements, faster than scan(); y may be x. T is an unsigned integer of 32 or 64
/// bits.
template <class T>
cudaError_t inclusive_sum(Temporary& temporary, cudaStream_t stream, std::int64_t n, const T* x,
                          T* y);
template <class T>
cudaError_t exclusive_sum(Temporary& temporary, cudaStream_t stream, std::int64_t n, const T* x,
                          T* y);

/// How elements of T, an unsigned integer of 32 or 64 bits, float or double, are scanned.
template <class T>
struct Scanned {
  Combine<T> combine;
  bool exclusive;
  ScalarValue<T> initial;
  T neutral;  ///< combined with any element it gives that element
};
/// A scan of n elements; n > 0. y may be x.
template <class T>
cudaError_t scan(Temporary& temporary, cudaStream_t stream, std::int64_t n, const T* x,
                 const Scanned<T>& how, T* y);

/// Keys of 2, 4 or 8 bytes, of which equal ones that follow one another are a run.
struct Keys {
  const void* at;
  std::size_t bytes;
  std::uint64_t magnitude;  ///< the bits that count where a key is compared with zero and infinity
  std::uint64_t infinity;
};
/// A scan of each run of keys.
template <class T>
cudaError_t scan_by_key(Temporary& temporary, cudaStream_t stream, std::int64_t n, const Keys& keys,
                        const T* x, const Scanned<T>& how, T* y);

/// How many of the n elements are not zero, and the indices of the first `capacity` of them,
/// ascending; n may be 0. U is an unsigned integer of 16, 32 or 64 bits.
template <class U>
cudaError_t select_nonzero(Temporary& temporary, cudaStream_t stream, std::int64_t n, const U* x,
                           const Meaning& meaning, std::int64_t capacity, std::int64_t* indices,
                           std::int64_t* count);
/// Sets indices[*count, capacity) to -1.
cudaError_t fill_tail(const Launch& launch, const std::int64_t* count, std::int64_t capacity,
                      std::int64_t* indices);

/// The elements whose flags are not zero, the first `capacity` of them, and how many there are. T
/// is an unsigned integer of 16, 32 or 64 bits.
template <class T>
cudaError_t select_flagged(Temporary& temporary, cudaStream_t stream, std::int64_t n, const T* x,
                           const std::uint8_t* flags, std::int64_t capacity, T* selected,
                           std::int64_t* count);
/// Those, then the others in the reverse of their order.
template <class T>
cudaError_t partition_flagged(Temporary& temporary, cudaStream_t stream, std::int64_t n, const T* x,
                              const std::uint8_t* flags, T* y, std::int64_t* count);
/// The first of each run of equal elements; U as for select_nonzero.
template <class U>
cudaError_t unique(Temporary& temporary, cudaStream_t stream, std::int64_t n, const U* x,
                   const Meaning& meaning, std::int64_t capacity, U* selected, std::int64_t* count);

/// Where runs of equal keys go: as many as there is room for.
template <class K, class V>
struct Runs {
  std::int64_t capacity = 0;
  K* keys = nullptr;
  V* results = nullptr;
  std::int64_t* count = nullptr;
};
/// The last key of each run of equal ones, and its values combined; without values each counts 1. K
/// is an unsigned integer of 16, 32 or 64 bits, V one of 64 bits; of 32 bits only if K is not
/// of 16.
template <class K, class V>
cudaError_t reduce_runs(Temporary& temporary, cudaStream_t stream, std::int64_t n, const K* keys,
                        const Meaning& meaning, const V* values, Combine<V> combine,
                        const Runs<K, V>& runs);

}  // namespace troupe::host::cuda::kernels
