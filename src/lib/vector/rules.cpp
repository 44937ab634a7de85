#include <troupe/lib/operation_table.hpp>
#include <troupe/lib/vector.hpp>

#include "common/wire/checker.hpp"

namespace troupe::vectors {

using wire::checker;

Result<void> Multiply::check() const {
  return checker(*this).holds("x", x, n).holds("y", y, n).holds("z", z, n).result();
}

Result<void> Divide::check() const {
  return checker(*this).holds("x", x, n).holds("y", y, n).holds("z", z, n).result();
}

Result<void> Axpby::check() const {
  return checker(*this)
      .scalar("alpha", alpha)
      .scalar("beta", beta)
      .holds("x", x, n)
      .holds("y", y, n)
      .result();
}

std::span<const OperationInfo* const> operations() noexcept {
  return tables_of(Operations{});
}

}  // namespace troupe::vectors
