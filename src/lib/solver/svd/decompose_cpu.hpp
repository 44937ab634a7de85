#pragma once

#include "lib/solver/common/finite_cpu.hpp"

/// Singular values as operations want them, by LAPACK's gesdd.
namespace troupe::host::cpu {

template <class T>
T conjugate(const T& x) {
  if constexpr (ComplexElement<T>) {
    return std::conj(x);
  } else {
    return x;
  }
}

/// A = U diag(s) V^H; u and v are nullptr where no vectors are wanted. Destroys a and gives info.
template <class T>
lapack_int decompose(std::int64_t m, std::int64_t n, T* a, std::int64_t lda, RealOf<T>* s, T* u,
                     std::int64_t ldu, T* v, std::int64_t ldv, solver::Extent extent) {
  if (!all_finite(m, n, a, lda)) return not_finite(s, std::min(m, n));
  const bool vectors = u != nullptr, full = extent == solver::Extent::full;
  const auto rows = full ? n : std::min(m, n);  // of V^H
  std::vector<T> vt(vectors ? static_cast<std::size_t>(rows * n) : 1);
  const char wanted = full ? 'A' : 'S';
  const auto info =
      Lapack<T>::gesdd(LAPACK_COL_MAJOR, vectors ? wanted : 'N', to_int(m), to_int(n), a,
                       to_int(lda), s, u, to_int(vectors ? ldu : m), vt.data(), to_int(rows));
  for (std::int64_t i = 0; i < rows && vectors; ++i) {
    for (std::int64_t j = 0; j < n; ++j)
      v[i * ldv + j] = conjugate(vt[static_cast<std::size_t>(j * rows + i)]);
  }
  return info;
}

/// The first `rank` of them; u and v may be nullptr one by one.
template <class T>
lapack_int decompose_first(std::int64_t m, std::int64_t n, std::int64_t rank, T* a,
                           std::int64_t lda, RealOf<T>* s, T* u, std::int64_t ldu, T* v,
                           std::int64_t ldv) {
  const auto k = std::min(m, n);
  std::vector<RealOf<T>> values(static_cast<std::size_t>(k));
  std::vector<T> left(static_cast<std::size_t>(m * k)), right(static_cast<std::size_t>(n * k));
  const auto info = decompose(m, n, a, lda, values.data(), left.data(), m, right.data(), n,
                              solver::Extent::economy);
  std::copy_n(values.begin(), rank, s);
  if (u != nullptr) copy_matrix(m, rank, left.data(), m, u, ldu);
  if (v != nullptr) copy_matrix(n, rank, right.data(), n, v, ldv);
  return info;
}

}  // namespace troupe::host::cpu
