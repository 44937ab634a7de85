#pragma once

#include <algorithm>
#include <initializer_list>
#include <string_view>

#include <troupe/lib/sparse.hpp>

#include "common/wire/checker.hpp"

/// What the checks of operations on sparse matrices have in common.
namespace troupe::sparse {

using wire::checker;
using wire::Checker;

inline bool is_index(DType dtype) {
  return dtype == DType::i32 || dtype == DType::i64;
}
/// Indices of 32 bits reach all of these.
inline Checker& within_indices(Checker& checks, DType index_dtype,
                               std::initializer_list<std::int64_t> extents) {
  return checks.require(index_dtype != DType::i32 || std::max(extents) <= INT32_MAX,
                        "the matrix is too large for 32-bit indices");
}
/// A dense matrix in either order.
inline Checker& dense(Checker& checks, std::string_view name, const Operand& operand,
                      blas::Order order, std::int64_t rows, std::int64_t columns,
                      std::int64_t leading) {
  if (order == blas::Order::column) return checks.matrix(name, operand, rows, columns, leading);
  checks.require(leading >= std::max<std::int64_t>(1, columns),
                 "a leading dimension is smaller than the number of columns");
  return checks.ok() ? checks.matrix(name, operand, columns, rows, leading) : checks;
}

}  // namespace troupe::sparse
