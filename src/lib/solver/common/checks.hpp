#pragma once

#include <cstring>
#include <string>
#include <string_view>

#include <troupe/lib/solver.hpp>

#include "common/wire/checker.hpp"

/// What the checks of operations on matrices, and the verdicts on what they tell, have in common.
namespace troupe::solver {

using wire::checker;
using wire::Checker;

inline constexpr std::int64_t kMaxOrder = 1 << 24;  ///< the square still counts bytes safely

inline bool is_complex(DType dtype) {
  return dtype == DType::c64 || dtype == DType::c128;
}
template <class Op>
Checker& failure_known(Checker& checks, const Op& op) {
  return checks.require(op.on_failure <= OnFailure::report, "unknown on_failure");
}
/// A square matrix a.
template <class Op>
Checker& square(Checker& checks, const Op& op) {
  return checks.require(op.n <= kMaxOrder, "n is above 2^24").matrix("a", op.a, op.n, op.n, op.lda);
}
/// The result cell, which holds a Told.
template <class Told>
Checker& tells(Checker& checks, std::string_view name, const Operand& cell) {
  return checks.holds(name, cell, 1, sizeof(Told));
}
/// A vector without gaps of the operation's dtype, or of another one.
inline Checker& array(Checker& checks, std::string_view name, const Operand& operand,
                      std::int64_t n) {
  return checks.holds(name, operand, n);
}
inline Checker& array(Checker& checks, std::string_view name, const Operand& operand,
                      std::int64_t n, DType dtype) {
  return checks.ok() ? checks.holds(name, operand, n, size_of(dtype)) : checks;
}

/// What a result cell holds; its first field, or all of it, is LAPACK's info.
template <class Told>
Told told_in(const std::byte* cell) {
  Told told;
  std::memcpy(&told, cell, sizeof told);
  return told;
}

/// What LAPACK's info says; `meaning` if it is positive.
template <class Op>
Result<void> judge(const Op& op, const std::byte* cell, const std::string& meaning) {
  const auto info = told_in<std::int32_t>(cell);
  if (info == 0 || op.on_failure == OnFailure::report) return {};
  if (info == kNotFinite) {
    return Error{Errc::numeric, info,
                 std::string(Op::kName) + ": a matrix has an element that is not a finite number"};
  }
  if (info > 0) return Error{Errc::numeric, info, std::string(Op::kName) + ": " + meaning};
  return Error{Errc::library, info,
               std::string(Op::kName) + ": argument " + std::to_string(-info) + " is wrong"};
}
/// The same where the meaning is that element `info` of the diagonal of `what` is zero.
template <class Op>
Result<void> judge_diagonal(const Op& op, const std::byte* cell, std::string_view what) {
  return judge(op, cell,
               "element " + std::to_string(told_in<std::int32_t>(cell)) + " of the diagonal of " +
                   std::string(what) + " is zero");
}

/// When Jacobi's methods stop.
template <class Op>
Checker& jacobi(Checker& checks, const Op& op) {
  return checks.require(op.max_sweeps >= 1, "no sweeps")
      .require(op.tolerance >= 0, "the tolerance is negative, or not a number");
}
template <class Op>
Result<void> judge_sweeps(const Op& op, const std::byte* cell) {
  return judge(op, cell,
               "not converged after " + std::to_string(told_in<Sweeps>(cell).sweeps) + " sweeps");
}

}  // namespace troupe::solver
