#include <troupe/lib/blas.hpp>
#include <troupe/lib/operation_table.hpp>

namespace troupe::blas {

std::span<const OperationInfo* const> operations() noexcept {
  return tables_of(Operations{});
}

}  // namespace troupe::blas
