#include <troupe/lib/operation_table.hpp>
#include <troupe/lib/primitives.hpp>

namespace troupe::primitives {

std::span<const OperationInfo* const> operations() noexcept {
  return tables_of(Operations{});
}

}  // namespace troupe::primitives
