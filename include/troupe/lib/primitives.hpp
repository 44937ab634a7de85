#pragma once

#include <troupe/lib/primitives_differences.hpp>

/// Sorting, reductions, scans, histograms and selection over contiguous elements, as CUB defines
/// them (https://nvidia.github.io/cccl/cub, device-wide algorithms). Run again on the same operands
/// and the same model of GPU, every operation gives the same bits.
namespace troupe::primitives {

/// sorted_keys[0, n) are the n keys in order. With values, sorted_values[i] is the value that
/// belongs to sorted_keys[i]. The sort is stable, also in descending order: equal keys keep the
/// order that they have in the input.
///
/// Keys of floating type: -0 and +0 are equal, and each keeps its sign. NaNs are ordered by their
/// bits: in ascending order those with the sign bit come before -infinity, the others come after
/// +infinity.
///
/// Of integers some of the bits may count alone, [begin_bit, end_bit) from the lowest on: keys that
/// are equal in these are equal. The fewer bits, the faster. The sign bit of signed keys counts as
/// its opposite, so that negative keys come first.
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

/// Which bits of a key count, [begin, end) from the lowest on; see Sort.
struct KeyBits {
  std::uint32_t begin = 0;
  std::uint32_t end = 0;  ///< 0: all from `begin` on
};

/// All of them; whoever includes this header knows them.
using Operations =
    List<Sort, Reduce, ArgReduce, SegmentedReduce, Scan, SelectNonzero, SelectFlagged,
         PartitionFlagged, Unique, ReduceByKey, RunLengthEncode, SegmentedSort, Merge, Transform,
         TransformPairs, Convert, TransformReduce, CopyBatched, ScanByKey, NonTrivialRuns,
         UniqueByKey, PartitionThreeWay, HistogramEven, HistogramRange, AdjacentDifference>;
std::span<const OperationInfo* const> operations() noexcept;
inline const Library kLibrary{operations()};

}  // namespace troupe::primitives

namespace troupe {

/// Device-wide algorithms on one device; from `primitives::on(device)`. What
/// does not sort are calls of its bases.
class Primitives : public PrimitiveDifferences {
 public:
  using PrimitiveDifferences::PrimitiveDifferences;

  /// See primitives::Sort. Both ranges have the same length. Errors: invalid.
  template <primitives::Ordered K>
  Future<void> sort(const GpuRef<K>& keys, const GpuRef<K>& sorted,
                    primitives::Order order = primitives::Order::ascending,
                    const primitives::KeyBits& bits = {}) const {
    return detail::submit_exact(submitter(),
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
        submitter(),
        primitives::Sort{dtype_of<K>, order, sizeof(V), keys.length(), keys.operand(),
                         values.operand(), sorted_keys.operand(), sorted_values.operand(),
                         bits.begin, bits.end},
        {{"values", values.length(), keys.length()},
         {"sorted_keys", sorted_keys.length(), keys.length()},
         {"sorted_values", sorted_values.length(), keys.length()}});
  }
};

namespace primitives {
template <class D>
Primitives on(D&& device) {
  return Primitives(device.submitter());
}
}  // namespace primitives

}  // namespace troupe
