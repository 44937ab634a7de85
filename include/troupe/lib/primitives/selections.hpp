#pragma once

#include <troupe/lib/primitives/elements.hpp>

/// Selections: some of a range's elements, in their order. Each tells how many there are, in its
/// result cell. See primitives.hpp.
namespace troupe::primitives {

/// indices holds the i64 indices i < n of x[i] != 0, ascending, and -1 behind them, up to its
/// `capacity`. -0 counts as zero, a NaN does not. The result cell holds how many such elements x
/// has, as std::int64_t, also where that is more than the capacity. Then indices holds the first
/// of them, and the command fails with Errc::invalid unless on_failure is OnFailure::report.
struct SelectNonzero {
  static constexpr std::string_view kName = "primitives.select_nonzero";
  static constexpr DTypes kDTypes = kOrdered;
  static constexpr Traits kTraits = {.repeatable = true};

  OpDType dtype;  ///< of x
  OnFailure on_failure{};
  std::uint32_t reserved = 0;
  std::int64_t n = 0;
  std::int64_t capacity = 0;  ///< of indices, in elements
  Operand x, indices, count;

  static constexpr std::array kOperands{read("x", &SelectNonzero::x),
                                        write("indices", &SelectNonzero::indices),
                                        write("count", &SelectNonzero::count)};
  static constexpr auto kCell = &SelectNonzero::count;
  Result<void> check() const;
  [[nodiscard]] Result<void> verdict(const std::byte* cell) const;
  [[nodiscard]] std::uint64_t written(const Operand& operand) const noexcept {
    return sizeof(std::int64_t) * (&operand == &count ? 1 : static_cast<std::uint64_t>(capacity));
  }
};

/// selected holds the elements x[i] with flags[i] != 0, i < n, in their order. The flags are u8.
/// What lies in `selected` behind them does not change. The result cell holds how many elements are
/// flagged, as std::int64_t, also where that is more than the capacity. Then selected holds the
/// first of them, and the command fails with Errc::invalid unless on_failure is OnFailure::report.
struct SelectFlagged {
  static constexpr std::string_view kName = "primitives.select_flagged";
  static constexpr DTypes kDTypes = kOrdered;
  static constexpr Traits kTraits = {.repeatable = true};

  OpDType dtype;  ///< of x and selected
  OnFailure on_failure{};
  std::uint32_t reserved = 0;
  std::int64_t n = 0;
  std::int64_t capacity = 0;  ///< of selected, in elements
  Operand x, flags, selected, count;

  static constexpr std::array kOperands{
      read("x", &SelectFlagged::x), read("flags", &SelectFlagged::flags),
      write("selected", &SelectFlagged::selected), write("count", &SelectFlagged::count)};
  static constexpr auto kCell = &SelectFlagged::count;
  Result<void> check() const;
  [[nodiscard]] Result<void> verdict(const std::byte* cell) const;
  [[nodiscard]] std::uint64_t written(const Operand& operand) const noexcept {
    return &operand == &count ? sizeof(std::int64_t) : 0;
  }
};

/// y[0, n) are the elements x[i] with flags[i] != 0 in their order, then the others in the reverse
/// of theirs, as cub::DevicePartition has them. The flags are u8. The result cell holds how many
/// are flagged, as std::int64_t.
struct PartitionFlagged {
  static constexpr std::string_view kName = "primitives.partition_flagged";
  static constexpr DTypes kDTypes = kOrdered;
  static constexpr Traits kTraits = {.repeatable = true};

  OpDType dtype;  ///< of x and y
  std::int64_t n = 0;
  Operand x, flags, y, count;

  static constexpr std::array kOperands{
      read("x", &PartitionFlagged::x), read("flags", &PartitionFlagged::flags),
      write("y", &PartitionFlagged::y), write("count", &PartitionFlagged::count)};
  static constexpr auto kCell = &PartitionFlagged::count;
  Result<void> check() const;
  [[nodiscard]] std::uint64_t written(const Operand& operand) const noexcept {
    return &operand == &count ? sizeof(std::int64_t)
                              : static_cast<std::uint64_t>(n) * size_of(dtype);
  }
};

/// selected holds the first element of each run of equal ones among x[0, n): x without what equals
/// the element before it. -0 and +0 are equal, a NaN equals nothing. The result cell, the capacity
/// and the rest of `selected` are as for SelectFlagged.
struct Unique {
  static constexpr std::string_view kName = "primitives.unique";
  static constexpr DTypes kDTypes = kOrdered;
  static constexpr Traits kTraits = {.repeatable = true};

  OpDType dtype;  ///< of x and selected
  OnFailure on_failure{};
  std::uint32_t reserved = 0;
  std::int64_t n = 0;
  std::int64_t capacity = 0;  ///< of selected, in elements
  Operand x, selected, count;

  static constexpr std::array kOperands{read("x", &Unique::x), write("selected", &Unique::selected),
                                        write("count", &Unique::count)};
  static constexpr auto kCell = &Unique::count;
  Result<void> check() const;
  [[nodiscard]] Result<void> verdict(const std::byte* cell) const;
  [[nodiscard]] std::uint64_t written(const Operand& operand) const noexcept {
    return &operand == &count ? sizeof(std::int64_t) : 0;
  }
};

/// How many elements PartitionThreeWay has found for the first two of its ranges.
struct ThreeWayCounts {
  std::int64_t first = 0, second = 0;
};

/// The elements x[i], i < n, in their order: `first` holds those with first_flags[i] != 0, `second`
/// those of the others with second_flags[i] != 0, `rest` what is left. The flags are u8. What lies
/// in the ranges behind them does not change. The result cell holds ThreeWayCounts, also where that
/// is more than the capacities. Then each range holds as many as it has room for, and the command
/// fails with Errc::invalid unless on_failure is OnFailure::report.
struct PartitionThreeWay {
  static constexpr std::string_view kName = "primitives.partition_three_way";
  static constexpr DTypes kDTypes = kOrdered;
  static constexpr Traits kTraits = {.repeatable = true};

