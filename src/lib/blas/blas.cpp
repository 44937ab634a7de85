#include <troupe/lib/blas.hpp>

#include "common/wire/checker.hpp"

namespace troupe::blas {

using wire::checker;

Result<void> Axpy::check() const {
  return checker(*this)
      .scalar("alpha", alpha)
      .vector("x", x, n, incx)
      .vector("y", y, n, incy)
      .result();
}

Result<void> Dot::check() const {
  return checker(*this)
      .vector("x", x, n, incx)
      .vector("y", y, n, incy)
      .holds("result", result, std::int64_t{1})
      .result();
}

Result<void> Nrm2::check() const {
  return checker(*this).vector("x", x, n, incx).holds("result", result, std::int64_t{1}).result();
}

Result<void> Scal::check() const {
  return checker(*this).scalar("alpha", alpha).vector("x", x, n, incx).result();
}

Result<void> Copy::check() const {
  return checker(*this).vector("x", x, n, incx).vector("y", y, n, incy).result();
}

Result<void> Gemv::check() const {
  const bool plain = transpose == Transpose::no;
  return checker(*this)
      .require(plain || transpose == Transpose::yes, "unknown transposition")
      .scalar("alpha", alpha)
      .scalar("beta", beta)
      .matrix("a", a, m, n, lda)
      .vector("x", x, plain ? n : m, incx)
      .vector("y", y, plain ? m : n, incy)
      .result();
}

namespace {

/// What operations like Gemm have in common, without their matrices.
template <class Op>
wire::Checker factors(const Op& op) {
  auto checks = checker(op);
  checks
      .require(op.transpose_a <= Transpose::yes && op.transpose_b <= Transpose::yes,
               "unknown transposition")
      .scalar("alpha", op.alpha)
      .scalar("beta", op.beta);
  return checks;
}

/// One matrix each of A, B and C.
template <class Op>
void matrices(wire::Checker& checks, const Op& op, const Operand& a, const Operand& b,
              const Operand& c) {
  const bool plain_a = op.transpose_a == Transpose::no, plain_b = op.transpose_b == Transpose::no;
  checks.matrix("a", a, plain_a ? op.m : op.k, plain_a ? op.k : op.m, op.lda)
      .matrix("b", b, plain_b ? op.k : op.n, plain_b ? op.n : op.k, op.ldb)
      .matrix("c", c, op.m, op.n, op.ldc);
}

constexpr std::int64_t kMaxBatch = std::int64_t{1} << 31;

/// `batch` matrices of `span` elements, a stride apart.
void strided(wire::Checker& checks, std::string_view name, const Operand& operand,
             std::int64_t span, std::int64_t stride, std::int64_t batch) {
  std::int64_t last = 0;
  if (batch > 0 && (__builtin_mul_overflow(batch - 1, stride, &last) ||
                    last > wire::Checker::kMaxCount - span)) {
    checks.require(false, std::string(name) + " is too large");
  }
  if (batch > 0 && span > 0) checks.holds(name, operand, last + span);
}

}  // namespace

Result<void> Gemm::check() const {
  auto checks = factors(*this);
  matrices(checks, *this, a, b, c);
  return checks.result();
}

Result<void> GemmBatched::check() const {
  auto checks = factors(*this);
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
  auto checks = factors(*this);
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
