#include "lib/sparse/common/checks.hpp"

/// Systems of linear equations whose matrices are sparse and triangular.
namespace troupe::sparse {
namespace {

/// What both operations say of the matrix and of how it is used.
template <class Op>
Checker triangular(const Op& op) {
  auto checks = checker(op);
  checks.require(op.uplo <= blas::Uplo::upper, "unknown triangle")
      .require(op.diagonal <= blas::Diagonal::unit, "unknown diagonal")
      .require(op.transpose <= blas::Transpose::conjugate, "unknown transposition")
      .scalar("alpha", op.alpha);
  sparse_matrix(checks, op.a, {Format::csr, Format::csc, Format::coo, Format::sell}, op.outer,
                op.inner, op.value);
  checks.require(op.a.rows == op.a.columns, "the matrix is not square")
      .require(op.diagonal == blas::Diagonal::unit || op.a.nonzeros >= op.a.rows,
               "the matrix is singular: it has fewer elements than rows, and no unit diagonal");
  return checks;
}

}  // namespace

Result<void> Spsv::check() const {
  auto checks = triangular(*this);
  return checks.holds("b", b, a.rows).holds("x", x, a.rows).result();
}

Result<void> Spsm::check() const {
  auto checks = triangular(*this);
  checks.require(order_b <= blas::Order::row && order_x <= blas::Order::row, "unknown order")
      .require(columns >= 0 && columns < Checker::kMaxCount, "an impossible number of columns");
  if (!checks.ok()) return checks.result();
  dense(checks, "b", b, order_b, a.rows, columns, ldb);
  dense(checks, "x", x, order_x, a.rows, columns, ldx);
  const bool in_place = b.region == x.region && b.offset == x.offset;
  return checks
      .require(!in_place || (order_b == order_x && ldb == ldx),
               "in place b and x have the same layout")
      .result();
}

}  // namespace troupe::sparse
