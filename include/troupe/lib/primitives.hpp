#pragma once

#include <troupe/lib/primitives_reductions.hpp>

/// Sorting, reductions, prefix sums and selection over contiguous elements, as CUB defines them
/// (https://nvidia.github.io/cccl/cub, device-wide algorithms). Run again on the same operands and
/// the same model of GPU, every operation gives the same bits.
namespace troupe::primitives {

/// The order in which keys are sorted.
enum class Order : std::uint32_t { ascending, descending };
/// Whether element i of a prefix sum includes element i of the input.
enum class Scanning : std::uint32_t { inclusive, exclusive };

/// sorted_keys[0, n) are the n keys in order. With values, sorted_values[i] is the value that
/// belongs to sorted_keys[i]. The sort is stable, also in descending order: equal keys keep the
/// order that they have in the input.
///
/// Keys of floating type: -0 and +0 are equal, and each keeps its sign. NaNs are ordered by their
/// bits: in ascending order those with the sign bit come before -infinity, the others come after
/// +infinity.
///
/// Values are elements of any type of 4 or 8 bytes; value_bytes = 0 sorts keys alone, and then both
/// ranges of values are absent. No output may overlap anything else. The device needs temporary
/// memory of about the size of the sorted keys and values.
struct Sort {
  static constexpr std::string_view kName = "primitives.sort";
  static constexpr DTypes kDTypes = kNumbers;
  static constexpr Traits kTraits = {.repeatable = true, .capturable = true};

  OpDType dtype;  ///< of the keys
  Order order{};
  std::uint32_t value_bytes = 0;  ///< 0, 4 or 8
  std::int64_t n = 0;
  Operand keys, values, sorted_keys, sorted_values;

  static constexpr auto kOperands = std::tuple{
      read("keys", &Sort::keys), read("values", &Sort::values),
      write("sorted_keys", &Sort::sorted_keys), write("sorted_values", &Sort::sorted_values)};
  Result<void> check() const;
  [[nodiscard]] std::uint64_t written(const Operand& operand) const noexcept {
    return static_cast<std::uint64_t>(n) *
           (&operand == &sorted_values ? value_bytes : size_of(dtype));
  }
};

/// y[i] = x[0] + ... + x[i] (inclusive) or x[0] + ... + x[i - 1] (exclusive; y[0] = 0), i < n.
/// Modulo 2^32 or 2^64. Integers only: CUB adds floating-point numbers in an order that differs
/// from run to run. y may be x.
struct Scan {
  static constexpr std::string_view kName = "primitives.scan";
  static constexpr DTypes kDTypes = kIntegers;
  static constexpr Traits kTraits = {.repeatable = true, .capturable = true};

  OpDType dtype;
  Scanning scanning{};
  std::uint32_t reserved = 0;
  std::int64_t n = 0;
  Operand x, y;

  static constexpr auto kOperands = std::tuple{read("x", &Scan::x), write("y", &Scan::y)};
  static constexpr auto kInPlace = std::array{InPlace{"x", "y"}};
  Result<void> check() const;
  [[nodiscard]] std::uint64_t written(const Operand&) const noexcept {
    return static_cast<std::uint64_t>(n) * size_of(dtype);
  }
};

/// indices holds the i64 indices i < n of x[i] != 0, ascending, and -1 behind them, up to its
/// `capacity`. -0 counts as zero, a NaN does not. The result cell holds how many such elements x
/// has, as std::int64_t, also where that is more than the capacity. Then indices holds the first
/// of them, and the command fails with Errc::invalid unless on_failure is OnFailure::report.
struct SelectNonzero {
  static constexpr std::string_view kName = "primitives.select_nonzero";
  static constexpr DTypes kDTypes = kNumbers;
  static constexpr Traits kTraits = {.repeatable = true};

  OpDType dtype;  ///< of x
  OnFailure on_failure{};
  std::uint32_t reserved = 0;
  std::int64_t n = 0;
  std::int64_t capacity = 0;  ///< of indices, in elements
  Operand x, indices, count;

