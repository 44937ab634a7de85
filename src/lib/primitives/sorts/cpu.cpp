#include <algorithm>
#include <cstdint>
#include <type_traits>
#include <utility>

#include "lib/primitives/cpu.hpp"
#include "lib/primitives/sorts/key_order_cpu.hpp"

/// Sorts and merges on the cpu engine.
namespace troupe::host::cpu {
namespace {

/// Calls visit(K{}, V{}) for the types of keys and of values; without values V is std::nullptr_t.
template <class Op, class Visit>
Result<void> with_pair(const Op& op, Visit&& visit) {
  return with_ordered(op.dtype, [&]<class K>(K key) {
    if (op.value_bytes == 0) return visit(key, nullptr);
    return op.value_bytes == 4 ? visit(key, std::uint32_t{}) : visit(key, std::uint64_t{});
  });
}

template <class V>
constexpr bool kHasValues = !std::is_same_v<V, std::nullptr_t>;

/// Sorts keys, with their values if there are any, where they stand.
template <class K, class V>
void sort_range(std::int64_t n, K* keys, V* values, const Before<K>& before) {
  if constexpr (kHasValues<V>) {
    stable_sort_pairs(n, keys, values, before);
  } else {
    std::stable_sort(keys, keys + n, before);
  }
}

/// The bits of a key that count.
template <class K>
Unsigned<K> mask_of(const primitives::Sort& op) {
  using U = Unsigned<K>;
  constexpr std::uint32_t kBits = 8 * sizeof(K);
  const auto end = op.end_bit == 0 ? kBits : op.end_bit;
  return static_cast<U>((static_cast<U>(-1) >> (kBits - (end - op.begin_bit))) << op.begin_bit);
}

}  // namespace

Result<void> run(const primitives::Sort& op, const Call& call, Primitives& library) {
  return with_pair(op, [&]<class K, class V>(K, V) {
    return library.services.submit(
        call, [n = op.n, before = Before<K>{op.order, mask_of<K>(op)},
               keys = call.at<const K>(op.keys), sorted_keys = call.at<K>(op.sorted_keys),
               values = call.at<const V>(op.values), sorted_values = call.at<V>(op.sorted_values)] {
          std::copy_n(keys, n, sorted_keys);
          if constexpr (kHasValues<V>) std::copy_n(values, n, sorted_values);
          sort_range(n, sorted_keys, sorted_values, before);
        });
  });
}

Result<void> run(const primitives::SegmentedSort& op, const Call& call, Primitives& library) {
  return with_pair(op, [&]<class K, class V>(K, V) {
    return library.services.submit(
        call, [n = op.n, segments = op.segments, before = Before<K>{op.order},
               offsets = call.at<const std::int64_t>(op.offsets), keys = call.at<const K>(op.keys),
               sorted_keys = call.at<K>(op.sorted_keys), values = call.at<const V>(op.values),
               sorted_values = call.at<V>(op.sorted_values)] {
          std::copy_n(keys, n, sorted_keys);
          if constexpr (kHasValues<V>) std::copy_n(values, n, sorted_values);
          for (std::int64_t s = 0; s < segments; ++s) {
            const auto begin = std::clamp<std::int64_t>(offsets[s], 0, n);
            const auto end = std::clamp<std::int64_t>(offsets[s + 1], begin, n);
            if constexpr (kHasValues<V>) {
              sort_range(end - begin, sorted_keys + begin, sorted_values + begin, before);
            } else {
              sort_range(end - begin, sorted_keys + begin, sorted_values, before);
            }
          }
        });
  });
}

Result<void> run(const primitives::Merge& op, const Call& call, Primitives& library) {
  return with_pair(op, [&]<class K, class V>(K, V) {
    return library.services.submit(
        call, [n_a = op.n_a, n_b = op.n_b, before = Before<K>{op.order}, a = call.at<const K>(op.a),
               b = call.at<const K>(op.b), values_a = call.at<const V>(op.values_a),
               values_b = call.at<const V>(op.values_b), merged = call.at<K>(op.merged),
               merged_values = call.at<V>(op.merged_values)] {
          for (std::int64_t i = 0, j = 0; i < n_a || j < n_b;) {
            const auto at = i + j;
            const bool from_b = i == n_a || (j < n_b && before(b[j], a[i]));
            merged[at] = from_b ? b[j] : a[i];
            if constexpr (kHasValues<V>) merged_values[at] = from_b ? values_b[j] : values_a[i];
            ++(from_b ? j : i);
          }
        });
  });
}

TROUPE_HANDLERS(Primitives)

}  // namespace troupe::host::cpu
