#include "lib/sparse/checks.hpp"

/// Systems of linear equations whose matrices are sparse and triangular.
namespace troupe::sparse {
namespace {

/// What both operations say of the matrix and of how it is used.
template <class Op>
Checker triangular(const Op& op) {
  auto checks = checker(op);
  checks.require(is_index(op.index_dtype), "indices must be i32 or i64")
      .require(op.storage <= Storage::coo, "unknown storage")
      .require(op.uplo <= blas::Uplo::upper, "unknown triangle")
      .require(op.diagonal <= blas::Diagonal::unit, "unknown diagonal")
      .require(op.transpose <= blas::Transpose::conjugate, "unknown transposition")
      .require(op.n >= 0 && op.nonzeros >= 0, "a negative extent")
      .require(op.n < Checker::kMaxCount, "the matrix is too large")
      .require(op.diagonal == blas::Diagonal::unit || op.nonzeros >= op.n,
               "the matrix is singular: it has fewer elements than rows, and no unit diagonal");
  if (!checks.ok()) return checks;
  const auto index_size = size_of(op.index_dtype);
  return within_indices(checks, op.index_dtype, {op.n, op.nonzeros})
      .scalar("alpha", op.alpha)
      .holds("outer", op.outer, op.storage == Storage::coo ? op.nonzeros : op.n + 1, index_size)
      .holds("inner", op.inner, op.nonzeros, index_size)
      .holds("value", op.value, op.nonzeros);
}

}  // namespace

Result<void> Spsv::check() const {
  auto checks = triangular(*this);
  return checks.holds("b", b, n).holds("x", x, n).result();
}

Result<void> Spsm::check() const {
  auto checks = triangular(*this);
  checks.require(order_b <= blas::Order::row && order_x <= blas::Order::row, "unknown order")
      .require(columns >= 0 && columns < Checker::kMaxCount, "an impossible number of columns");
  if (!checks.ok()) return checks.result();
  dense(checks, "b", b, order_b, n, columns, ldb);
  dense(checks, "x", x, order_x, n, columns, ldx);
  const bool in_place = b.region == x.region && b.offset == x.offset;
  return checks
      .require(!in_place || (order_b == order_x && ldb == ldx),
               "in place b and x have the same layout")
      .result();
}

}  // namespace troupe::sparse
