#include <climits>

#include "lib/solver/common/checks.hpp"

/// Batches of small matrices.
namespace troupe::solver {
namespace {

/// A batch of parts of `rows` x `columns`, side by side.
Checker& batch_of(Checker& checks, std::string_view name, const Operand& operand, std::int64_t rows,
                  std::int64_t columns, std::int64_t leading, std::int64_t batch) {
  return checks.ok() ? checks.matrix(name, operand, rows, columns * batch, leading) : checks;
}
/// The checks of all batches: with them no product of two of these overflows.
template <class Op>
Checker batch_in_bounds(const Op& op, std::initializer_list<std::int64_t> extents) {
  auto checks = checker(op);
  for (const auto extent : extents)
    checks.require(extent >= 0 && extent <= INT_MAX, "an extent is negative or above 2^31 - 1");
  checks.require(op.batch >= 0 && op.batch <= INT_MAX, "the batch is negative or above 2^31 - 1");
  return checks;
}
/// One for each matrix.
template <class Op>
Checker& infos(Checker& checks, const Op& op) {
  return array(checks, "info", op.info, op.batch, DType::i32);
}

/// The tail's list number `list`, of matrices of so many rows and columns.
template <class Op>
void list_in_tail(Checker& checks, const Op& op, const Parts& parts, std::uint32_t list,
                  Access access, std::string_view name, std::int64_t columns,
                  std::int64_t leading) {
  const auto first = list * static_cast<std::size_t>(op.batch);
  for (auto i = first; i < first + static_cast<std::size_t>(op.batch) && checks.ok(); ++i) {
    const auto& part = parts.tail[i];
    checks.require(part.tag == list, "a matrix is out of order")
        .require(part.access == access, "a matrix with the wrong access")
        .matrix(name, part.range, op.n, columns, leading);
  }
}
template <class Op>
Checker with_tail(const Op& op, const Parts& parts, std::int64_t lists) {
  auto checks = checker(op);
  checks.require(
      std::ssize(parts.tail) == lists * op.batch,
      std::to_string(parts.tail.size()) + " matrices, not " + std::to_string(lists * op.batch));
  return checks;
}

template <class Op>
Checker hermitian_batch(const Op& op) {
  auto checks = batch_in_bounds(op, {op.n, op.lda});
  checks.require(op.uplo <= Uplo::upper, "unknown uplo")
      .require(op.vectors <= Vectors::yes, "unknown vectors");
  batch_of(checks, "a", op.a, op.n, op.n, op.lda, op.batch);
  if (!checks.ok()) return checks;
  array(checks, "w", op.w, op.n * op.batch, real_type(op.dtype));
  return infos(checks, op);
}

/// `values` of each matrix, and so many vectors.
template <class Op>
Checker tall_batch(const Op& op, std::int64_t values, std::int64_t columns_u,
                   std::int64_t columns_v) {
  auto checks = batch_in_bounds(op, {op.m, op.n, op.lda, op.ldu, op.ldv, values});
  checks.require(op.vectors <= Vectors::yes, "unknown vectors");
  batch_of(checks, "a", op.a, op.m, op.n, op.lda, op.batch);
  if (!checks.ok()) return checks;
  array(checks, "s", op.s, values * op.batch, real_type(op.dtype));
  infos(checks, op);
  if (op.vectors == Vectors::no)
    return checks.require(!op.u.present() && !op.v.present(), "u or v without vectors");
  checks.require(op.u.present() && op.v.present(), "u or v is missing");
  batch_of(checks, "u", op.u, op.m, columns_u, op.ldu, op.batch);
  return batch_of(checks, "v", op.v, op.n, columns_v, op.ldv, op.batch);
}

}  // namespace

Result<void> PotrfBatched::check() const {
  auto checks = batch_in_bounds(*this, {n, lda});
  checks.require(uplo <= Uplo::upper, "unknown uplo");
  return infos(checks, *this).result();
}
Result<void> PotrfBatched::check_parts(const Parts& parts) const {
  auto checks = with_tail(*this, parts, 1);
  list_in_tail(checks, *this, parts, 0, Access::update, "a", n, lda);
  return checks.result();
}

Result<void> PotrsBatched::check() const {
  return batch_in_bounds(*this, {n, lda, ldb})
      .require(uplo <= Uplo::upper, "unknown uplo")
      .result();
}
Result<void> PotrsBatched::check_parts(const Parts& parts) const {
  auto checks = with_tail(*this, parts, 2);
  list_in_tail(checks, *this, parts, 0, Access::read, "a", n, lda);
  list_in_tail(checks, *this, parts, 1, Access::update, "b", 1, ldb);
  return checks.result();
}

Result<void> SyevBatched::check() const {
  return hermitian_batch(*this).result();
}

Result<void> SyevjBatched::check() const {
  auto checks = hermitian_batch(*this);
  return jacobi(checks, *this).result();
}

Result<void> GesvdjBatched::check() const {
  auto checks = tall_batch(*this, std::min(m, n), m, n);
  return jacobi(checks, *this).require(m <= kMost && n <= kMost, "m or n is above 32").result();
}

Result<void> GesvdaBatched::check() const {
  auto checks = tall_batch(*this, rank, rank, rank);
  return checks.require(m >= n, "a has more columns than rows")
      .require(rank >= 1 && rank <= n, "the rank is not between 1 and n")
      .result();
}

}  // namespace troupe::solver
