#include <algorithm>
#include <bit>
#include <concepts>
#include <type_traits>
#include <vector>

#include "lib/primitives/primitives_cpu.hpp"

namespace troupe::host::cpu {
namespace {

using primitives::Order;

/// The bits of a key as an integer.
template <class T>
using Unsigned = std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>;

/// Unsigned integers in the order in which CUB's radix sort has the keys.
template <class K>
Unsigned<K> rank_of(K key) {
  using U = Unsigned<K>;
  constexpr U kSign = U{1} << (8 * sizeof(U) - 1);
  const auto bits = std::bit_cast<U>(key);
  if constexpr (std::floating_point<K>) {
    if (bits == kSign || (bits & kSign) == 0) return bits | kSign;  // -0 is +0
    return ~bits;
  } else {
    return std::is_signed_v<K> ? bits ^ kSign : bits;
  }
}

/// Sorts items, whose keys `key_of` gives.
template <class Item, class KeyOf>
void stable_sort(Item* begin, std::int64_t n, Order order, KeyOf key_of) {
  if (order == Order::ascending) {
    std::stable_sort(begin, begin + n, [key_of](const Item& a, const Item& b) {
      return rank_of(key_of(a)) < rank_of(key_of(b));
    });
  } else {
    std::stable_sort(begin, begin + n, [key_of](const Item& a, const Item& b) {
      return rank_of(key_of(a)) > rank_of(key_of(b));
    });
  }
}

}  // namespace

template <class K>
Result<void> Primitives::sort_keys(const primitives::Sort& op, const Call& call) {
  return services_.submit(call, [n = op.n, order = op.order, keys = call.at<const K>(op.keys),
                                 sorted = call.at<K>(op.sorted_keys)] {
    std::copy_n(keys, n, sorted);
    stable_sort(sorted, n, order, [](K key) { return key; });
  });
}

template <class K, class V>
Result<void> Primitives::sort_pairs(const primitives::Sort& op, const Call& call) {
  return services_.submit(
      call, [n = op.n, order = op.order, keys = call.at<const K>(op.keys),
             values = call.at<const V>(op.values), sorted_keys = call.at<K>(op.sorted_keys),
             sorted_values = call.at<V>(op.sorted_values)] {
        struct Pair {
          K key;
          V value;
        };
        std::vector<Pair> pairs(static_cast<std::size_t>(n));
        std::transform(keys, keys + n, values, pairs.begin(), [](K key, V value) {
          return Pair{key, value};
        });
        stable_sort(pairs.data(), n, order, [](const Pair& pair) { return pair.key; });
        std::transform(pairs.begin(), pairs.end(), sorted_keys,
                       [](const Pair& pair) { return pair.key; });
        std::transform(pairs.begin(), pairs.end(), sorted_values,
                       [](const Pair& pair) { return pair.value; });
      });
}

Result<void> Primitives::run(const primitives::Sort& op, const Call& call) {
  return with_countable(op.dtype, [&]<class K>(K) {
    if (op.value_bytes == 0) return sort_keys<K>(op, call);
    return op.value_bytes == 4 ? sort_pairs<K, std::uint32_t>(op, call)
                               : sort_pairs<K, std::uint64_t>(op, call);
  });
}

}  // namespace troupe::host::cpu

extern "C" __attribute__((visibility("default"))) troupe::host::LibraryHalf* troupe_library_make(
    troupe::host::cpu::Services& services) {
  return new troupe::host::cpu::Primitives(services);
}
