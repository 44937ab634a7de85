#include <troupe/lib/dnn.hpp>
#include <troupe/lib/operation_table.hpp>

namespace troupe::dnn {

std::span<const OperationInfo* const> operations() noexcept {
  return tables_of(Operations{});
}

}  // namespace troupe::dnn
