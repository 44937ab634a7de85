#pragma once

#include <troupe/lib/primitives/elements.hpp>

/// What is made of runs of equal elements. See primitives.hpp.
namespace troupe::primitives {

/// For each run of equal keys among keys[0, n): unique_keys holds the key, and results what its
/// values give, as Reduce combines them. -0 and +0 are equal, a NaN equals nothing; the key is that
/// of the run's last element. Keys that are sorted have one run each.
///
/// Values are integers: CUB combines floating-point numbers in an order that differs from run to
/// run. Sums and products are modulo 2^32 or 2^64.
///
/// What lies in unique_keys and results behind the runs does not change. The result cell holds how
/// many runs there are, as std::int64_t, also where that is more than the capacity. Then both hold
/// the first of them, and the command fails with Errc::invalid unless on_failure is
/// OnFailure::report.
struct ReduceByKey {
  static constexpr std::string_view kName = "primitives.reduce_by_key";
  static constexpr DTypes kDTypes = kNumbers;
  static constexpr Traits kTraits = {.repeatable = true};

  OpDType dtype;        ///< of the keys
  OpDType value_dtype;  ///< of values and results
  OnFailure on_failure{};
  ReduceOp reduction{};
  std::int64_t n = 0;
  std::int64_t capacity = 0;  ///< of unique_keys and of results, in elements
  Operand keys, values, unique_keys, results, count;

  static constexpr std::array kOperands{
      read("keys", &ReduceByKey::keys), read("values", &ReduceByKey::values),
      write("unique_keys", &ReduceByKey::unique_keys), write("results", &ReduceByKey::results),
      write("count", &ReduceByKey::count)};
  static constexpr auto kCell = &ReduceByKey::count;
  Result<void> check() const;
  [[nodiscard]] Result<void> verdict(const std::byte* cell) const;
  [[nodiscard]] std::uint64_t written(const Operand& operand) const noexcept {
    return &operand == &count ? sizeof(std::int64_t) : 0;
  }
};

/// For each run of equal elements among x[0, n): values holds the element, and lengths, of type
/// i64, how many there are. What is equal, which element stands for the run, the result cell and
/// the capacity are as for ReduceByKey.
struct RunLengthEncode {
  static constexpr std::string_view kName = "primitives.run_length_encode";
  static constexpr DTypes kDTypes = kOrdered;
  static constexpr Traits kTraits = {.repeatable = true};

  OpDType dtype;  ///< of x and values
  OnFailure on_failure{};
  std::uint32_t reserved = 0;
  std::int64_t n = 0;
  std::int64_t capacity = 0;  ///< of values and of lengths, in elements
  Operand x, values, lengths, count;

  static constexpr std::array kOperands{
      read("x", &RunLengthEncode::x), write("values", &RunLengthEncode::values),
      write("lengths", &RunLengthEncode::lengths), write("count", &RunLengthEncode::count)};
  static constexpr auto kCell = &RunLengthEncode::count;
  Result<void> check() const;
  [[nodiscard]] Result<void> verdict(const std::byte* cell) const;
  [[nodiscard]] std::uint64_t written(const Operand& operand) const noexcept {
    return &operand == &count ? sizeof(std::int64_t) : 0;
  }
};

/// Of each run of at least two equal elements among x[0, n): offsets holds where it begins, and
/// lengths how many elements it has, both of type i64. -0 and +0 are equal, a NaN equals nothing.
/// The result cell and the capacity are as for ReduceByKey.
struct NonTrivialRuns {
  static constexpr std::string_view kName = "primitives.non_trivial_runs";
  static constexpr DTypes kDTypes = kOrdered;
  static constexpr Traits kTraits = {.repeatable = true};

  OpDType dtype;  ///< of x
  OnFailure on_failure{};
  std::uint32_t reserved = 0;
  std::int64_t n = 0;
  std::int64_t capacity = 0;  ///< of offsets and of lengths, in elements
  Operand x, offsets, lengths, count;

  static constexpr std::array kOperands{
      read("x", &NonTrivialRuns::x), write("offsets", &NonTrivialRuns::offsets),
      write("lengths", &NonTrivialRuns::lengths), write("count", &NonTrivialRuns::count)};
  static constexpr auto kCell = &NonTrivialRuns::count;
  Result<void> check() const;
  [[nodiscard]] Result<void> verdict(const std::byte* cell) const;
  [[nodiscard]] std::uint64_t written(const Operand& operand) const noexcept {
    return &operand == &count ? sizeof(std::int64_t) : 0;
  }
};

/// The first key of each run of equal ones among keys[0, n), and the value that belongs to it.
/// Values are elements of any type of 4 or 8 bytes. What is equal, the result cell and the capacity
/// are as for ReduceByKey.
struct UniqueByKey {
  static constexpr std::string_view kName = "primitives.unique_by_key";
  static constexpr DTypes kDTypes = kOrdered;
  static constexpr Traits kTraits = {.repeatable = true};

