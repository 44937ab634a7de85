#include <troupe/lib/operation_table.hpp>
#include <troupe/lib/solver.hpp>

namespace troupe::solver {

std::span<const OperationInfo* const> operations() noexcept {
  return tables_of(Operations{});
}

}  // namespace troupe::solver
