#pragma once

#include <algorithm>
#include <bit>
#include <concepts>
#include <cstdint>
#include <type_traits>
#include <vector>

#include <troupe/lib/primitives/types.hpp>

/// The order of keys on the cpu engine: that of CUB's radix sort.
namespace troupe::host::cpu {

/// The bits of a key as an integer.
template <class T>
using Unsigned =
    std::conditional_t<sizeof(T) == 2, std::uint16_t,
                       std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>>;

/// Unsigned integers in the order in which CUB's radix sort has the keys.
template <class K>
Unsigned<K> rank_of(K key) {
  using U = Unsigned<K>;
  constexpr auto kSign = static_cast<U>(U{1} << (8 * sizeof(U) - 1));
  const auto bits = std::bit_cast<U>(key);
  if constexpr (!std::integral<K>) {
    if (bits == kSign || (bits & kSign) == 0) return static_cast<U>(bits | kSign);  // -0 is +0
    return static_cast<U>(~bits);
  } else {
    return std::is_signed_v<K> ? bits ^ kSign : bits;
  }
}

template <class K, class V>
struct Pair {
  K key;
  V value;
};
template <class K, class V>
K key_of(const Pair<K, V>& pair) {
  return pair.key;
}
template <class K>
K key_of(K key) {
  return key;
}

/// Whether a key, or a pair by its key, must stand before another one. `mask`: the bits of the rank
/// that count.
template <class K>
struct Before {
  primitives::Order order;
  Unsigned<K> mask = static_cast<Unsigned<K>>(-1);

  template <class Item>
  bool operator()(const Item& a, const Item& b) const {
    const auto rank_a = rank_of(key_of(a)) & mask, rank_b = rank_of(key_of(b)) & mask;
    return order == primitives::Order::ascending ? rank_a < rank_b : rank_b < rank_a;
  }
};

/// Sorts n keys with their values, where they stand.
template <class K, class V>
void stable_sort_pairs(std::int64_t n, K* keys, V* values, const Before<K>& before) {
  std::vector<Pair<K, V>> pairs(static_cast<std::size_t>(n));
  std::transform(keys, keys + n, values, pairs.begin(), [](K key, V value) {
    return Pair<K, V>{key, value};
  });
  std::stable_sort(pairs.begin(), pairs.end(), before);
  for (std::size_t i = 0; i < pairs.size(); ++i) keys[i] = pairs[i].key, values[i] = pairs[i].value;
}

}  // namespace troupe::host::cpu
