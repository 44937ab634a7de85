#pragma once

#include <troupe/lib/primitives/elements.hpp>

/// Sorting in segments, and merging what is sorted. See primitives.hpp.
namespace troupe::primitives {

/// sorted_keys[0, n) are the n keys in order. With values, sorted_values[i] is the value that
/// belongs to sorted_keys[i]. The sort is stable, also in descending order: equal keys keep the
/// order that they have in the input.
///
/// Keys of floating type: -0 and +0 are equal, and each keeps its sign. NaNs are ordered by their
/// bits: in ascending order those with the sign bit come before -infinity, the others come after
/// +infinity.
///
/// Integers may be sorted by some of their bits alone, [begin_bit, end_bit) from the lowest on:
/// keys that are equal in these are equal. The fewer bits, the faster. The sign bit of signed keys
/// counts as its opposite, so that negative keys come first.
///
/// Values are elements of any type of 4 or 8 bytes; value_bytes = 0 sorts keys alone, and then both
/// ranges of values are absent. No output may overlap anything else. The device needs temporary
/// memory of about the size of the sorted keys and values.
struct Sort {
  static constexpr std::string_view kName = "primitives.sort";
  static constexpr DTypes kDTypes = kOrdered;
  static constexpr Traits kTraits = {.repeatable = true, .capturable = true};

  OpDType dtype;  ///< of the keys
  Order order{};
  std::uint32_t value_bytes = 0;  ///< 0, 4 or 8
  std::int64_t n = 0;
  Operand keys, values, sorted_keys, sorted_values;
  std::uint32_t begin_bit = 0;
  std::uint32_t end_bit = 0;  ///< 0: there are all bits from begin_bit on

  static constexpr std::array kOperands{read("keys", &Sort::keys), read("values", &Sort::values),
                                        write("sorted_keys", &Sort::sorted_keys),
                                        write("sorted_values", &Sort::sorted_values)};
  Result<void> check() const;
  [[nodiscard]] std::uint64_t written(const Operand& operand) const noexcept {
    return static_cast<std::uint64_t>(n) *
           (&operand == &sorted_values ? value_bytes : size_of(dtype));
  }
};

/// The bits of a key that count, [begin, end) from the lowest on; see Sort.
struct KeyBits {
  std::uint32_t begin = 0;
  std::uint32_t end = 0;  ///< 0: all from `begin` on
};

/// The keys of each segment in order: sorted_keys[offsets[s], offsets[s + 1]) are those of
/// keys[offsets[s], offsets[s + 1]), for each of `segments` segments. The offsets are i64, one more
/// than there are segments, and do not descend; where they do, the result is not specified. An
/// offset below 0 counts as 0, one above n as n. Keys before the first segment and behind the last
/// one keep their places.
///
/// The order of keys, its stability, values and outputs are as for Sort. On GPUs the time depends
/// on n alone: all keys are sorted twice, by themselves and then by their segments. So a few long
/// segments are as good as many short ones. n and `segments` are below 2^32 - 1 there (else
/// unsupported), and the device needs temporary memory of 16 bytes for each key beside that of a
/// Sort.
struct SegmentedSort {
  static constexpr std::string_view kName = "primitives.segmented_sort";
  static constexpr DTypes kDTypes = kOrdered;
  static constexpr Traits kTraits = {.repeatable = true, .capturable = true};

  OpDType dtype;  ///< of the keys
  Order order{};
  std::uint32_t value_bytes = 0;  ///< 0, 4 or 8
  std::int64_t n = 0;
  std::int64_t segments = 0;
  Operand keys, values, offsets, sorted_keys, sorted_values;

  static constexpr std::array kOperands{
      read("keys", &SegmentedSort::keys), read("values", &SegmentedSort::values),
      read("offsets", &SegmentedSort::offsets), write("sorted_keys", &SegmentedSort::sorted_keys),
      write("sorted_values", &SegmentedSort::sorted_values)};
  Result<void> check() const;
  [[nodiscard]] std::uint64_t written(const Operand& operand) const noexcept {
    return static_cast<std::uint64_t>(n) *
           (&operand == &sorted_values ? value_bytes : size_of(dtype));
  }
};

/// merged[0, n_a + n_b) are the keys of a[0, n_a) and of b[0, n_b) in order. Both are sorted in
/// that order; where they are not, the result is not specified. With values, merged_values[i] is
/// the value that belongs to merged[i]. The merge is stable: of equal keys those of a come first,
/// and those of one input keep their order.
///
/// The order of keys and the values are as for Sort. No output may overlap anything else.
struct Merge {
  static constexpr std::string_view kName = "primitives.merge";
  static constexpr DTypes kDTypes = kOrdered;
  static constexpr Traits kTraits = {.repeatable = true, .capturable = true};

  OpDType dtype;  ///< of the keys
  Order order{};
  std::uint32_t value_bytes = 0;  ///< 0, 4 or 8
  std::int64_t n_a = 0, n_b = 0;
  Operand a, b, values_a, values_b, merged, merged_values;

  static constexpr std::array kOperands{read("a", &Merge::a),
                                        read("b", &Merge::b),
                                        read("values_a", &Merge::values_a),
                                        read("values_b", &Merge::values_b),
                                        write("merged", &Merge::merged),
                                        write("merged_values", &Merge::merged_values)};
  Result<void> check() const;
  [[nodiscard]] std::uint64_t written(const Operand& operand) const noexcept {
    return static_cast<std::uint64_t>(n_a + n_b) *
           (&operand == &merged_values ? value_bytes : size_of(dtype));
  }
};

}  // namespace troupe::primitives

