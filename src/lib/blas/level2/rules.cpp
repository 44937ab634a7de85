#include "lib/blas/common/checks.hpp"

/// The checks of level 2.
namespace troupe::blas {
namespace {

/// alpha, beta and the vectors of y = alpha op(A) x + beta y, op(A) being `rows` x `columns`.
template <class Op>
Checker& product(Checker& checks, const Op& op, std::int64_t rows, std::int64_t columns) {
  checks.scalar("alpha", op.alpha).scalar("beta", op.beta);
  either_way(checks, "x", op.x, columns, op.incx);
  return either_way(checks, "y", op.y, rows, op.incy);
}

/// Checks that cuBLAS has an entry point for the symmetry and storage of the matrix.
template <class Op>
Checker& kind(Checker& checks, const Op& op) {
  symmetry_of(checks, op.dtype, op.symmetry);
  return checks.require(known(op.uplo), "unknown uplo")
      .require(op.storage == Storage::full || op.symmetry == Symmetry::hermitian ||
                   !is_complex(op.dtype),
               "complex symmetric matrices are stored in full");
}

}  // namespace

Result<void> Gemv::check() const {
  auto checks = checker(*this);
  const bool plain = transpose == Transpose::no;
  checks.require(known(transpose), "unknown transposition").matrix("a", a, m, n, lda);
  return product(checks, *this, plain ? m : n, plain ? n : m).result();
}

Result<void> Gbmv::check() const {
  auto checks = checker(*this);
  const bool plain = transpose == Transpose::no;
  checks.require(known(transpose), "unknown transposition")
      .require(m >= 0 && n >= 0, "a matrix has a negative extent")
      .require(kl >= 0 && ku >= 0 && kl < Checker::kMaxCount && ku < Checker::kMaxCount,
               "kl or ku is negative or too large");
  if (checks.ok() && m > 0) checks.matrix("a", a, kl + ku + 1, n, lda);
  return product(checks, *this, plain ? m : n, plain ? n : m).result();
}

Result<void> Symv::check() const {
  auto checks = checker(*this);
  half(kind(checks, *this), "a", a, storage, n, k, lda);
  return product(checks, *this, n, n).result();
}

Result<void> Ger::check() const {
  auto checks = checker(*this);
  checks.require(conjugate <= Conjugate::yes, "unknown conjugation").scalar("alpha", alpha);
  either_way(checks, "x", x, m, incx);
  either_way(checks, "y", y, n, incy);
  return checks.matrix("a", a, m, n, lda).result();
}

Result<void> Syr::check() const {
  auto checks = checker(*this);
  kind(checks, *this).require(storage != Storage::banded, "it is not banded");
  if (checks.ok()) {
    scalar(checks, "alpha", alpha,
           symmetry == Symmetry::hermitian ? real_type(dtype) : dtype.value);
  }
  either_way(checks, "x", x, n, incx);
  return half(checks, "a", a, storage, n, 0, lda).result();
}

Result<void> Syr2::check() const {
  auto checks = checker(*this);
  kind(checks, *this).require(storage != Storage::banded, "it is not banded");
  checks.scalar("alpha", alpha);
  either_way(checks, "x", x, n, incx);
  either_way(checks, "y", y, n, incy);
  return half(checks, "a", a, storage, n, 0, lda).result();
}

Result<void> Trmv::check() const {
  auto checks = checker(*this);
  checks.require(task <= Task::solve, "neither a product nor a solution")
      .require(known(uplo), "unknown uplo")
      .require(known(transpose), "unknown transposition")
      .require(known(diagonal), "unknown kind of diagonal");
  half(checks, "a", a, storage, n, k, lda);
  return either_way(checks, "x", x, n, incx).result();
}

}  // namespace troupe::blas
