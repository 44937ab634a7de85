#pragma once

#include <troupe/lib/primitives/elements.hpp>

/// Searches in sorted elements. See primitives.hpp.
namespace troupe::primitives {

/// The first or the last of the places for a value that keep the order.
enum class Bound : std::uint32_t { lower, upper };

/// positions[i] = how many of the n elements of `sorted` stand before values[i], i < count: those
/// that are below it (lower), or those that are not above it (upper). The order is that of Sort,
/// ascending: -0 and +0 are equal, and NaNs are ordered by their bits. Where `sorted` is not in
/// that order, each position is some number from 0 to n.
struct Search {
  static constexpr std::string_view kName = "primitives.search";
  static constexpr DTypes kDTypes = kOrdered;
  static constexpr Traits kTraits = {.repeatable = true, .capturable = true};

  OpDType dtype;
  Bound bound{};
  std::uint32_t reserved = 0;
  std::int64_t n = 0;
  std::int64_t count = 0;  ///< of values
  Operand sorted, values;
  Operand positions;  ///< std::int64_t

  static constexpr std::array kOperands{read("sorted", &Search::sorted),
                                        read("values", &Search::values),
                                        write("positions", &Search::positions)};
  Result<void> check() const;
  [[nodiscard]] std::uint64_t written(const Operand&) const noexcept {
    return static_cast<std::uint64_t>(count) * sizeof(std::int64_t);
  }
};

}  // namespace troupe::primitives

namespace troupe {

/// The searches among the calls of Primitives.
class PrimitiveSearches : public detail::Calls {
 public:
  using Calls::Calls;

  /// See primitives::Search. `positions` has as many elements as `values`. Errors: invalid.
  template <primitives::Ordered T>
  Future<void> search(const GpuRef<T>& sorted, const GpuRef<T>& values,
                      const GpuRef<std::int64_t>& positions,
                      primitives::Bound bound = primitives::Bound::lower) const {
    return detail::submit_exact(
        *submitter_,
        primitives::Search{dtype_of<T>, bound, 0, sorted.length(), values.length(),
                           sorted.operand(), values.operand(), positions.operand()},
        {{"positions", positions.length(), values.length()}});
  }
};

}  // namespace troupe
