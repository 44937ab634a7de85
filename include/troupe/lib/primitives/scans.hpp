#pragma once

#include <troupe/lib/primitives/elements.hpp>

/// Scans: what the elements up to each place give together. See primitives.hpp.
namespace troupe::primitives {

/// Whether element i of a scan includes element i of the input.
enum class Scanning : std::uint32_t { inclusive, exclusive };

/// y[i] is `initial` and x[0] ... x[i] (inclusive) or x[0] ... x[i - 1] (exclusive; y[0] is
/// `initial`), combined as Reduce combines them; i < n. y may be x.
///
/// Integers are exact, sums and products modulo 2^32 or 2^64. The order in which f32 or f64 are
/// added or multiplied depends on n alone, so the same input gives the same bits on every GPU and
/// in every run; the cpu engine computes in f64. From a NaN on every element is a NaN. Of -0 and +0
/// min and max take the first.
struct Scan {
  static constexpr std::string_view kName = "primitives.scan";
  static constexpr DTypes kDTypes = kNumbers;
  static constexpr Traits kTraits = {.repeatable = true, .capturable = true};

  OpDType dtype;
  Scanning scanning{};
  ReduceOp reduction{};
  std::int64_t n = 0;
  Operand x, y;
  Scalar initial;

  static constexpr std::array kOperands{read("x", &Scan::x), write("y", &Scan::y),
                                        read("initial", &Scan::initial)};
  static constexpr auto kInPlace = std::array{InPlace{"x", "y"}};
  Result<void> check() const;
  [[nodiscard]] std::uint64_t written(const Operand&) const noexcept {
    return static_cast<std::uint64_t>(n) * size_of(dtype);
  }
};

/// A Scan of values that begins anew, with `initial`, where keys[i] is not equal to the key before
/// it; i < n. -0 and +0 are equal, a NaN equals nothing. Results may be the values. Integers and
/// rounding are as for Scan.
struct ScanByKey {
  static constexpr std::string_view kName = "primitives.scan_by_key";
  static constexpr DTypes kDTypes = kNumbers;
  static constexpr Traits kTraits = {.repeatable = true, .capturable = true};

  OpDType dtype;        ///< of the keys
  OpDType value_dtype;  ///< of values, results and initial
  Scanning scanning{};
  ReduceOp reduction{};
  std::int64_t n = 0;
  Operand keys, values, results;
  Scalar initial;

  static constexpr std::array kOperands{
      read("keys", &ScanByKey::keys), read("values", &ScanByKey::values),
      write("results", &ScanByKey::results), read("initial", &ScanByKey::initial)};
  static constexpr auto kInPlace = std::array{InPlace{"values", "results"}};
  Result<void> check() const;
  [[nodiscard]] std::uint64_t written(const Operand&) const noexcept {
    return static_cast<std::uint64_t>(n) * size_of(value_dtype);
  }
};

}  // namespace troupe::primitives

namespace troupe {

/// The scans among the calls of Primitives.
class PrimitiveScans : public detail::Calls {
 public:
  using Calls::Calls;

  /// See primitives::Scan: prefix sums. Both vectors have the same length. Errors: invalid.
  template <primitives::Number T>
  Future<void> scan(const GpuRef<T>& x, const GpuRef<T>& y,
                    primitives::Scanning scanning = primitives::Scanning::inclusive) const {
    return scan(x, y, primitives::ReduceOp::sum, scanning);
  }
  /// See primitives::Scan, from what the reduction gives without elements.
  template <primitives::Number T>
  Future<void> scan(const GpuRef<T>& x, const GpuRef<T>& y, primitives::ReduceOp reduction,
                    primitives::Scanning scanning = primitives::Scanning::inclusive) const {
    return scan(x, y, reduction, scanning, primitives::neutral<T>(reduction));
  }
  /// See primitives::Scan.
  template <primitives::Number T>
  Future<void> scan(const GpuRef<T>& x, const GpuRef<T>& y, primitives::ReduceOp reduction,
                    primitives::Scanning scanning, ScalarOf<GpuRef<T>> initial) const {
    return detail::submit_exact(*submitter_,
                                primitives::Scan{dtype_of<T>, scanning, reduction, x.length(),
                                                 x.operand(), y.operand(), initial.wire()},
                                {{"y", y.length(), x.length()}});
  }
  /// See primitives::ScanByKey, from what the reduction gives without elements. All ranges have
  /// the same length. Errors: invalid.
  template <primitives::Number K, primitives::Number V>
  Future<void> scan_by_key(const GpuRef<K>& keys, const GpuRef<V>& values, const GpuRef<V>& results,
                           primitives::ReduceOp reduction = primitives::ReduceOp::sum,
                           primitives::Scanning scanning = primitives::Scanning::inclusive) const {
    return scan_by_key(keys, values, results, reduction, scanning,
                       primitives::neutral<V>(reduction));
  }
  /// See primitives::ScanByKey.
  template <primitives::Number K, primitives::Number V>
  Future<void> scan_by_key(const GpuRef<K>& keys, const GpuRef<V>& values, const GpuRef<V>& results,
                           primitives::ReduceOp reduction, primitives::Scanning scanning,
                           ScalarOf<GpuRef<V>> initial) const {
    return detail::submit_exact(
        *submitter_,
        primitives::ScanByKey{dtype_of<K>, dtype_of<V>, scanning, reduction, keys.length(),
                              keys.operand(), values.operand(), results.operand(), initial.wire()},
        {{"values", values.length(), keys.length()}, {"results", results.length(), keys.length()}});
  }
};

}  // namespace troupe
