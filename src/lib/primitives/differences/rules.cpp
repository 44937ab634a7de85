#include <troupe/lib/primitives/differences.hpp>

#include "common/wire/checker.hpp"

namespace troupe::primitives {

Result<void> AdjacentDifference::check() const {
  return wire::checker(*this)
      .require(neighbour <= Neighbour::right, "unknown neighbour")
      .holds("x", x, n)
      .holds("y", y, n)
      .result();
}

}  // namespace troupe::primitives
