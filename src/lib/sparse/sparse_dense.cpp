#include "lib/sparse/checks.hpp"

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
  checks.require(is_index(index_dtype), "indices must be i32 or i64")
      .require(transpose_a <= kMostTransposed && transpose_b <= kMostTransposed,
               "A and B are transposed or not, and not conjugated")
      .require(order_a <= blas::Order::row && order_b <= blas::Order::row, "unknown order")
      .require(rows >= 0 && columns >= 0 && nonzeros >= 0, "a negative extent")
      .require(k >= 1, "k is below 1")
      .require(std::max({rows, columns, k}) < Checker::kMaxCount, "a matrix is too large");
  if (!checks.ok()) return checks.result();
  const auto index_size = size_of(index_dtype);
  within_indices(checks, index_dtype, {rows, columns, nonzeros})
      .scalar("alpha", alpha)
      .scalar("beta", beta)
      .holds("row_begin", row_begin, rows + 1, index_size)
      .holds("column", column, nonzeros, index_size)
      .holds("value", value, nonzeros);
  const bool plain_a = transpose_a == blas::Transpose::no;
  const bool plain_b = transpose_b == blas::Transpose::no;
  dense(checks, "a", a, order_a, plain_a ? rows : k, plain_a ? k : rows, lda);
  return dense(checks, "b", b, order_b, plain_b ? k : columns, plain_b ? columns : k, ldb).result();
}

}  // namespace troupe::sparse
