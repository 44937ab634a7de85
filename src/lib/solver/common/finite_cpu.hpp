#pragma once

#include <algorithm>
#include <cmath>
#include <limits>

#include "lib/solver/cpu.hpp"

/// Checks for matrix elements that are infinite or NaN. Iterative operations make them first,
/// because LAPACK may never end with such a matrix; its potrf accepts a NaN as a pivot.
namespace troupe::host::cpu {

template <class T>
bool is_finite(const T& x) {
  return std::isfinite(std::real(x)) && std::isfinite(std::imag(x));
}
/// True if all elements of a matrix are finite.
template <class T>
bool all_finite(std::int64_t rows, std::int64_t columns, const T* a, std::int64_t lda) {
  for (std::int64_t j = 0; j < columns; ++j) {
    if (!std::all_of(a + j * lda, a + j * lda + rows, is_finite<T>)) return false;
  }
  return true;
}
/// The same of one half of a Hermitian matrix, on whose diagonal only the real parts count.
template <class T>
bool half_finite(solver::Uplo uplo, std::int64_t n, const T* a, std::int64_t lda) {
  for (std::int64_t j = 0; j < n; ++j) {
    const auto* const column = a + j * lda;
    const bool lower = uplo == solver::Uplo::lower;
    if (!std::isfinite(std::real(column[j])) ||
        !std::all_of(lower ? column + j + 1 : column, lower ? column + n : column + j,
                     is_finite<T>))
      return false;
  }
  return true;
}

/// The answer where they are not: also none of the `count` values is a number.
template <class Value>
lapack_int not_finite(Value* values, std::int64_t count) {
  std::fill_n(values, count, Value(std::numeric_limits<RealOf<Value>>::quiet_NaN()));
  return solver::kNotFinite;
}

/// Cholesky, and info: OpenBLAS takes a pivot that is not a number for a positive one.
template <class T>
lapack_int factor_definite(solver::Uplo uplo, std::int64_t n, T* a, std::int64_t lda) {
  const auto info = Lapack<T>::potrf(LAPACK_COL_MAJOR, letter(uplo), to_int(n), a, to_int(lda));
  for (std::int64_t i = 0; i < (info > 0 ? info - 1 : n); ++i) {
    if (std::isnan(std::real(a[i * (lda + 1)]))) return to_int(i + 1);
  }
  return info;
}

}  // namespace troupe::host::cpu
