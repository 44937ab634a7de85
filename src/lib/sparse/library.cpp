#include <troupe/lib/operation_table.hpp>
#include <troupe/lib/sparse.hpp>

namespace troupe::sparse {

std::span<const OperationInfo* const> operations() noexcept {
  return tables_of(Operations{});
}

}  // namespace troupe::sparse
