#include <cub/device/dispatch/dispatch_radix_sort.cuh>

#include "lib/primitives/common/words.cuh"
#include "lib/primitives/sorts/kernels.cuh"

/// Keys as CUB sees them. Their order is known when a kernel runs: one set of kernels for each size
/// of keys and of values serves integers of either kind and both directions, and one floating-point
/// numbers, instead of one for each of them, which would make the time to compile and the module
/// three times as long. Numbers have kernels apart because their zeros cost a twelfth of the speed.
namespace troupe::host::cuda::kernels {
namespace {

/// The bits of a key.
template <class U, bool kFloating>
struct Key {
  U bits;
};

/// The ranks of keys. CUB hands it through to where it looks at keys, as what takes apart keys that
/// are structs.
template <class U, bool kFloating>
struct KeyRanking : Ranking<U> {
  U minus_zero;  ///< the rank of -0

  explicit KeyRanking(const KeyOrder& order)
      : Ranking<U>(true, false, order.descending), minus_zero(this->to_rank(kSignBit<U>)) {}

  /// -0 counts as +0, whose rank has the opposite bits.
  __host__ __device__ U digits(U rank) const { return rank == minus_zero ? U(~rank) : rank; }
};
template <class U>
struct KeyRanking<U, false> {
  U inverted;

  explicit KeyRanking(const KeyOrder& order)
      : inverted(
            U((order.is_signed ? kSignBit<U> : U(0)) ^ (order.descending ? kAllBits<U> : U(0)))) {}

  __host__ __device__ U to_rank(U word) const { return U(word ^ inverted); }
  __host__ __device__ U from_rank(U rank) const { return U(rank ^ inverted); }
  __host__ __device__ U digits(U rank) const { return rank; }
};

}  // namespace
}  // namespace troupe::host::cuda::kernels

CUB_NAMESPACE_BEGIN
namespace detail::radix {

/// What CUB's sorts ask of a type of keys; see cub/block/radix_rank_sort_operations.cuh.
template <class U, bool kFloating>
struct traits_t<troupe::host::cuda::kernels::Key<U, kFloating>, false> {
  using Ranking = troupe::host::cuda::kernels::KeyRanking<U, kFloating>;
  using bit_ordered_type = U;

  struct bit_ordered_conversion_policy {
    static __host__ __device__ U to_bit_ordered(const Ranking& ranking, U bits) {
      return ranking.to_rank(bits);
    }
    static __host__ __device__ U from_bit_ordered(const Ranking& ranking, U rank) {
      return ranking.from_rank(rank);
    }
  };
  struct bit_ordered_inversion_policy {};  // nothing descends but by its ranking

  struct DigitOfRank {
    Ranking ranking;
    std::uint32_t begin, mask;

    __device__ std::uint32_t Digit(U rank) const {
      return static_cast<std::uint32_t>(ranking.digits(rank) >> begin) & mask;
    }
  };
  template <class, class>
  using digit_extractor_t = DigitOfRank;
  template <class>
  static __device__ DigitOfRank digit_extractor(int begin, int bits, const Ranking& ranking) {
    return {ranking, static_cast<std::uint32_t>(begin), (1u << bits) - 1};
  }

  /// The keys of the first and of the last rank.
  static __host__ __device__ U min_raw_binary_key(const Ranking& ranking) {
    return ranking.from_rank(U(0));
  }
  static __host__ __device__ U max_raw_binary_key(const Ranking& ranking) {
    return ranking.from_rank(U(~U(0)));
  }
};

}  // namespace detail::radix
CUB_NAMESPACE_END

namespace troupe::host::cuda::kernels {
namespace {

template <bool kFloating, class U, class V>
cudaError_t sort_keys_as(Temporary& temporary, cudaStream_t stream, std::int64_t n, Bits bits,
                         const KeyOrder& order, const U* keys, U* sorted_keys, const V* values,
                         V* sorted_values) {
  using Offset = unsigned long long;
  // As cub::DeviceRadixSort has it for U.
  using Dispatch = cub::DispatchRadixSort<cub::SortOrder::Ascending, Key<U, kFloating>, V, Offset,
                                          KeyRanking<U, kFloating>,
                                          cub::detail::radix::policy_hub<U, V, Offset>>;
  using K = Key<U, kFloating>;
  cub::DoubleBuffer<K> both_keys(
      reinterpret_cast<K*>(const_cast<U*>(keys)),  // not written: see is_overwrite_okay
      reinterpret_cast<K*>(sorted_keys));
  cub::DoubleBuffer<V> both_values(const_cast<V*>(values), sorted_values);
  constexpr bool kIsOverwriteOkay = false;
  return Dispatch::Dispatch(temporary.memory, temporary.bytes, both_keys, both_values,
                            static_cast<Offset>(n), bits.begin, bits.end, kIsOverwriteOkay, stream,
                            KeyRanking<U, kFloating>(order));
}

template <class U, class V>
cudaError_t sort(Temporary& temporary, cudaStream_t stream, std::int64_t n, Bits bits,
                 const KeyOrder& order, const U* keys, U* sorted_keys, const V* values,
                 V* sorted_values) {
  if constexpr (sizeof(U) > 2) {  // integers of 16 bits are no keys
    if (!order.floating)
      return sort_keys_as<false>(temporary, stream, n, bits, order, keys, sorted_keys, values,
                                 sorted_values);
  }
  return sort_keys_as<true>(temporary, stream, n, bits, order, keys, sorted_keys, values,
                            sorted_values);
}

}  // namespace

template <class U>
cudaError_t sort_keys(Temporary& temporary, cudaStream_t stream, std::int64_t n, Bits bits,
                      const KeyOrder& order, const U* keys, U* sorted_keys) {
  cub::NullType* const no_values = nullptr;
  return sort<U, cub::NullType>(temporary, stream, n, bits, order, keys, sorted_keys, no_values,
                                no_values);
}

template <class U, class V>
cudaError_t sort_pairs(Temporary& temporary, cudaStream_t stream, std::int64_t n, Bits bits,
                       const KeyOrder& order, const U* keys, U* sorted_keys, const V* values,
                       V* sorted_values) {
  return sort(temporary, stream, n, bits, order, keys, sorted_keys, values, sorted_values);
}

using I64 = std::int64_t;
using U16 = std::uint16_t;
using U32 = std::uint32_t;
using U64 = std::uint64_t;

#define TROUPE_INSTANTIATE_PAIRS(U, V)                                                            \
  template cudaError_t sort_pairs(Temporary&, cudaStream_t, I64, Bits, const KeyOrder&, const U*, \
                                  U*, const V*, V*);
#define TROUPE_INSTANTIATE(U)                                                                    \
  template cudaError_t sort_keys(Temporary&, cudaStream_t, I64, Bits, const KeyOrder&, const U*, \
                                 U*);                                                            \
  TROUPE_INSTANTIATE_PAIRS(U, U32)                                                               \
  TROUPE_INSTANTIATE_PAIRS(U, U64)
TROUPE_INSTANTIATE(U16)
TROUPE_INSTANTIATE(U32)
TROUPE_INSTANTIATE(U64)
#undef TROUPE_INSTANTIATE
#undef TROUPE_INSTANTIATE_PAIRS

}  // namespace troupe::host::cuda::kernels
