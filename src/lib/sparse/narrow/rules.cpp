#include <string>

#include "lib/sparse/common/checks.hpp"

/// Products of sparse matrices whose elements are narrower than what they are computed in.
namespace troupe::sparse {
namespace {

/// Whether there are such products at all.
template <class Op>
Result<void> check_types(const Op& op, DType out) {
  if (auto takes = checker(op).result(); !takes) return takes;
  if (combines(op.dtype, out)) return {};
  return Error{Errc::unsupported, 0,
               std::string(Op::kName) + ": there is no such product of matrices of " +
                   std::string(to_string(op.dtype))};
}
void check_scalars(Checker& checks, const Scalar& alpha, const Scalar& beta, DType out) {
  const auto size = size_of(sum_type(out));
  if (alpha.device.present()) checks.holds("alpha", alpha.device, std::int64_t{1}, size);
  if (beta.device.present()) checks.holds("beta", beta.device, std::int64_t{1}, size);
}

}  // namespace

Result<void> SpmvEx::check() const {
  if (auto types = check_types(*this, y_dtype); !types) return types;
  auto checks = checker(*this);
  check_scalars(checks, alpha, beta, y_dtype);
  checks.require(transpose <= blas::Transpose::conjugate, "unknown transposition");
  sparse_matrix(checks, a, {Format::csr, Format::csc, Format::coo, Format::bsr, Format::sell},
                outer, inner, value);
  if (!checks.ok()) return checks.result();
  return checks.holds("x", x, length_of_x())
      .holds("y", y, length_of_y(), size_of(y_dtype))
      .result();
}

Result<void> SpmmEx::check() const {
  if (auto types = check_types(*this, c_dtype); !types) return types;
  auto checks = checker(*this);
  check_scalars(checks, alpha, beta, c_dtype);
  checks.require(transpose_a <= blas::Transpose::conjugate, "unknown transposition")
      .require(order_b <= blas::Order::row && order_c <= blas::Order::row, "unknown order")
      .require(n >= 0, "a negative extent")
      .require(n < Checker::kMaxCount, "a matrix is too large");
  sparse_matrix(checks, a,
                {Format::csr, Format::csc, Format::coo, Format::bsr, Format::blocked_ell}, outer,
                inner, value);
  if (!checks.ok()) return checks.result();
  dense(checks, "b", b, order_b, rows_of_b(), n, ldb);
  if (!checks.ok()) return checks.result();
  Checker of_result{kName, c_dtype, DTypes::of({c_dtype})};
  return dense(of_result, "c", c, order_c, rows_of_c(), n, ldc).result();
}

}  // namespace troupe::sparse
