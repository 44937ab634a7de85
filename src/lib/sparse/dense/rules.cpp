#include "lib/sparse/common/checks.hpp"

/// Products of sparse matrices with dense ones.
namespace troupe::sparse {

Result<void> Spmm::check() const {
  auto checks = checker(*this);
  checks.require(transpose_a <= blas::Transpose::conjugate, "unknown transposition")
      .require(order_b <= blas::Order::row && order_c <= blas::Order::row, "unknown order")
      .require(n >= 0, "a negative extent")
      .require(n < Checker::kMaxCount, "a matrix is too large")
      .scalar("alpha", alpha)
      .scalar("beta", beta);
  sparse_matrix(checks, a,
                {Format::csr, Format::csc, Format::coo, Format::bsr, Format::blocked_ell}, outer,
                inner, value);
  if (!checks.ok()) return checks.result();
  dense(checks, "b", b, order_b, rows_of_b(), n, ldb);
  return dense(checks, "c", c, order_c, rows_of_c(), n, ldc).result();
}

Result<void> Sddmm::check() const {
  constexpr auto kMostTransposed = blas::Transpose::yes;
  auto checks = checker(*this);
  checks
      .require(transpose_a <= kMostTransposed && transpose_b <= kMostTransposed,
               "A and B are transposed or not, and not conjugated")
      .require(order_a <= blas::Order::row && order_b <= blas::Order::row, "unknown order")
      .require(k >= 1, "k is below 1")
      .require(k < Checker::kMaxCount, "a matrix is too large")
      .scalar("alpha", alpha)
      .scalar("beta", beta);
  sparse_matrix(checks, c, {Format::csr, Format::bsr}, outer, inner, value);
  if (!checks.ok()) return checks.result();
  const bool plain_a = transpose_a == blas::Transpose::no;
  const bool plain_b = transpose_b == blas::Transpose::no;
  dense(checks, "a", a, order_a, plain_a ? c.rows : k, plain_a ? k : c.rows, lda);
  return dense(checks, "b", b, order_b, plain_b ? k : c.columns, plain_b ? c.columns : k, ldb)
      .result();
}

}  // namespace troupe::sparse
