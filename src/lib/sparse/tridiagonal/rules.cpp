#include <array>

#include "lib/sparse/common/checks.hpp"

/// Matrices with three or five diagonals.
namespace troupe::sparse {
namespace {

template <class Op>
Checker with_order(const Op& op) {
  auto checks = checker(op);
  return checks.require(op.n == 0 || op.n >= 3, "n is neither 0 nor at least 3")
      .require(op.n < Checker::kMaxCount, "n is too large");
}
template <class Op>
Checker& in_diagonals(Checker& checks, const Op& op, std::int64_t count) {
  return checks.holds("lower", op.lower, count)
      .holds("diagonal", op.diagonal, count)
      .holds("upper", op.upper, count);
}
/// n rows of each of `batch` matrices.
template <class Op>
Checker interleaved(const Op& op) {
  auto checks = with_order(op);
  std::int64_t count = 0;
  checks.require(op.batch >= 0, "the batch is negative")
      .require(!__builtin_mul_overflow(op.n, op.batch, &count) && count < Checker::kMaxCount,
               "there are too many equations");
  if (!checks.ok()) return checks;
  return in_diagonals(checks, op, count).holds("x", op.x, count);
}

}  // namespace

Result<void> Gtsv::check() const {
  auto checks = with_order(*this);
  return in_diagonals(checks, *this, n).matrix("b", b, n, nrhs, ldb).result();
}

Result<void> GtsvStrided::check() const {
  auto checks = with_order(*this);
  std::int64_t last = 0;
  checks.require(batch >= 0, "the batch is negative")
      .require(stride >= n, "systems overlap: the stride is below n")
      .require(batch <= 1 || (!__builtin_mul_overflow(batch - 1, stride, &last) &&
                              last < Checker::kMaxCount - n),
               "there are too many equations");
  if (!checks.ok()) return checks.result();
  const auto count = batch == 0 ? 0 : last + n;
  return in_diagonals(checks, *this, count).holds("x", x, count).result();
}

Result<void> GtsvInterleaved::check() const {
  return interleaved(*this).require(elimination <= Elimination::qr, "unknown elimination").result();
}

Result<void> GpsvInterleaved::check() const {
  auto checks = interleaved(*this);
  if (!checks.ok()) return checks.result();
  return checks.holds("lower2", lower2, n * batch).holds("upper2", upper2, n * batch).result();
}

}  // namespace troupe::sparse
