#pragma once

#include "lib/sparse/common/checks.hpp"

/// What the checks of conversions of CSR matrices into other forms have in common.
namespace troupe::sparse {

/// The CSR matrix of an operation, whose result has room for `capacity`.
template <class Op>
Checker csr_matrix(const Op& op) {
  auto checks = checker(op);
  checks.require(is_index(op.index_dtype), "indices must be i32 or i64")
      .require(op.on_failure <= OnFailure::report, "unknown on_failure")
      .require(op.rows >= 0 && op.columns >= 0 && op.nonzeros >= 0 && op.capacity >= 0,
               "a negative extent")
      .require(std::max({op.rows, op.columns, op.nonzeros, op.capacity}) < Checker::kMaxCount,
               "the matrix is too large");
  if (!checks.ok()) return checks;
  const auto index_size = size_of(op.index_dtype);
  within_indices(checks, op.index_dtype, {op.rows, op.columns, op.nonzeros, op.capacity})
      .holds("row_begin", op.row_begin, op.rows + 1, index_size);
  if (op.capacity > 0) checks.holds("value", op.value, op.nonzeros);
  return checks;
}

/// Whether a product of extents, none of them negative, is a count.
inline bool is_count(std::initializer_list<std::int64_t> extents) {
  std::int64_t product = 1;
  for (const auto extent : extents) {
    if (__builtin_mul_overflow(product, extent, &product) || product >= Checker::kMaxCount)
      return false;
  }
  return true;
}

}  // namespace troupe::sparse
