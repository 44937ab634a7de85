#pragma once

#include "lib/solver/common/finite_cpu.hpp"

/// Eigenvalues, and vectors in place of a, as all operations want them that want all.
namespace troupe::host::cpu {

/// Computes the eigenvalues of a Hermitian matrix a. Returns info.
template <class T, class Op>
lapack_int eigenvalues(const Op& op, T* a, RealOf<T>* w) {
  if (!half_finite(op.uplo, op.n, a, op.lda)) return not_finite(w, op.n);
  return Lapack<T>::evd(LAPACK_COL_MAJOR, letter(op.vectors), letter(op.uplo), to_int(op.n), a,
                        to_int(op.lda), w);
}
/// The same of the generalised problem with a positive definite matrix b.
template <class T, class Op>
lapack_int eigenvalues(const Op& op, T* a, T* b, RealOf<T>* w) {
  if (!half_finite(op.uplo, op.n, a, op.lda) || !half_finite(op.uplo, op.n, b, op.ldb))
    return not_finite(w, op.n);
  return Lapack<T>::gvd(LAPACK_COL_MAJOR, static_cast<lapack_int>(op.problem), letter(op.vectors),
                        letter(op.uplo), to_int(op.n), a, to_int(op.lda), b, to_int(op.ldb), w);
}

}  // namespace troupe::host::cpu
