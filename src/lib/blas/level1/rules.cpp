#include "lib/blas/common/checks.hpp"

/// The checks of level 1.
namespace troupe::blas {
namespace {

template <class Op>
Checker& two_vectors(Checker& checks, const Op& op) {
  either_way(checks, "x", op.x, op.n, op.incx);
  return either_way(checks, "y", op.y, op.n, op.incy);
}

}  // namespace

Result<void> Axpy::check() const {
  auto checks = checker(*this);
  scalar(checks, "alpha", alpha, scalar_type(dtype));
  two_vectors(checks, *this);
  return checks
      .require(incx == incy || !same_range(x, y), "x and y are the same with other increments")
      .result();
}

Result<void> Dot::check() const {
  auto checks = checker(*this);
  checks.require(conjugate <= Conjugate::yes, "unknown conjugation");
  return two_vectors(checks, *this).holds("result", result, std::int64_t{1}).result();
}

Result<void> Nrm2::check() const {
  auto checks = checker(*this);
  checks.vector("x", x, n, incx);
  if (checks.ok()) checks.holds("result", result, 1, size_of(real_type(dtype)));
  return checks.result();
}

Result<void> Asum::check() const {
  auto checks = checker(*this);
  checks.vector("x", x, n, incx);
  if (checks.ok()) checks.holds("result", result, 1, size_of(real_type(dtype)));
  return checks.result();
}

Result<void> Iamax::check() const {
  auto checks = checker(*this);
  checks.require(which <= Which::smallest, "neither the largest nor the smallest")
      .vector("x", x, n, incx);
  return checks.holds("result", result, 1, sizeof(std::int64_t)).result();
}

Result<void> Scal::check() const {
  auto checks = checker(*this);
  checks.require(kind <= ScalarKind::real, "unknown kind of scalar");
  if (checks.ok()) {
    scalar(checks, "alpha", alpha,
           kind == ScalarKind::real ? real_type(scalar_type(dtype)) : scalar_type(dtype));
  }
  return checks.vector("x", x, n, incx).result();
}

Result<void> Copy::check() const {
  auto checks = checker(*this);
  return two_vectors(checks, *this).result();
}

Result<void> Swap::check() const {
  auto checks = checker(*this);
  return two_vectors(checks, *this).result();
}

Result<void> Rot::check() const {
  auto checks = checker(*this);
  checks.require(sine <= ScalarKind::real, "unknown kind of sine");
  if (checks.ok()) {
    scalar(checks, "c", c, real_type(dtype));
    scalar(checks, "s", s, sine == ScalarKind::real ? real_type(dtype) : dtype.value);
  }
  return two_vectors(checks, *this).result();
}

Result<void> Rotg::check() const {
  auto checks = checker(*this);
  checks.holds("a", a, std::int64_t{1}).holds("b", b, std::int64_t{1});
  if (checks.ok()) checks.holds("c", c, 1, size_of(real_type(dtype)));
  return checks.holds("s", s, std::int64_t{1}).result();
}

Result<void> Rotm::check() const {
  auto checks = checker(*this);
  return two_vectors(checks, *this).holds("param", param, std::int64_t{5}).result();
}

Result<void> Rotmg::check() const {
  return checker(*this)
      .holds("d1", d1, std::int64_t{1})
      .holds("d2", d2, std::int64_t{1})
      .holds("x1", x1, std::int64_t{1})
      .holds("y1", y1, std::int64_t{1})
      .holds("param", param, std::int64_t{5})
      .result();
}

}  // namespace troupe::blas