namespace troupe {

/// Sorts of segments and merges among the calls of Primitives.
class PrimitiveSorts : public detail::Calls {
 public:
  using Calls::Calls;

  /// See primitives::Sort. Both ranges have the same length. Errors: invalid.
  template <primitives::Ordered K>
  Future<void> sort(const GpuRef<K>& keys, const GpuRef<K>& sorted,
                    primitives::Order order = primitives::Order::ascending,
                    const primitives::KeyBits& bits = {}) const {
    return detail::submit_exact(*submitter_,
                                primitives::Sort{dtype_of<K>,
                                                 order,
                                                 0,
                                                 keys.length(),
                                                 keys.operand(),
                                                 {},
                                                 sorted.operand(),
                                                 {},
                                                 bits.begin,
                                                 bits.end},
                                {{"sorted_keys", sorted.length(), keys.length()}});
  }
  /// See primitives::Sort. All ranges have the same length. Errors: invalid.
  template <primitives::Ordered K, primitives::SortedValue V>
  Future<void> sort(const GpuRef<K>& keys, const GpuRef<V>& values, const GpuRef<K>& sorted_keys,
                    const GpuRef<V>& sorted_values,
                    primitives::Order order = primitives::Order::ascending,
                    const primitives::KeyBits& bits = {}) const {
    return detail::submit_exact(
        *submitter_,
        primitives::Sort{dtype_of<K>, order, sizeof(V), keys.length(), keys.operand(),
                         values.operand(), sorted_keys.operand(), sorted_values.operand(),
                         bits.begin, bits.end},
        {{"values", values.length(), keys.length()},
         {"sorted_keys", sorted_keys.length(), keys.length()},
         {"sorted_values", sorted_values.length(), keys.length()}});
  }
  /// See primitives::SegmentedSort. Both ranges have the same length. `offsets` has one element
  /// more than there are segments, so at least one. Errors: invalid, unsupported.
  template <primitives::Ordered K>
  Future<void> segmented_sort(const GpuRef<K>& keys, const GpuRef<std::int64_t>& offsets,
                              const GpuRef<K>& sorted,
                              primitives::Order order = primitives::Order::ascending) const {
    return detail::submit_exact(*submitter_,
                                primitives::SegmentedSort{dtype_of<K>,
                                                          order,
                                                          0,
                                                          keys.length(),
                                                          offsets.length() - 1,
                                                          keys.operand(),
                                                          {},
                                                          offsets.operand(),
                                                          sorted.operand(),
                                                          {}},
                                {{"sorted_keys", sorted.length(), keys.length()}});
  }
  /// The same with values. All ranges of keys and values have the same length.
  template <primitives::Ordered K, primitives::SortedValue V>
  Future<void> segmented_sort(const GpuRef<K>& keys, const GpuRef<V>& values,
                              const GpuRef<std::int64_t>& offsets, const GpuRef<K>& sorted_keys,
                              const GpuRef<V>& sorted_values,
                              primitives::Order order = primitives::Order::ascending) const {
    return detail::submit_exact(
        *submitter_,
        primitives::SegmentedSort{
            dtype_of<K>, order, sizeof(V), keys.length(), offsets.length() - 1, keys.operand(),
            values.operand(), offsets.operand(), sorted_keys.operand(), sorted_values.operand()},
        {{"values", values.length(), keys.length()},
         {"sorted_keys", sorted_keys.length(), keys.length()},
         {"sorted_values", sorted_values.length(), keys.length()}});
  }
  /// See primitives::Merge. `merged` has as many elements as a and b together. Errors: invalid.
  template <primitives::Ordered K>
  Future<void> merge(const GpuRef<K>& a, const GpuRef<K>& b, const GpuRef<K>& merged,
                     primitives::Order order = primitives::Order::ascending) const {
    return detail::submit_exact(*submitter_,
                                primitives::Merge{dtype_of<K>,
                                                  order,
                                                  0,
                                                  a.length(),
                                                  b.length(),
                                                  a.operand(),
                                                  b.operand(),
                                                  {},
                                                  {},
                                                  merged.operand(),
                                                  {}},
                                {{"merged", merged.length(), a.length() + b.length()}});
  }
  /// The same with values, one for each key.
  template <primitives::Ordered K, primitives::SortedValue V>
  Future<void> merge(const GpuRef<K>& a, const GpuRef<V>& values_a, const GpuRef<K>& b,
                     const GpuRef<V>& values_b, const GpuRef<K>& merged,
                     const GpuRef<V>& merged_values,
                     primitives::Order order = primitives::Order::ascending) const {
    return detail::submit_exact(
        *submitter_,
        primitives::Merge{dtype_of<K>, order, sizeof(V), a.length(), b.length(), a.operand(),
                          b.operand(), values_a.operand(), values_b.operand(), merged.operand(),
                          merged_values.operand()},
        {{"values_a", values_a.length(), a.length()},
         {"values_b", values_b.length(), b.length()},
         {"merged", merged.length(), a.length() + b.length()},
         {"merged_values", merged_values.length(), a.length() + b.length()}});
  }
};

}  // namespace troupe