  OpDType dtype;  ///< of the keys
  OnFailure on_failure{};
  std::uint32_t value_bytes = 0;  ///< 4 or 8
  std::int64_t n = 0;
  std::int64_t capacity = 0;  ///< of unique_keys and of first_values, in elements
  Operand keys, values, unique_keys, first_values, count;

  static constexpr std::array kOperands{
      read("keys", &UniqueByKey::keys), read("values", &UniqueByKey::values),
      write("unique_keys", &UniqueByKey::unique_keys),
      write("first_values", &UniqueByKey::first_values), write("count", &UniqueByKey::count)};
  static constexpr auto kCell = &UniqueByKey::count;
  Result<void> check() const;
  [[nodiscard]] Result<void> verdict(const std::byte* cell) const;
  [[nodiscard]] std::uint64_t written(const Operand& operand) const noexcept {
    return &operand == &count ? sizeof(std::int64_t) : 0;
  }
};

}  // namespace troupe::primitives

namespace troupe {

/// The calls of Primitives that are about runs of equal elements.
class PrimitiveRuns : public detail::Calls {
 public:
  using Calls::Calls;

  /// See primitives::ReduceByKey; the future's value is how many runs there are. There is a value
  /// for each key, and as much room for keys as for results. Errors: invalid (also: too little
  /// room).
  template <primitives::Number K, primitives::Integer V>
  Future<std::int64_t> reduce_by_key(const GpuRef<K>& keys, const GpuRef<V>& values,
                                     const GpuRef<K>& unique_keys, const GpuRef<V>& results,
                                     primitives::ReduceOp reduction = primitives::ReduceOp::sum,
                                     OnFailure on_failure = OnFailure::error) const {
    return detail::submit_exact_for_value<std::int64_t>(
        *submitter_,
        primitives::ReduceByKey{dtype_of<K>,
                                dtype_of<V>,
                                on_failure,
                                reduction,
                                keys.length(),
                                results.length(),
                                keys.operand(),
                                values.operand(),
                                unique_keys.operand(),
                                results.operand(),
                                {}},
        {{"values", values.length(), keys.length()},
         {"unique_keys", unique_keys.length(), results.length()}});
  }
  /// See primitives::RunLengthEncode; the future's value is how many runs there are. There is as
  /// much room for values as for lengths. Errors: invalid (also: too little room).
  template <primitives::Ordered T>
  Future<std::int64_t> run_length_encode(const GpuRef<T>& x, const GpuRef<T>& values,
                                         const GpuRef<std::int64_t>& lengths,
                                         OnFailure on_failure = OnFailure::error) const {
    return detail::submit_exact_for_value<std::int64_t>(
        *submitter_,
        primitives::RunLengthEncode{dtype_of<T>,
                                    on_failure,
                                    0,
                                    x.length(),
                                    lengths.length(),
                                    x.operand(),
                                    values.operand(),
                                    lengths.operand(),
                                    {}},
        {{"values", values.length(), lengths.length()}});
  }
  /// See primitives::NonTrivialRuns; the future's value is how many such runs there are. There is
  /// as much room for offsets as for lengths. Errors: invalid (also: too little room).
  template <primitives::Ordered T>
  Future<std::int64_t> non_trivial_runs(const GpuRef<T>& x, const GpuRef<std::int64_t>& offsets,
                                        const GpuRef<std::int64_t>& lengths,
                                        OnFailure on_failure = OnFailure::error) const {
    return detail::submit_exact_for_value<std::int64_t>(
        *submitter_,
        primitives::NonTrivialRuns{dtype_of<T>,
                                   on_failure,
                                   0,
                                   x.length(),
                                   lengths.length(),
                                   x.operand(),
                                   offsets.operand(),
                                   lengths.operand(),
                                   {}},
        {{"offsets", offsets.length(), lengths.length()}});
  }
  /// See primitives::UniqueByKey; the future's value is how many runs there are. There is a value
  /// for each key, and as much room for keys as for values. Errors: invalid (also: too little
  /// room).
  template <primitives::Ordered K, primitives::SortedValue V>
  Future<std::int64_t> unique_by_key(const GpuRef<K>& keys, const GpuRef<V>& values,
                                     const GpuRef<K>& unique_keys, const GpuRef<V>& first_values,
                                     OnFailure on_failure = OnFailure::error) const {
    return detail::submit_exact_for_value<std::int64_t>(
        *submitter_,
        primitives::UniqueByKey{dtype_of<K>,
                                on_failure,
                                sizeof(V),
                                keys.length(),
                                first_values.length(),
                                keys.operand(),
                                values.operand(),
                                unique_keys.operand(),
                                first_values.operand(),
                                {}},
        {{"values", values.length(), keys.length()},
         {"unique_keys", unique_keys.length(), first_values.length()}});
  }
};

}  // namespace troupe
