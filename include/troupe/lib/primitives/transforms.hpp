#pragma once

#include <troupe/lib/primitives/elements.hpp>
#include <troupe/lib/primitives/operators_types.hpp>

/// What goes element by element, and the reduction of its results. Operators of
/// the program's own: see primitives/custom.hpp.
namespace troupe::primitives {

/// y[i] = op(x[i]), i < n, rounded as IEEE 754 has it; of f16 and bf16 the result in f32 is rounded
/// once more. y may be x.
struct Transform {
  static constexpr std::string_view kName = "primitives.transform";
  static constexpr DTypes kDTypes = kOrdered;
  static constexpr Traits kTraits = {.repeatable = true, .capturable = true};

  OpDType dtype;
  Unary op{};
  std::uint32_t reserved = 0;
  std::int64_t n = 0;
  Operand x, y;

  static constexpr std::array kOperands{read("x", &Transform::x), write("y", &Transform::y)};
  static constexpr auto kInPlace = std::array{InPlace{"x", "y"}};
  Result<void> check() const;
  [[nodiscard]] std::uint64_t written(const Operand&) const noexcept {
    return static_cast<std::uint64_t>(n) * size_of(dtype);
  }
};

/// z[i] = op(x[i], y[i]), i < n, rounded as for Transform. z may be x or y.
struct TransformPairs {
  static constexpr std::string_view kName = "primitives.transform_pairs";
  static constexpr DTypes kDTypes = kOrdered;
  static constexpr Traits kTraits = {.repeatable = true, .capturable = true};

  OpDType dtype;
  Binary op{};
  std::uint32_t reserved = 0;
  std::int64_t n = 0;
  Operand x, y, z;

  static constexpr std::array kOperands{
      read("x", &TransformPairs::x), read("y", &TransformPairs::y), write("z", &TransformPairs::z)};
  static constexpr auto kInPlace = std::array{InPlace{"x", "z"}, InPlace{"y", "z"}};
  Result<void> check() const;
  [[nodiscard]] std::uint64_t written(const Operand&) const noexcept {
    return static_cast<std::uint64_t>(n) * size_of(dtype);
  }
};

/// y[i] = x[i] as a number of y_dtype, i < n. Integers from integers are modulo 2^32 or 2^64.
/// Integers from floating-point numbers are rounded towards zero; what is beyond their range gives
/// the nearest of them, a NaN gives 0. f32 and f64 are rounded to nearest; f16 and bf16 are so from
/// f32, to which x[i] is rounded first.
struct Convert {
  static constexpr std::string_view kName = "primitives.convert";
  static constexpr DTypes kDTypes = kOrdered;
  static constexpr Traits kTraits = {.repeatable = true, .capturable = true};

  OpDType dtype;  ///< of x
  OpDType y_dtype;
  std::int64_t n = 0;
  Operand x, y;

  static constexpr std::array kOperands{read("x", &Convert::x), write("y", &Convert::y)};
  Result<void> check() const;
  [[nodiscard]] std::uint64_t written(const Operand&) const noexcept {
    return static_cast<std::uint64_t>(n) * size_of(y_dtype);
  }
};

/// result[0] is what Reduce makes of op(x[0]), ..., op(x[n - 1]): the sum of squares, the largest
/// absolute value. Without elements it is as there. The order in which floating-point numbers
/// are added or multiplied depends on n alone, also from one model of GPU to another, f16 and bf16
/// in f32; the cpu engine adds and multiplies in f64.
struct TransformReduce {
  static constexpr std::string_view kName = "primitives.transform_reduce";
  static constexpr DTypes kDTypes = kOrdered;
  static constexpr Traits kTraits = {.repeatable = true, .capturable = true};

  OpDType dtype;
  Unary op{};
  ReduceOp reduction{};
  std::int64_t n = 0;
  Operand x, result;

  static constexpr std::array kOperands{read("x", &TransformReduce::x),
                                        write("result", &TransformReduce::result)};
  Result<void> check() const;
  [[nodiscard]] std::uint64_t written(const Operand&) const noexcept { return size_of(dtype); }
};

}  // namespace troupe::primitives

namespace troupe {

/// What goes by elements among the calls of Primitives.
class PrimitiveTransforms : public detail::Calls {
 public:
  using Calls::Calls;

  /// See primitives::Transform. Both ranges have the same length. Errors: invalid.
  template <primitives::Ordered T>
  Future<void> transform(const GpuRef<T>& x, const GpuRef<T>& y, primitives::Unary op) const {
    return detail::submit_exact(
        *submitter_,
        primitives::Transform{dtype_of<T>, op, 0, x.length(), x.operand(), y.operand()},
        {{"y", y.length(), x.length()}});
  }
  /// See primitives::TransformPairs. All ranges have the same length. Errors: invalid.
  template <primitives::Ordered T>
  Future<void> transform(const GpuRef<T>& x, const GpuRef<T>& y, const GpuRef<T>& z,
                         primitives::Binary op) const {
    return detail::submit_exact(*submitter_,
                                primitives::TransformPairs{dtype_of<T>, op, 0, x.length(),
                                                           x.operand(), y.operand(), z.operand()},
                                {{"y", y.length(), x.length()}, {"z", z.length(), x.length()}});
  }
  /// See primitives::Convert. Both ranges have the same length. Errors: invalid.
  template <primitives::Ordered T, primitives::Ordered Y>
  Future<void> convert(const GpuRef<T>& x, const GpuRef<Y>& y) const {
    return detail::submit_exact(
        *submitter_,
        primitives::Convert{dtype_of<T>, dtype_of<Y>, x.length(), x.operand(), y.operand()},
        {{"y", y.length(), x.length()}});
  }
  /// See primitives::TransformReduce. `result` has one element. Errors: invalid.
  template <primitives::Ordered T>
  Future<void> transform_reduce(const GpuRef<T>& x, const GpuRef<T>& result, primitives::Unary op,
                                primitives::ReduceOp reduction = primitives::ReduceOp::sum) const {
    return detail::submit_exact(*submitter_,
                                primitives::TransformReduce{dtype_of<T>, op, reduction, x.length(),
                                                            x.operand(), result.operand()},
                                {{"result", result.length(), 1}});
  }
};

}  // namespace troupe
