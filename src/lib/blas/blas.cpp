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

Result<void> Gemm::check() const {
  const bool plain_a = transpose_a == Transpose::no, plain_b = transpose_b == Transpose::no;
  return checker(*this)
      .require(
          (plain_a || transpose_a == Transpose::yes) && (plain_b || transpose_b == Transpose::yes),
          "unknown transposition")
      .scalar("alpha", alpha)
      .scalar("beta", beta)
      .matrix("a", a, plain_a ? m : k, plain_a ? k : m, lda)
      .matrix("b", b, plain_b ? k : n, plain_b ? n : k, ldb)
      .matrix("c", c, m, n, ldc)
      .result();
}

}  // namespace troupe::blas
