#include <troupe/lib/direct.hpp>
#include <troupe/lib/operation_table.hpp>

#include <algorithm>
#include <cstring>
#include <string>

#include "common/wire/checker.hpp"

namespace troupe::direct {
namespace {

using wire::checker;
using wire::Checker;

template <class Op>
Checker of_matrix(const Op& op) {
  auto checks = checker(op);
  checks
      .require(op.index_dtype == DType::i32 || op.index_dtype == DType::i64,
               "indices must be i32 or i64")
      .require(op.kind <= Kind::positive_definite, "unknown kind of matrix")
      .require(op.view <= View::upper, "unknown view of a matrix")
      .require(op.kind != Kind::general || op.view == View::full,
               "all elements of a general matrix are stored")
      .require(op.matching <= 1, "matching is neither on nor off")
      .require(op.matching == 0 || op.kind != Kind::positive_definite,
               "a positive definite matrix needs no matching")
      .require(op.n >= 0 && op.nonzeros >= 0, "a negative extent")
      .require(op.n <= INT32_MAX, "there are 2^31 rows or more");
  if (!checks.ok()) return checks;
  const auto index_size = size_of(op.index_dtype);
  checks
      .require(index_size == 8 || op.nonzeros <= INT32_MAX,
               "the matrix is too large for 32-bit indices")
      .holds("row_begin", op.row_begin, op.n + 1, index_size)
      .holds("column", op.column, op.nonzeros, index_size)
      .holds("value", op.value, op.nonzeros);
  if constexpr (requires { op.order; }) {
    if (op.order.present()) checks.holds("order", op.order, op.n, index_size);
  }
  return checks;
}

/// What Outcome::not_csr is about, ahead of the call.
template <class Op>
std::vector<IndexRule> rules_of_matrix(const Op& op) {
  std::vector<IndexRule> rules{{op.index_dtype,
                                IndexRule::offsets | IndexRule::sorted,
                                1,
                                {"row_begin", op.row_begin, op.n + 1, op.nonzeros},
                                {"column", op.column, op.nonzeros, op.n}}};
  if constexpr (requires { op.order; }) {
    if (op.order.present())
      rules.push_back({op.index_dtype, 0, 1, {"order", op.order, op.n, op.n}, {}});
  }
  return rules;
}

/// The result cell, of numbers of 8 bytes.
template <class Told>
Checker& tells(Checker& checks, const Operand& told) {
  return checks.holds("told", told, sizeof(Told) / sizeof(std::int64_t), sizeof(std::int64_t));
}

template <class Op>
Result<void> judge(const std::byte* cell, OnFailure on_failure) {
  std::int64_t outcome = 0;
  std::memcpy(&outcome, cell, sizeof outcome);
  const auto failed = [](Errc code, int native, const std::string& what) {
    return Error{code, native, std::string(Op::kName) + ": " + what};
  };
  if (outcome == not_csr)
    return failed(
        Errc::invalid, 0,
        "A is not a CSR matrix whose columns ascend within each row and lie inside of it");
  if (outcome == not_rows)
    return failed(Errc::invalid, 0,
                  "the rows of the Schur complement do not ascend, or are not in A");
  if (outcome == not_order)
    return failed(Errc::invalid, 0, "the order is no permutation of the rows of A");
  if (outcome == no_memory) return failed(Errc::out_of_memory, 0, "no memory for the factors");
  if (outcome == ready || on_failure == OnFailure::report) return {};
  if (outcome == no_factors)
    return failed(Errc::numeric, no_factors, "A is singular, or not positive definite");
  return failed(Errc::numeric, static_cast<int>(std::min<std::int64_t>(outcome, INT32_MAX)),
                std::to_string(outcome) + " pivots of A are too small");
}

}  // namespace

Result<void> Analyse::check() const {
  auto checks = of_matrix(*this);
  return tells<Analysis>(checks, told).result();
}
Result<void> Analyse::verdict(const std::byte* cell) const {
  return judge<Analyse>(cell, OnFailure::report);
}

Result<void> Factor::check() const {
  auto checks = of_matrix(*this);
  checks.require(on_failure <= OnFailure::report, "unknown on_failure");
  return tells<Factors>(checks, told).result();
}
Result<void> Factor::verdict(const std::byte* cell) const {
  return judge<Factor>(cell, on_failure);
}

Result<void> Solve::check() const {
  const bool is_complex = dtype == DType::c64 || dtype == DType::c128;
  const bool as_its_adjoint = kind == Kind::hermitian || kind == Kind::positive_definite;
  auto checks = of_matrix(*this);
  checks.require(on_failure <= OnFailure::report, "unknown on_failure")
      .require(transpose <= blas::Transpose::conjugate, "unknown transpose")
      .require(!is_complex || transpose != blas::Transpose::yes || !as_its_adjoint,
               "A is Hermitian: A^T X = B is not solved")
      .require(!is_complex || transpose != blas::Transpose::conjugate || kind != Kind::symmetric,
               "A is symmetric: A^H X = B is not solved")
      .require(refinement <= kMostRefinement, "more than 16 steps of refinement")
      .matrix("b", b, n, nrhs, ldb)
      .matrix("x", x, n, nrhs, ldx);
  return tells<std::int64_t>(checks, told).result();
}
Result<void> Solve::verdict(const std::byte* cell) const {
  return judge<Solve>(cell, on_failure);
}

Result<void> Schur::check() const {
  auto checks = of_matrix(*this);
  checks.require(on_failure <= OnFailure::report, "unknown on_failure")
      .require(matching == 0, "there is no matching for a Schur complement")
      .require(count >= 0, "a negative extent")
      .require(count < n || count == 0, "no row of A is eliminated");
  if (!checks.ok()) return checks.result();
  checks.holds("rows", rows, count, size_of(index_dtype)).matrix("s", s, count, count, lds);
  return tells<std::int64_t>(checks, told).result();
}
Result<void> Schur::verdict(const std::byte* cell) const {
  return judge<Schur>(cell, on_failure);
}

std::vector<IndexRule> Analyse::index_rules() const {
  return rules_of_matrix(*this);
}
std::vector<IndexRule> Factor::index_rules() const {
  return rules_of_matrix(*this);
}
std::vector<IndexRule> Solve::index_rules() const {
  return rules_of_matrix(*this);
}
std::vector<IndexRule> Schur::index_rules() const {
  auto rules = rules_of_matrix(*this);
  rules.push_back({index_dtype, IndexRule::ordered, 1, {"rows", rows, count, n}, {}});
  return rules;
}

std::span<const OperationInfo* const> operations() noexcept {
  return tables_of(Operations{});
}

}  // namespace troupe::direct
