#pragma once

#include <troupe/lib/primitives/elements.hpp>

/// Differences of neighbours. See primitives.hpp.
namespace troupe::primitives {

/// The neighbour that is subtracted.
enum class Neighbour : std::uint32_t { left, right };

/// y[i] = x[i] - x[i - 1] (left) or x[i] - x[i + 1] (right), i < n; the element without such a
/// neighbour stays itself. Integers are subtracted modulo 2^32 or 2^64. y may be x.
struct AdjacentDifference {
  static constexpr std::string_view kName = "primitives.adjacent_difference";
  static constexpr DTypes kDTypes = kNumbers;
  static constexpr Traits kTraits = {.repeatable = true, .capturable = true};

  OpDType dtype;
  Neighbour neighbour{};
  std::uint32_t reserved = 0;
  std::int64_t n = 0;
  Operand x, y;

  static constexpr std::array kOperands{read("x", &AdjacentDifference::x),
                                        write("y", &AdjacentDifference::y)};
  static constexpr auto kInPlace = std::array{InPlace{"x", "y"}};
  Result<void> check() const;
  [[nodiscard]] std::uint64_t written(const Operand&) const noexcept {
    return static_cast<std::uint64_t>(n) * size_of(dtype);
  }
};

}  // namespace troupe::primitives

namespace troupe {

/// The differences among the calls of Primitives.
class PrimitiveDifferences : public detail::Calls {
 public:
  using Calls::Calls;

  /// See primitives::AdjacentDifference. Both vectors have the same length. Errors: invalid.
  template <primitives::Number T>
  Future<void> adjacent_difference(
      const GpuRef<T>& x, const GpuRef<T>& y,
      primitives::Neighbour neighbour = primitives::Neighbour::left) const {
    return detail::submit_exact(
        *submitter_,
        primitives::AdjacentDifference{dtype_of<T>, neighbour, 0, x.length(), x.operand(),
                                       y.operand()},
        {{"y", y.length(), x.length()}});
  }
};

}  // namespace troupe
