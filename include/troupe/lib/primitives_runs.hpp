#pragma once

#include <troupe/lib/primitives_selections.hpp>

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
  Reduction reduction{};
  std::int64_t n = 0;
  std::int64_t capacity = 0;  ///< of unique_keys and of results, in elements
  Operand keys, values, unique_keys, results, count;

  static constexpr auto kOperands =
      std::tuple{read("keys", &ReduceByKey::keys), read("values", &ReduceByKey::values),
                 write("unique_keys", &ReduceByKey::unique_keys),
                 write("results", &ReduceByKey::results), write("count", &ReduceByKey::count)};
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
  static constexpr DTypes kDTypes = kNumbers;
  static constexpr Traits kTraits = {.repeatable = true};

  OpDType dtype;  ///< of x and values
  OnFailure on_failure{};
  std::uint32_t reserved = 0;
  std::int64_t n = 0;
  std::int64_t capacity = 0;  ///< of values and of lengths, in elements
  Operand x, values, lengths, count;

  static constexpr auto kOperands = std::tuple{
      read("x", &RunLengthEncode::x), write("values", &RunLengthEncode::values),
      write("lengths", &RunLengthEncode::lengths), write("count", &RunLengthEncode::count)};
  static constexpr auto kCell = &RunLengthEncode::count;
  Result<void> check() const;
  [[nodiscard]] Result<void> verdict(const std::byte* cell) const;
  [[nodiscard]] std::uint64_t written(const Operand& operand) const noexcept {
    return &operand == &count ? sizeof(std::int64_t) : 0;
  }
};

}  // namespace troupe::primitives

namespace troupe {

/// The calls of Primitives that are about runs of equal elements.
class PrimitiveRuns : public PrimitiveSelections {
 public:
  using PrimitiveSelections::PrimitiveSelections;

  /// See primitives::ReduceByKey; the future's value is how many runs there are. There is a value
  /// for each key, and as much room for keys as for results. Errors: invalid (also: too little
  /// room).
  template <primitives::Number K, primitives::Integer V>
  Future<std::int64_t> reduce_by_key(const GpuRef<K>& keys, const GpuRef<V>& values,
                                     const GpuRef<K>& unique_keys, const GpuRef<V>& results,
                                     primitives::Reduction reduction = primitives::Reduction::sum,
                                     OnFailure on_failure = OnFailure::error) {
    return detail::submit_exact_for_value<std::int64_t>(
        submitter(),
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
  template <primitives::Number T>
  Future<std::int64_t> run_length_encode(const GpuRef<T>& x, const GpuRef<T>& values,
                                         const GpuRef<std::int64_t>& lengths,
                                         OnFailure on_failure = OnFailure::error) {
    return detail::submit_exact_for_value<std::int64_t>(
        submitter(),
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
};

}  // namespace troupe
