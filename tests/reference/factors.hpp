#pragma once

#include <limits>

#include "dense.hpp"

/// How good factorisations are: residuals in the units of LAPACK's own tests (LAPACK Working Note
/// 41), where 30 is the most that a linear system may have.
namespace troupe::test::reference {

inline constexpr double kMostOfSystems = 30, kMostOfEigenvalues = 50, kMostOfSingularValues = 35;

/// The largest sum of absolute values of a column.
inline double norm(const Dense& a) {
  double most = 0;
  for (std::int64_t j = 0; j < a.columns; ++j) {
    double sum = 0;
    for (std::int64_t i = 0; i < a.rows; ++i) sum += std::abs(a(i, j));
    most = std::max(most, sum);
  }
  return most;
}
inline Dense operator-(const Dense& a, const Dense& b) {
  return a + Wide(-1) * b;
}
/// The norm of a difference in units of n eps times `scale`.
template <class T>
double ratio(const Dense& difference, std::int64_t n, double scale) {
  const auto most = norm(difference);
  return most == 0 ? 0
                   : most / (static_cast<double>(n) * scale *
                             static_cast<double>(std::numeric_limits<RealOf<T>>::epsilon()));
}
/// Of X as the solution of A X = B.
template <class T>
double residual(const Dense& a, const Dense& x, const Dense& b) {
  return ratio<T>(b - a * x, a.rows, norm(a) * norm(x));
}
/// Of columns that should be orthonormal.
template <class T>
double orthonormality(const Dense& q) {
  return ratio<T>(op(q, Transpose::conjugate) * q - identity(q.columns), q.rows, 1);
}

/// What is on and below the diagonal, or on and above it; with ones on it.
inline Dense triangle(const Dense& a, Uplo uplo, std::int64_t rows, std::int64_t columns,
                      bool unit = false) {
  Dense part{rows, columns};
  for (std::int64_t j = 0; j < columns; ++j) {
    for (std::int64_t i = 0; i < rows; ++i) {
      if (uplo == Uplo::lower ? i >= j : i <= j) part(i, j) = unit && i == j ? 1 : a(i, j);
    }
  }
  return part;
}
/// The matrix of which a half is stored.
inline Dense mirrored(Dense a, Uplo uplo, Symmetry symmetry = Symmetry::hermitian) {
  for (std::int64_t j = 0; j < a.columns; ++j) {
    for (std::int64_t i = 0; i < j; ++i) {
      const auto from = uplo == Uplo::lower ? a(j, i) : a(i, j);
      (uplo == Uplo::lower ? a(i, j) : a(j, i)) =
          symmetry == Symmetry::hermitian ? std::conj(from) : from;
    }
  }
  return a;
}
/// A Hermitian positive definite matrix of numbers that T has.
template <FieldElement T>
Dense definite_matrix(std::int64_t n, std::uint64_t seed) {
  auto a = symmetric_matrix<T>({Storage::full, Uplo::lower, n, 0, n}, Symmetry::hermitian, seed,
                               Data::fractions);
  for (std::int64_t i = 0; i < n; ++i) a(i, i) = widen(to_number<T>(a(i, i) + 2.0 * double(n)));
  return a;
}

}  // namespace troupe::test::reference
