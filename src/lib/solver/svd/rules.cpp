#include "lib/solver/common/checks.hpp"

/// Singular values.
namespace troupe::solver {
namespace {

/// The checks of operations on an m x n matrix a, with `count` real singular values s.
template <class Op>
Checker decomposition(const Op& op, std::int64_t count) {
  auto checks = checker(op);
  failure_known(checks, op)
      .require(op.m <= kMaxOrder && op.n <= kMaxOrder, "m or n is above 2^24")
      .matrix("a", op.a, op.m, op.n, op.lda);
  return array(checks, "s", op.s, count, real_type(op.dtype));
}

/// The checks of Gesvdj and Gesvdp.
template <class Op>
Checker with_v(const Op& op) {
  const auto k = std::min(op.m, op.n);
  auto checks = decomposition(op, k);
  checks.require(op.vectors <= Vectors::yes, "unknown vectors")
      .require(op.extent <= Extent::full, "unknown extent");
  if (op.vectors == Vectors::no) {
    return checks.require(!op.u.present() && !op.v.present(), "u or v without vectors");
  }
  const bool full = op.extent == Extent::full;
  return checks.require(op.u.present() && op.v.present(), "u or v is missing")
      .matrix("u", op.u, op.m, full ? op.m : k, op.ldu)
      .matrix("v", op.v, op.n, full ? op.n : k, op.ldv);
}

bool is_apart(Columns columns) {
  return columns == Columns::some || columns == Columns::all;
}

std::string superdiagonals(const std::byte* cell) {
  return std::to_string(told_in<std::int32_t>(cell)) + " superdiagonals have not converged";
}

}  // namespace

Result<void> Gesvd::check() const {
  auto checks = decomposition(*this, n);
  checks.require(m >= n, "a has more columns than rows: decompose its transpose")
      .require(columns_u <= Columns::overwrite && columns_v <= Columns::overwrite,
               "unknown columns")
      .require(columns_u != Columns::overwrite || columns_v != Columns::overwrite,
               "both sides in place of a")
      .require(u.present() == is_apart(columns_u) && vt.present() == is_apart(columns_v),
               "u or vt is missing, or not computed");
  if (is_apart(columns_u)) checks.matrix("u", u, m, columns_u == Columns::all ? m : n, ldu);
  if (is_apart(columns_v)) checks.matrix("vt", vt, n, n, ldvt);
  return tells<std::int32_t>(checks, "info", info).result();
}
Result<void> Gesvd::verdict(const std::byte* cell) const {
  return judge(*this, cell, superdiagonals(cell));
}

Result<void> Gesvdj::check() const {
  auto checks = with_v(*this);
  jacobi(checks, *this);
  return tells<Sweeps>(checks, "told", told).result();
}
Result<void> Gesvdj::verdict(const std::byte* cell) const {
  return judge_sweeps(*this, cell);
}

Result<void> Gesvdp::check() const {
  auto checks = with_v(*this);
  return tells<Perturbation>(checks, "told", told).result();
}
Result<void> Gesvdp::verdict(const std::byte* cell) const {
  return judge(*this, cell, "the singular values have not converged");
}

Result<void> Gesvdr::check() const {
  auto checks = decomposition(*this, rank);
  const auto k = std::min(m, n);
  checks.require(rank >= 1 && rank <= k, "the rank is not between 1 and min(m, n)")
      .require(oversampling >= 0 && oversampling <= k && rank <= k - oversampling,
               "the oversampling is negative, or too large for the rank")
      .require(iterations >= 0 && iterations <= kMaxOrder,
               "the iterations are negative or above 2^24");
  if (u.present()) checks.matrix("u", u, m, rank, ldu);
  if (v.present()) checks.matrix("v", v, n, rank, ldv);
  return tells<std::int32_t>(checks, "info", info).result();
}
Result<void> Gesvdr::verdict(const std::byte* cell) const {
  return judge(*this, cell, superdiagonals(cell));
}

}  // namespace troupe::solver
