#include "lib/solver/common/checks.hpp"

/// Steps of factorisations and eigenvalue problems.
namespace troupe::solver {
namespace {

/// The checks of operations on one half of a.
template <class Op>
Checker reduced_half(const Op& op) {
  auto checks = checker(op);
  checks.require(op.uplo <= Uplo::upper, "unknown uplo");
  return square(checks, op);
}
/// How many elements are beside a diagonal of n.
std::int64_t beside(std::int64_t n) {
  return std::max<std::int64_t>(0, n - 1);
}

}  // namespace

Result<void> Sytrd::check() const {
  auto checks = reduced_half(*this);
  array(checks, "d", d, n, real_type(dtype));
  array(checks, "e", e, beside(n), real_type(dtype));
  return array(checks, "tau", tau, beside(n)).result();
}

Result<void> Orgtr::check() const {
  auto checks = reduced_half(*this);
  return array(checks, "tau", tau, beside(n)).result();
}

Result<void> Ormtr::check() const {
  auto checks = checker(*this);
  checks.require(side <= Side::right, "unknown side")
      .require(uplo <= Uplo::upper, "unknown uplo")
      .require(transpose <= Transpose::conjugate, "unknown transposition")
      .require(transpose != Transpose::yes || !is_complex(dtype),
               "the Q of complex numbers is not transposed without being conjugated")
      .matrix("a", a, order(), order(), lda)
      .matrix("c", c, m, n, ldc);
  return array(checks, "tau", tau, beside(order())).result();
}

Result<void> Gebrd::check() const {
  auto checks = checker(*this);
  checks.require(m >= n, "a has more columns than rows").matrix("a", a, m, n, lda);
  array(checks, "d", d, n, real_type(dtype));
  array(checks, "e", e, beside(n), real_type(dtype));
  array(checks, "tau_q", tau_q, n);
  return array(checks, "tau_p", tau_p, n).result();
}

Result<void> Orgbr::check() const {
  auto checks = checker(*this);
  checks.require(side <= Side::right, "unknown side")
      .require(m >= n, "more columns than rows")
      .matrix("a", a, rows(), n, lda);
  return array(checks, "tau", tau, n).result();
}

Result<void> Larft::check() const {
  auto checks = checker(*this);
  checks.require(n >= k, "more reflectors than rows")
      .matrix("v", v, n, k, ldv)
      .matrix("t", t, k, k, ldt);
  return array(checks, "tau", tau, k).result();
}

Result<void> Laswp::check() const {
  auto checks = checker(*this);
  checks.require(order <= Order::backward, "unknown order")
      .require(m <= kMaxOrder, "m is above 2^24")
      .require(first >= 1 && first <= last + 1 && last <= m, "rows that are not between 1 and m")
      .matrix("a", a, m, n, lda);
  return array(checks, "pivots", pivots, last, DType::i64).result();
}

Result<void> Lauum::check() const {
  return reduced_half(*this).result();
}

}  // namespace troupe::solver
