#include <troupe/lib/primitives/selections.hpp>

#include <cstring>
#include <utility>

#include "common/wire/checker.hpp"
#include "lib/primitives/common/overflow.hpp"

namespace troupe::primitives {

using wire::checker;

Result<void> SelectNonzero::check() const {
  return checker(*this)
      .require(on_failure <= OnFailure::report, "unknown on_failure")
      .holds("x", x, n)
      .holds("indices", indices, capacity, sizeof(std::int64_t))
      .holds("count", count, 1, sizeof(std::int64_t))
      .result();
}

Result<void> SelectFlagged::check() const {
  return checker(*this)
      .require(on_failure <= OnFailure::report, "unknown on_failure")
      .holds("x", x, n)
      .holds("flags", flags, n, sizeof(std::uint8_t))
      .holds("selected", selected, capacity)
      .holds("count", count, 1, sizeof(std::int64_t))
      .result();
}

Result<void> PartitionFlagged::check() const {
  return checker(*this)
      .holds("x", x, n)
      .holds("flags", flags, n, sizeof(std::uint8_t))
      .holds("y", y, n)
      .holds("count", count, 1, sizeof(std::int64_t))
      .result();
}

Result<void> Unique::check() const {
  return checker(*this)
      .require(on_failure <= OnFailure::report, "unknown on_failure")
      .holds("x", x, n)
      .holds("selected", selected, capacity)
      .holds("count", count, 1, sizeof(std::int64_t))
      .result();
}

Result<void> PartitionThreeWay::check() const {
  return checker(*this)
      .require(on_failure <= OnFailure::report, "unknown on_failure")
      .holds("x", x, n)
      .holds("first_flags", first_flags, n, sizeof(std::uint8_t))
      .holds("second_flags", second_flags, n, sizeof(std::uint8_t))
      .holds("first", first, first_capacity)
      .holds("second", second, second_capacity)
      .holds("rest", rest, rest_capacity)
      .holds("counts", counts, 2, sizeof(std::int64_t))
      .result();
}

Result<void> SelectNonzero::verdict(const std::byte* cell) const {
  return overflow(*this, cell);
}
Result<void> SelectFlagged::verdict(const std::byte* cell) const {
  return overflow(*this, cell);
}
Result<void> Unique::verdict(const std::byte* cell) const {
  return overflow(*this, cell);
}
Result<void> PartitionThreeWay::verdict(const std::byte* cell) const {
  ThreeWayCounts found;
  std::memcpy(&found, cell, sizeof found);
  for (const auto& [count, capacity] : {std::pair{found.first, first_capacity},
                                        {found.second, second_capacity},
                                        {n - found.first - found.second, rest_capacity}}) {
    if (const auto enough = overflow(*this, count, capacity); !enough.ok()) return enough;
  }
  return {};
}

}  // namespace troupe::primitives
