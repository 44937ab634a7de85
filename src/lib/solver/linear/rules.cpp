#include "lib/solver/common/checks.hpp"

/// Linear systems.
namespace troupe::solver {
namespace {

bool known(Uplo uplo) {
  return uplo <= Uplo::upper;
}

/// The checks of operations on one half of a, with an info.
template <class Op>
Checker half(const Op& op) {
  auto checks = checker(op);
  checks.require(known(op.uplo), "unknown uplo");
  square(failure_known(checks, op), op);
  return tells<std::int32_t>(checks, "info", op.info);
}

/// The checks of operations with a factorised matrix a and right sides b.
template <class Op>
Checker factors_and_right_sides(const Op& op) {
  auto checks = checker(op);
  square(checks, op).matrix("b", op.b, op.n, op.nrhs, op.ldb);
  return checks;
}

}  // namespace

Result<void> Potrf::check() const {
  return half(*this).result();
}
Result<void> Potrf::verdict(const std::byte* cell) const {
  return judge(*this, cell,
               "the leading minor of order " + std::to_string(told_in<std::int32_t>(cell)) +
                   " is not positive definite");
}

Result<void> Potrs::check() const {
  return factors_and_right_sides(*this).require(known(uplo), "unknown uplo").result();
}

Result<void> Potri::check() const {
  return half(*this).result();
}
Result<void> Potri::verdict(const std::byte* cell) const {
  return judge_diagonal(*this, cell, "the factor");
}

Result<void> Trtri::check() const {
  return half(*this).require(diagonal <= Diagonal::unit, "unknown kind of diagonal").result();
}
Result<void> Trtri::verdict(const std::byte* cell) const {
  return judge_diagonal(*this, cell, "the matrix");
}

Result<void> Getrf::check() const {
  auto checks = checker(*this);
  failure_known(checks, *this)
      .require(m <= kMaxOrder && n <= kMaxOrder, "m or n is above 2^24")
      .matrix("a", a, m, n, lda);
  if (pivots.present()) array(checks, "pivots", pivots, std::min(m, n), DType::i64);
  return tells<std::int32_t>(checks, "info", info).result();
}
Result<void> Getrf::verdict(const std::byte* cell) const {
  return judge_diagonal(*this, cell, "the factor U");
}

Result<void> Getrs::check() const {
  auto checks = factors_and_right_sides(*this);
  checks.require(transpose <= Transpose::conjugate, "unknown transposition");
  if (pivots.present()) array(checks, "pivots", pivots, n, DType::i64);
  return checks.result();
}

Result<void> Sytrf::check() const {
  auto checks = half(*this);
  return array(checks, "pivots", pivots, n, DType::i64).result();
}
Result<void> Sytrf::verdict(const std::byte* cell) const {
  return judge_diagonal(*this, cell, "the factor D");
}

Result<void> Sytri::check() const {
  auto checks = half(*this);
  return array(checks, "pivots", pivots, n, DType::i64).result();
}
Result<void> Sytri::verdict(const std::byte* cell) const {
  return judge_diagonal(*this, cell, "the factor D");
}

Result<void> Sytrs::check() const {
  auto checks = factors_and_right_sides(*this);
  checks.require(known(uplo), "unknown uplo");
  return array(checks, "pivots", pivots, n, DType::i64).result();
}

}  // namespace troupe::solver