  static constexpr auto kOperands =
      std::tuple{read("x", &SelectNonzero::x), write("indices", &SelectNonzero::indices),
                 write("count", &SelectNonzero::count)};
  static constexpr auto kCell = &SelectNonzero::count;
  Result<void> check() const;
  [[nodiscard]] Result<void> verdict(const std::byte* cell) const;
  [[nodiscard]] std::uint64_t written(const Operand& operand) const noexcept {
    return sizeof(std::int64_t) * (&operand == &count ? 1 : static_cast<std::uint64_t>(capacity));
  }
};

inline const Library kLibrary{
    &info_of<Sort>,      &info_of<Reduce>,          &info_of<Scan>,
    &info_of<ArgReduce>, &info_of<SegmentedReduce>, &info_of<SelectNonzero>};

/// What is sorted along with a key.
template <class T>
concept SortedValue = Element<T> &&(sizeof(T) == 4 || sizeof(T) == 8);

}  // namespace troupe::primitives

namespace troupe {

/// Device-wide algorithms on one device; from `primitives::on(device)`. Reductions are calls of its
/// base.
class Primitives : public PrimitiveReductions {
 public:
  using PrimitiveReductions::PrimitiveReductions;

  /// See primitives::Sort. Both ranges have the same length. Errors: invalid.
  template <primitives::Number K>
  Future<void> sort(const GpuRef<K>& keys, const GpuRef<K>& sorted,
                    primitives::Order order = primitives::Order::ascending) {
    return detail::submit_exact(
        submitter(),
        primitives::Sort{
            dtype_of<K>, order, 0, keys.length(), keys.operand(), {}, sorted.operand(), {}},
        {{"sorted_keys", sorted.length(), keys.length()}});
  }
  /// See primitives::Sort. All ranges have the same length. Errors: invalid.
  template <primitives::Number K, primitives::SortedValue V>
  Future<void> sort(const GpuRef<K>& keys, const GpuRef<V>& values, const GpuRef<K>& sorted_keys,
                    const GpuRef<V>& sorted_values,
                    primitives::Order order = primitives::Order::ascending) {
    return detail::submit_exact(
        submitter(),
        primitives::Sort{dtype_of<K>, order, sizeof(V), keys.length(), keys.operand(),
                         values.operand(), sorted_keys.operand(), sorted_values.operand()},
        {{"values", values.length(), keys.length()},
         {"sorted_keys", sorted_keys.length(), keys.length()},
         {"sorted_values", sorted_values.length(), keys.length()}});
  }
  /// See primitives::Scan. Both vectors have the same length. Errors: invalid.
  template <primitives::Integer T>
  Future<void> scan(const GpuRef<T>& x, const GpuRef<T>& y,
                    primitives::Scanning scanning = primitives::Scanning::inclusive) {
    return detail::submit_exact(
        submitter(),
        primitives::Scan{dtype_of<T>, scanning, 0, x.length(), x.operand(), y.operand()},
        {{"y", y.length(), x.length()}});
  }
  /// See primitives::SelectNonzero; the future's value is how many elements of x are not zero.
  /// Errors: invalid (also: more than indices.length() elements are not zero).
  template <primitives::Number T>
  Future<std::int64_t> select_nonzero(const GpuRef<T>& x, const GpuRef<std::int64_t>& indices,
                                      OnFailure on_failure = OnFailure::error) {
    return detail::submit_for_value<std::int64_t>(submitter(),
                                                  primitives::SelectNonzero{dtype_of<T>,
                                                                            on_failure,
                                                                            0,
                                                                            x.length(),
                                                                            indices.length(),
                                                                            x.operand(),
                                                                            indices.operand(),
                                                                            {}});
  }
};

namespace primitives {
template <class D>
Primitives on(D&& device) {
  return Primitives(device.submitter());
}
}  // namespace primitives

}  // namespace troupe
