#include "lib/solver/checks.hpp"

/// Eigenvalues.
namespace troupe::solver {
namespace {

/// Of operations on a Hermitian matrix a, with real eigenvalues w.
template <class Op>
Checker hermitian(const Op& op) {
  auto checks = checker(op);
  checks.require(op.uplo <= Uplo::upper, "unknown uplo")
      .require(op.vectors <= Vectors::yes, "unknown vectors");
  square(failure_known(checks, op), op);
  array(checks, "w", op.w, op.n, real_type(op.dtype));
  return checks;
}

std::string not_converged(const std::byte* cell) {
  return std::to_string(told_in<std::int32_t>(cell)) + " off-diagonal elements have not converged";
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
  checks.require(range <= Range::indices, "unknown range")
      .require(range != Range::values || from < to, "the range has no values")
      .require(range != Range::indices || (first >= 1 && first <= last && last <= n),
               "the range has no indices, or some that are not between 1 and n");
  return tells<FoundEigenvalues>(checks, "told", told).result();
}
Result<void> Syevdx::verdict(const std::byte* cell) const {
  return judge(*this, cell, not_converged(cell));
}

Result<void> Sygvd::check() const {
  auto checks = hermitian(*this);
  checks.require(problem >= Problem::ax_bx && problem <= Problem::bax, "unknown problem")
      .matrix("b", b, n, n, ldb);
  return tells<std::int32_t>(checks, "info", info).result();
}
Result<void> Sygvd::verdict(const std::byte* cell) const {
  const auto found = told_in<std::int32_t>(cell);
  if (found <= n) return judge(*this, cell, not_converged(cell));
  return judge(
      *this, cell,
      "the leading minor of order " + std::to_string(found - n) + " of b is not positive definite");
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
