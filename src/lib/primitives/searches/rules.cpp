#include <troupe/lib/primitives/searches.hpp>

#include "common/wire/checker.hpp"

namespace troupe::primitives {

Result<void> Search::check() const {
  return wire::checker(*this)
      .require(bound <= Bound::upper, "unknown bound")
      .holds("sorted", sorted, n)
      .holds("values", values, count)
      .holds("positions", positions, count, sizeof(std::int64_t))
      .result();
}

}  // namespace troupe::primitives