  OpDType dtype;  ///< of x and the ranges
  OnFailure on_failure{};
  std::uint32_t reserved = 0;
  std::int64_t n = 0;
  std::int64_t first_capacity = 0, second_capacity = 0, rest_capacity = 0;  ///< in elements
  Operand x, first_flags, second_flags, first, second, rest, counts;

  static constexpr std::array kOperands{read("x", &PartitionThreeWay::x),
                                        read("first_flags", &PartitionThreeWay::first_flags),
                                        read("second_flags", &PartitionThreeWay::second_flags),
                                        write("first", &PartitionThreeWay::first),
                                        write("second", &PartitionThreeWay::second),
                                        write("rest", &PartitionThreeWay::rest),
                                        write("counts", &PartitionThreeWay::counts)};
  static constexpr auto kCell = &PartitionThreeWay::counts;
  Result<void> check() const;
  [[nodiscard]] Result<void> verdict(const std::byte* cell) const;
  [[nodiscard]] std::uint64_t written(const Operand& operand) const noexcept {
    return &operand == &counts ? sizeof(ThreeWayCounts) : 0;
  }
};

}  // namespace troupe::primitives

namespace troupe {

/// The selections among the calls of Primitives.
class PrimitiveSelections : public detail::Calls {
 public:
  using Calls::Calls;

  /// See primitives::SelectNonzero; the future's value is how many elements of x are not zero.
  /// Errors: invalid (also: more than indices.length() elements are not zero).
  template <primitives::Ordered T>
  Future<std::int64_t> select_nonzero(const GpuRef<T>& x, const GpuRef<std::int64_t>& indices,
                                      OnFailure on_failure = OnFailure::error) const {
    return detail::submit_for_value<std::int64_t>(*submitter_,
                                                  primitives::SelectNonzero{dtype_of<T>,
                                                                            on_failure,
                                                                            0,
                                                                            x.length(),
                                                                            indices.length(),
                                                                            x.operand(),
                                                                            indices.operand(),
                                                                            {}});
  }
  /// See primitives::SelectFlagged; the future's value is how many elements are flagged. There is a
  /// flag for each element of x. Errors: invalid (also: `selected` is too short).
  template <primitives::Ordered T>
  Future<std::int64_t> select_flagged(const GpuRef<T>& x, const GpuRef<std::uint8_t>& flags,
                                      const GpuRef<T>& selected,
                                      OnFailure on_failure = OnFailure::error) const {
    return detail::submit_exact_for_value<std::int64_t>(
        *submitter_,
        primitives::SelectFlagged{dtype_of<T>,
                                  on_failure,
                                  0,
                                  x.length(),
                                  selected.length(),
                                  x.operand(),
                                  flags.operand(),
                                  selected.operand(),
                                  {}},
        {{"flags", flags.length(), x.length()}});
  }
  /// See primitives::PartitionFlagged; the future's value is how many elements are flagged. All
  /// ranges have the same length. Errors: invalid.
  template <primitives::Ordered T>
  Future<std::int64_t> partition_flagged(const GpuRef<T>& x, const GpuRef<std::uint8_t>& flags,
                                         const GpuRef<T>& y) const {
    return detail::submit_exact_for_value<std::int64_t>(
        *submitter_,
        primitives::PartitionFlagged{
            dtype_of<T>, x.length(), x.operand(), flags.operand(), y.operand(), {}},
        {{"flags", flags.length(), x.length()}, {"y", y.length(), x.length()}});
  }
  /// See primitives::Unique; the future's value is how many runs x has. Errors: invalid (also:
  /// `selected` is too short).
  template <primitives::Ordered T>
  Future<std::int64_t> unique(const GpuRef<T>& x, const GpuRef<T>& selected,
                              OnFailure on_failure = OnFailure::error) const {
    return detail::submit_for_value<std::int64_t>(*submitter_,
                                                  primitives::Unique{dtype_of<T>,
                                                                     on_failure,
                                                                     0,
                                                                     x.length(),
                                                                     selected.length(),
                                                                     x.operand(),
                                                                     selected.operand(),
                                                                     {}});
  }
  /// See primitives::PartitionThreeWay; the future's value is how many elements there are for
  /// `first` and `second`. There are two flags for each element of x. Errors: invalid (also: a
  /// range is too short).
  template <primitives::Ordered T>
  Future<primitives::ThreeWayCounts> partition_three_way(
      const GpuRef<T>& x, const GpuRef<std::uint8_t>& first_flags,
      const GpuRef<std::uint8_t>& second_flags, const GpuRef<T>& first, const GpuRef<T>& second,
      const GpuRef<T>& rest, OnFailure on_failure = OnFailure::error) const {
    return detail::submit_exact_for_value<primitives::ThreeWayCounts>(
        *submitter_,
        primitives::PartitionThreeWay{dtype_of<T>,
                                      on_failure,
                                      0,
                                      x.length(),
                                      first.length(),
                                      second.length(),
                                      rest.length(),
                                      x.operand(),
                                      first_flags.operand(),
                                      second_flags.operand(),
                                      first.operand(),
                                      second.operand(),
                                      rest.operand(),
                                      {}},
        {{"first_flags", first_flags.length(), x.length()},
         {"second_flags", second_flags.length(), x.length()}});
  }
};

}  // namespace troupe
