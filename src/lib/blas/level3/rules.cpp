#include "lib/blas/common/checks.hpp"

/// The checks of level 3.
namespace troupe::blas {
namespace {

/// The matrix `name` of which op() is `rows` x `columns`.
Checker& transposed(Checker& checks, std::string_view name, const Operand& operand,
                    Transpose transpose, std::int64_t rows, std::int64_t columns,
                    std::int64_t leading) {
  checks.require(known(transpose), "unknown transposition");
  return transpose == Transpose::no ? checks.matrix(name, operand, rows, columns, leading)
                                    : checks.matrix(name, operand, columns, rows, leading);
}

/// alpha, beta, the half of C and what is transposed of syrk and its like.
template <class Op>
Checker& rank_update(Checker& checks, const Op& op, DType alpha) {
  symmetry_of(checks, op.dtype, op.symmetry).require(known(op.uplo), "unknown uplo");
  const bool hermitian = op.symmetry == Symmetry::hermitian;
  if (is_complex(op.dtype)) {
    checks.require(op.transpose == Transpose::no ||
                       op.transpose == (hermitian ? Transpose::conjugate : Transpose::yes),
                   hermitian ? "a transposition that is not Hermitian"
                             : "a transposition that is not symmetric");
  }
  if (checks.ok()) {
    scalar(checks, "alpha", op.alpha, alpha);
    scalar(checks, "beta", op.beta, hermitian ? real_type(op.dtype) : op.dtype.value);
  }
  return checks.matrix("c", op.c, op.n, op.n, op.ldc);
}

template <class Op>
Checker& triangle(Checker& checks, const Op& op) {
  const auto order = op.side == Side::left ? op.m : op.n;
  return checks.require(known(op.side), "unknown side")
      .require(known(op.uplo), "unknown uplo")
      .require(known(op.transpose), "unknown transposition")
      .require(known(op.diagonal), "unknown kind of diagonal")
      .scalar("alpha", op.alpha)
      .matrix("a", op.a, order, order, op.lda)
      .matrix("b", op.b, op.m, op.n, op.ldb);
}

}  // namespace

Result<void> Gemm::check() const {
  auto checks = checker(*this);
  if (checks.ok()) {
    scalar(checks, "alpha", alpha, scalar_type(dtype));
    scalar(checks, "beta", beta, scalar_type(dtype));
  }
  transposed(checks, "a", a, transpose_a, m, k, lda);
  transposed(checks, "b", b, transpose_b, k, n, ldb);
  return checks.matrix("c", c, m, n, ldc).result();
}

Result<void> Symm::check() const {
  auto checks = checker(*this);
  const auto order = side == Side::left ? m : n;
  symmetry_of(checks, dtype, symmetry)
      .require(known(side), "unknown side")
      .require(known(uplo), "unknown uplo");
  return checks.scalar("alpha", alpha)
      .scalar("beta", beta)
      .matrix("a", a, order, order, lda)
      .matrix("b", b, m, n, ldb)
      .matrix("c", c, m, n, ldc)
      .result();
}

Result<void> Syrk::check() const {
  auto checks = checker(*this);
  if (!checks.ok()) return checks.result();
  rank_update(checks, *this, symmetry == Symmetry::hermitian ? real_type(dtype) : dtype.value);
  return transposed(checks, "a", a, transpose, n, k, lda).result();
}

Result<void> Syr2k::check() const {
  auto checks = checker(*this);
  if (!checks.ok()) return checks.result();
  rank_update(checks, *this, dtype).require(products <= Products::one, "unknown products");
  transposed(checks, "a", a, transpose, n, k, lda);
  return transposed(checks, "b", b, transpose, n, k, ldb).result();
}

Result<void> Trmm::check() const {
  auto checks = checker(*this);
  return triangle(checks, *this)
      .matrix("c", c, m, n, ldc)
      .require(ldb == ldc || !same_range(b, c), "in place ldb and ldc are equal")
      .result();
}

Result<void> Trsm::check() const {
  auto checks = checker(*this);
  return triangle(checks, *this).result();
}

Result<void> Geam::check() const {
  auto checks = checker(*this);
  checks.scalar("alpha", alpha).scalar("beta", beta);
  transposed(checks, "a", a, transpose_a, m, n, lda);
  transposed(checks, "b", b, transpose_b, m, n, ldb);
  constexpr auto kInPlaceOnly =
      "in place a matrix is not transposed and has the same leading "
      "dimension";
  return checks.matrix("c", c, m, n, ldc)
      .require(!same_range(a, c) || (transpose_a == Transpose::no && lda == ldc), kInPlaceOnly)
      .require(!same_range(b, c) || (transpose_b == Transpose::no && ldb == ldc), kInPlaceOnly)
      .result();
}

Result<void> Dgmm::check() const {
  auto checks = checker(*this);
  checks.require(known(side), "unknown side").matrix("a", a, m, n, lda);
  either_way(checks, "x", x, side == Side::left ? m : n, incx);
  return checks.matrix("c", c, m, n, ldc)
      .require(lda == ldc || !same_range(a, c), "in place lda and ldc are equal")
      .result();
}

Result<void> Tpttr::check() const {
  auto checks = checker(*this);
  checks.require(known(uplo), "unknown uplo");
  half(checks, "packed", packed, Storage::packed, n, 0, 0);
  return checks.matrix("a", a, n, n, lda).result();
}

Result<void> Trttp::check() const {
  auto checks = checker(*this);
  checks.require(known(uplo), "unknown uplo");
  half(checks, "packed", packed, Storage::packed, n, 0, 0);
  return checks.matrix("a", a, n, n, lda).result();
}

}  // namespace troupe::blas
