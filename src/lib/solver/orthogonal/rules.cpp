#include "lib/solver/common/checks.hpp"

/// QR factorisations and refined solutions.
namespace troupe::solver {
namespace {

/// The checks of Gesv and Gels with an A of m x n.
template <class Op>
Result<void> check_refined(const Op& op, std::int64_t m) {
  auto checks = checker(op);
  failure_known(checks, op)
      .require(op.lowest <= Lowest::f16, "unknown precision")
      .require(m >= op.n, "a has more columns than rows")
      .matrix("a", op.a, m, op.n, op.lda)
      .matrix("b", op.b, m, op.nrhs, op.ldb)
      .matrix("x", op.x, op.n, op.nrhs, op.ldx);
  return tells<Refinement>(checks, "told", op.told).result();
}

}  // namespace

Result<void> Geqrf::check() const {
  auto checks = checker(*this);
  checks.matrix("a", a, m, n, lda);
  return array(checks, "tau", tau, std::min(m, n)).result();
}

Result<void> Ormqr::check() const {
  auto checks = checker(*this);
  checks.require(side <= Side::right, "unknown side")
      .require(transpose <= Transpose::conjugate, "unknown transposition")
      .require(transpose != Transpose::yes || !is_complex(dtype),
               "the Q of complex numbers is not transposed without being conjugated")
      .require(k <= order(), "more reflectors than Q has rows")
      .matrix("a", a, order(), k, lda)
      .matrix("c", c, m, n, ldc);
  return array(checks, "tau", tau, k).result();
}

Result<void> Orgqr::check() const {
  auto checks = checker(*this);
  checks.require(m >= n && n >= k, "more columns than rows, or more reflectors than columns")
      .matrix("a", a, m, n, lda);
  return array(checks, "tau", tau, k).result();
}

Result<void> Gesv::check() const {
  return check_refined(*this, n);
}
Result<void> Gesv::verdict(const std::byte* cell) const {
  return judge_diagonal(*this, cell, "the factor U");
}

Result<void> Gels::check() const {
  return check_refined(*this, m);
}
Result<void> Gels::verdict(const std::byte* cell) const {
  return judge_diagonal(*this, cell, "the factor R");
}

}  // namespace troupe::solver
