#include "lib/blas/common/checks.hpp"

/// The checks of batches.
namespace troupe::blas {
namespace {

/// What operations like Gemm have in common, without their matrices.
template <class Op>
Checker scalars(const Op& op) {
  auto checks = checker(op);
  checks.require(known(op.transpose_a) && known(op.transpose_b), "unknown transposition");
  if (checks.ok()) {
    scalar(checks, "alpha", op.alpha, scalar_type(op.dtype));
    scalar(checks, "beta", op.beta, scalar_type(op.dtype));
  }
  return checks;
}

/// One matrix each of A, B and C.
template <class Op>
void matrices(Checker& checks, const Op& op, const Operand& a, const Operand& b, const Operand& c) {
  const bool plain_a = op.transpose_a == Transpose::no, plain_b = op.transpose_b == Transpose::no;
  checks.matrix("a", a, plain_a ? op.m : op.k, plain_a ? op.k : op.m, op.lda)
      .matrix("b", b, plain_b ? op.k : op.n, plain_b ? op.n : op.k, op.ldb)
      .matrix("c", c, op.m, op.n, op.ldc);
}

}  // namespace

Result<void> GemmBatched::check() const {
  auto checks = scalars(*this);
  checks.require(batch >= 0 && batch <= kMaxBatch, "the batch is negative or above 2^31")
      .require(stride_a >= 0 && stride_b >= 0 && stride_c >= 0, "a stride is negative");
  if (!a.present() && !b.present() && !c.present()) return checks.result();  // they are in the tail
  matrices(checks, *this, a, b, c);
  if (!checks.ok()) return checks.result();
  const auto [span_a, span_b, span_c] = spans_of(*this);
  checks.require(batch <= 1 || stride_c >= span_c, "the matrices of c overlap");
  strided(checks, "a", a, span_a, stride_a, batch);
  strided(checks, "b", b, span_b, stride_b, batch);
  strided(checks, "c", c, span_c, stride_c, batch);
  return checks.result();
}

Result<void> GemmBatched::check_parts(const Parts& parts) const {
  auto checks = checker(*this);
  if (parts.tail.empty()) {
    return checks
        .require(batch == 0 || (a.present() && b.present() && c.present()), "a, b or c is missing")
        .result();
  }
  checks.require(!a.present() && !b.present() && !c.present(), "matrices in the tail and elsewhere")
      .require(std::ssize(parts.tail) == 3 * batch,
               std::to_string(parts.tail.size()) + " matrices, not " + std::to_string(3 * batch));
  if (!checks.ok()) return checks.result();
  const auto count = static_cast<std::size_t>(batch);
  for (std::size_t i = 0; i < parts.tail.size(); ++i) {
    const auto& part = parts.tail[i];
    checks.require(part.tag == i / count, "a matrix is out of order")
        .require(part.access == (part.tag == of_c ? access_of_c() : Access::read),
                 "a matrix with the wrong access");
  }
  for (std::size_t i = 0; i < count && checks.ok(); ++i) {
    matrices(checks, *this, parts.tail[i].range, parts.tail[count + i].range,
             parts.tail[2 * count + i].range);
  }
  return checks.result();
}

Result<void> GemmIndexed::check() const {
  auto checks = scalars(*this);
  checks.require(batch >= 0 && batch <= kMaxBatch, "the batch is negative or above 2^31");
  matrices(checks, *this, a, b, c);
  if (checks.ok()) checks.holds("offsets", offsets, 3 * batch, sizeof(std::int64_t));
  return checks.holds("outside", outside, 1, sizeof(std::int64_t)).result();
}

Result<void> GemmIndexed::verdict(const std::byte* cell) const {
  std::int64_t count = 0;
  std::memcpy(&count, cell, sizeof count);
  if (count == 0) return {};
  return Error{
      Errc::invalid, 0,
      std::string(kName) + ": " + std::to_string(count) + " offsets lie outside of their operand"};
}

}  // namespace troupe::blas
