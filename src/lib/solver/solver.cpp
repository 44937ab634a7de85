#include <troupe/lib/solver.hpp>

#include "common/wire/checker.hpp"

namespace troupe::solver {

using wire::checker;

namespace {

constexpr std::int64_t kMaxOrder = 1 << 24;  // the square still counts bytes safely

template <class Op>
wire::Checker factorable(const Op& op) {
  auto checks = checker(op);
  checks.require(op.uplo <= Uplo::upper, "unknown uplo")
      .require(op.on_failure <= OnFailure::report, "unknown on_failure")
      .require(op.n <= kMaxOrder, "n is above 2^24")
      .matrix("a", op.a, op.n, op.n, op.lda)
      .holds("info", op.info, 1, sizeof(std::int32_t));
  return checks;
}

std::int32_t info_in(const std::byte* cell) {
  std::int32_t info = 0;
  std::memcpy(&info, cell, sizeof info);
  return info;
}

/// What LAPACK's info says; `meaning` if it is positive.
template <class Op>
Result<void> judge(const Op& op, const std::byte* cell, const std::string& meaning) {
  const auto info = info_in(cell);
  if (info == 0 || op.on_failure == OnFailure::report) return {};
  if (info > 0) return Error{Errc::numeric, info, std::string(Op::kName) + ": " + meaning};
  return Error{Errc::library, info,
               std::string(Op::kName) + ": argument " + std::to_string(-info) + " is wrong"};
}

}  // namespace

Result<void> Potrf::check() const {
  return factorable(*this).result();
}

Result<void> Potrf::verdict(const std::byte* cell) const {
  return judge(
      *this, cell,
      "the leading minor of order " + std::to_string(info_in(cell)) + " is not positive definite");
}

Result<void> Syevd::check() const {
  auto checks = factorable(*this);
  checks.require(vectors <= Vectors::yes, "unknown vectors");
  if (checks.ok()) checks.holds("w", w, n, size_of(real_type(dtype)));
  return checks.result();
}

Result<void> Syevd::verdict(const std::byte* cell) const {
  return judge(*this, cell,
               std::to_string(info_in(cell)) + " off-diagonal elements have not converged");
}

}  // namespace troupe::solver
