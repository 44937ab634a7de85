#include "lib/solver/common/checks.hpp"

/// Eigenvalues.
namespace troupe::solver {
namespace {

/// The checks of operations on a Hermitian matrix a, with real eigenvalues w.
template <class Op>
Checker hermitian(const Op& op) {
  auto checks = checker(op);
  checks.require(op.uplo <= Uplo::upper, "unknown uplo")
      .require(op.vectors <= Vectors::yes, "unknown vectors");
  square(failure_known(checks, op), op);
  array(checks, "w", op.w, op.n, real_type(op.dtype));
  return checks;
}

/// The same beside a definite matrix b.
template <class Op>
Checker with_b(const Op& op) {
  auto checks = hermitian(op);
  return checks
      .require(op.problem >= Problem::ax_bx && op.problem <= Problem::bax, "unknown problem")
      .matrix("b", op.b, op.n, op.n, op.ldb);
}
template <class Op>
Checker& in_range(Checker& checks, const Op& op) {
  checks.require(op.range <= Range::indices, "unknown range")
      .require(op.range != Range::values || op.from < op.to, "the range has no values")
      .require(
          op.range != Range::indices || (op.first >= 1 && op.first <= op.last && op.last <= op.n),
          "the range has no indices, or some that are not between 1 and n");
  return tells<FoundEigenvalues>(checks, "told", op.told);
}

std::string not_converged(const std::byte* cell) {
  return std::to_string(told_in<std::int32_t>(cell)) + " off-diagonal elements have not converged";
}

/// info above n: b is not definite.
template <class Op>
Result<void> judge_with_b(const Op& op, const std::byte* cell) {
  const auto found = told_in<std::int32_t>(cell);
  if (found <= op.n) return judge(op, cell, not_converged(cell));
  return judge(op, cell,
               "the leading minor of order " + std::to_string(found - op.n) +
                   " of b is not positive definite");
}

}  // namespace

Result<void> Syevd::check() const {
  auto checks = hermitian(*this);
  return tells<std::int32_t>(checks, "info", info).result();
}
Result<void> Syevd::verdict(const std::byte* cell) const {
  return judge(*this, cell, not_converged(cell));
}

Result<void> Syevj::check() const {
  auto checks = hermitian(*this);
  jacobi(checks, *this);
  return tells<Sweeps>(checks, "told", told).result();
}
Result<void> Syevj::verdict(const std::byte* cell) const {
  return judge_sweeps(*this, cell);
}

Result<void> Syevdx::check() const {
  auto checks = hermitian(*this);
  return in_range(checks, *this).result();
}
Result<void> Syevdx::verdict(const std::byte* cell) const {
  return judge(*this, cell, not_converged(cell));
}

Result<void> Sygvd::check() const {
  auto checks = with_b(*this);
  return tells<std::int32_t>(checks, "info", info).result();
}
Result<void> Sygvd::verdict(const std::byte* cell) const {
  return judge_with_b(*this, cell);
}

Result<void> Sygvj::check() const {
  auto checks = with_b(*this);
  jacobi(checks, *this);
  return tells<Sweeps>(checks, "told", told).result();
}
Result<void> Sygvj::verdict(const std::byte* cell) const {
  return told_in<std::int32_t>(cell) > n + 1 ? judge_with_b(*this, cell)
                                             : judge_sweeps(*this, cell);
}

Result<void> Sygvdx::check() const {
  auto checks = with_b(*this);
  return in_range(checks, *this).result();
}
Result<void> Sygvdx::verdict(const std::byte* cell) const {
  return judge_with_b(*this, cell);
}

Result<void> Geev::check() const {
  auto checks = checker(*this);
  square(failure_known(checks, *this), *this);
  array(checks, "w", w, n, complex_type(dtype));
  if (vr.present()) checks.matrix("vr", vr, n, n, ldvr);
  return tells<std::int32_t>(checks, "info", info).result();
}
Result<void> Geev::verdict(const std::byte* cell) const {
  return judge(*this, cell,
               "the first " + std::to_string(told_in<std::int32_t>(cell)) +
                   " eigenvalues have not converged");
}

}  // namespace troupe::solver
