#pragma once

#include <array>
#include <limits>

#include <troupe/lib/primitives/elements.hpp>

/// Reductions: of a whole range, with the place of the result, and segment by segment. See
/// primitives.hpp.
namespace troupe::primitives {

/// Which element ArgReduce finds.
enum class Extreme : std::uint32_t { min, max };

/// result[0] is the sum, the smallest, the largest or the product of x[0, n), or the bits of all
/// its elements combined with AND, OR or XOR. Without elements it is 0, the largest value of the
/// dtype (+infinity if it is floating), the smallest one (-infinity), 1, all bits set, 0 and 0.
///
/// Sums and products of integers are exact modulo 2^32 or 2^64. The order in which floating-point
/// numbers are added or multiplied depends on n alone, but for sums of f32 and f64: there also on
/// the model of the GPU and on whether x is aligned to four of its elements. So the same input at
/// the same place gives the same bits on every run. f16 and bf16 are added and multiplied in f32,
/// and the result is rounded once. Another model, or the cpu engine, may round otherwise: the cpu
/// engine computes in f64. Where a product of some of the elements leaves the range of the dtype,
/// the order decides whether the result is finite. With a NaN among the elements every result is a
/// NaN. Whether min and max choose -0 or +0 where both occur is not specified.
struct Reduce {
  static constexpr std::string_view kName = "primitives.reduce";
  static constexpr DTypes kDTypes = kOrdered;
  static constexpr Traits kTraits = {.repeatable = true, .capturable = true};

  OpDType dtype;
  ReduceOp reduction{};
  std::uint32_t reserved = 0;
  std::int64_t n = 0;
  Operand x, result;

  static constexpr std::array kOperands{read("x", &Reduce::x), write("result", &Reduce::result)};
  Result<void> check() const;
  [[nodiscard]] std::uint64_t written(const Operand&) const noexcept { return size_of(dtype); }
};

/// value[0] is the smallest or the largest of x[0, n), and index[0], of type i64, where it stands
/// first. -0 and +0 are equal. The first NaN, if there is one, is both the smallest and the largest
/// element. Value has the bits of x[index[0]]. Without elements index[0] is -1, and value[0] is
/// what Reduce gives.
struct ArgReduce {
  static constexpr std::string_view kName = "primitives.arg_reduce";
  static constexpr DTypes kDTypes = kOrdered;
  static constexpr Traits kTraits = {.repeatable = true, .capturable = true};

  OpDType dtype;  ///< of x and value
  Extreme extreme{};
  std::uint32_t reserved = 0;
  std::int64_t n = 0;
  Operand x, value, index;

  static constexpr std::array kOperands{read("x", &ArgReduce::x), write("value", &ArgReduce::value),
                                        write("index", &ArgReduce::index)};
  Result<void> check() const;
  [[nodiscard]] std::uint64_t written(const Operand& operand) const noexcept {
    return &operand == &index ? sizeof(std::int64_t) : size_of(dtype);
  }
};

/// result[s] is the sum, the smallest or the largest of x[offsets[s], offsets[s + 1]), for each of
/// `segments` segments; of an empty one it is what Reduce gives without elements. The offsets are
/// i64, one more than there are segments. An offset below 0 counts as 0, one above n as n, and a
/// segment that ends before it begins is empty. Segments may overlap.
///
/// Rounding, NaNs and zeros are as for Reduce; instead of n, where a segment begins and ends
/// decides the order.
struct SegmentedReduce {
  static constexpr std::string_view kName = "primitives.segmented_reduce";
  static constexpr DTypes kDTypes = kNumbers;
  static constexpr Traits kTraits = {.repeatable = true, .capturable = true};

  OpDType dtype;         ///< of x and result
  ReduceOp reduction{};  ///< sum, min or max
  std::uint32_t reserved = 0;
  std::int64_t n = 0;
  std::int64_t segments = 0;
  Operand x, offsets, result;

  static constexpr std::array kOperands{read("x", &SegmentedReduce::x),
                                        read("offsets", &SegmentedReduce::offsets),
                                        write("result", &SegmentedReduce::result)};
  Result<void> check() const;
  [[nodiscard]] std::uint64_t written(const Operand&) const noexcept {
    return static_cast<std::uint64_t>(segments) * size_of(dtype);
  }
};

}  // namespace troupe::primitives

namespace troupe {

/// The reductions among the calls of Primitives.
class PrimitiveReductions : public detail::Calls {
 public:
  using Calls::Calls;

  /// See primitives::Reduce. `result` has one element. Errors: invalid.
  template <primitives::Ordered T>
  Future<void> reduce(const GpuRef<T>& x, const GpuRef<T>& result,
                      primitives::ReduceOp reduction = primitives::ReduceOp::sum) const {
    return detail::submit_exact(
        *submitter_,
        primitives::Reduce{dtype_of<T>, reduction, 0, x.length(), x.operand(), result.operand()},
        {{"result", result.length(), 1}});
  }
  /// See primitives::ArgReduce. `value` and `index` have one element each. Errors: invalid.
  template <primitives::Ordered T>
  Future<void> arg_reduce(const GpuRef<T>& x, const GpuRef<T>& value,
                          const GpuRef<std::int64_t>& index, primitives::Extreme extreme) const {
    return detail::submit_exact(
        *submitter_,
        primitives::ArgReduce{dtype_of<T>, extreme, 0, x.length(), x.operand(), value.operand(),
                              index.operand()},
        {{"value", value.length(), 1}, {"index", index.length(), 1}});
  }
  /// See primitives::SegmentedReduce. `offsets` has one element more than `result`. Errors:
  /// invalid.
  template <primitives::Number T>
  Future<void> segmented_reduce(const GpuRef<T>& x, const GpuRef<std::int64_t>& offsets,
                                const GpuRef<T>& result,
                                primitives::ReduceOp reduction = primitives::ReduceOp::sum) const {
    return detail::submit_exact(
        *submitter_,
        primitives::SegmentedReduce{dtype_of<T>, reduction, 0, x.length(), result.length(),
                                    x.operand(), offsets.operand(), result.operand()},
        {{"offsets", offsets.length(), result.length() + 1}});
  }
};

}  // namespace troupe
