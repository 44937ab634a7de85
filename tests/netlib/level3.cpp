#include "shim.hpp"

namespace troupe::netlib {
namespace {

template <class T>
void gemm(const char* transa, const char* transb, int m, int n, int k, T alpha, const T* a, int lda,
          const T* b, int ldb, T beta, T* c, int ldc) {
  auto& on = device();
  const auto ta = transpose_of(transa), tb = transpose_of(transb);
  const bool plain_a = ta == Transpose::no, plain_b = tb == Transpose::no;
  const Matrix<const T> da(on, a, plain_a ? m : k, plain_a ? k : m, lda),
      db(on, b, plain_b ? k : n, plain_b ? n : k, ldb);
  const Matrix<T> dc(on, c, m, n, ldc);
  on.blas().gemm(ta, tb, alpha, da.ref(), db.ref(), beta, dc.ref()).get();
  dc.download();
}
template <class T>
void symm(bool hermitian, const char* side, const char* uplo, int m, int n, T alpha, const T* a,
          int lda, const T* b, int ldb, T beta, T* c, int ldc) {
  auto& on = device();
  const int order = side_of(side) == Side::left ? m : n;
  const Matrix<const T> da(on, a, order, order, lda), db(on, b, m, n, ldb);
  const Matrix<T> dc(on, c, m, n, ldc);
  auto blas = on.blas();
  if constexpr (ComplexElement<T>) {
    if (hermitian)
      blas.hemm(side_of(side), uplo_of(uplo), alpha, da.ref(), db.ref(), beta, dc.ref()).get();
  }
  if (!hermitian)
    blas.symm(side_of(side), uplo_of(uplo), alpha, da.ref(), db.ref(), beta, dc.ref()).get();
  dc.download();
}
/// F is the type of the factors: a real one makes the matrix Hermitian.
template <class T, class F>
void syrk(const char* uplo, const char* trans, int n, int k, F alpha, const T* a, int lda, F beta,
          T* c, int ldc) {
  auto& on = device();
  const auto transpose = transpose_of(trans);
  const bool plain = transpose == Transpose::no;
  const Matrix<const T> da(on, a, plain ? n : k, plain ? k : n, lda);
  const Matrix<T> dc(on, c, n, n, ldc);
  if constexpr (std::is_same_v<T, F>) {
    on.blas().syrk(uplo_of(uplo), transpose, alpha, da.ref(), beta, dc.ref()).get();
  } else {
    on.blas().herk(uplo_of(uplo), transpose, alpha, da.ref(), beta, dc.ref()).get();
  }
  dc.download();
}
template <class T, class F>
void syr2k(const char* uplo, const char* trans, int n, int k, T alpha, const T* a, int lda,
           const T* b, int ldb, F beta, T* c, int ldc) {
  auto& on = device();
  const auto transpose = transpose_of(trans);
  const bool plain = transpose == Transpose::no;
  const Matrix<const T> da(on, a, plain ? n : k, plain ? k : n, lda),
      db(on, b, plain ? n : k, plain ? k : n, ldb);
  const Matrix<T> dc(on, c, n, n, ldc);
  if constexpr (std::is_same_v<T, F>) {
    on.blas().syr2k(uplo_of(uplo), transpose, alpha, da.ref(), db.ref(), beta, dc.ref()).get();
  } else {
    on.blas().her2k(uplo_of(uplo), transpose, alpha, da.ref(), db.ref(), beta, dc.ref()).get();
  }
  dc.download();
}
template <class T>
void trmm(bool solve, const char* side, const char* uplo, const char* trans, const char* diag,
          int m, int n, T alpha, const T* a, int lda, T* b, int ldb) {
  auto& on = device();
  const int order = side_of(side) == Side::left ? m : n;
  const Matrix<const T> da(on, a, order, order, lda);
  const Matrix<T> db(on, b, m, n, ldb);
  auto blas = on.blas();
  const auto half = uplo_of(uplo);
  const auto transpose = transpose_of(trans);
  const auto diagonal = diagonal_of(diag);
  (solve ? blas.trsm(side_of(side), half, transpose, diagonal, alpha, da.ref(), db.ref())
         : blas.trmm(side_of(side), half, transpose, diagonal, alpha, da.ref(), db.ref(), db.ref()))
      .get();
  db.download();
}

}  // namespace
}  // namespace troupe::netlib

using namespace troupe::netlib;
using troupe::RealOf;

extern "C" {

#define TROUPE_LEVEL3(T, s)                                                                       \
  void s##gemm_(const char* ta, const char* tb, const int* m, const int* n, const int* k,         \
                const T* alpha, const T* a, const int* lda, const T* b, const int* ldb,           \
                const T* beta, T* c, const int* ldc) {                                            \
    gemm<T>(ta, tb, *m, *n, *k, *alpha, a, *lda, b, *ldb, *beta, c, *ldc);                        \
  }                                                                                               \
  void s##symm_(const char* side, const char* uplo, const int* m, const int* n, const T* alpha,   \
                const T* a, const int* lda, const T* b, const int* ldb, const T* beta, T* c,      \
                const int* ldc) {                                                                 \
    symm<T>(false, side, uplo, *m, *n, *alpha, a, *lda, b, *ldb, *beta, c, *ldc);                 \
  }                                                                                               \
  void s##syrk_(const char* uplo, const char* t, const int* n, const int* k, const T* alpha,      \
                const T* a, const int* lda, const T* beta, T* c, const int* ldc) {                \
    syrk<T, T>(uplo, t, *n, *k, *alpha, a, *lda, *beta, c, *ldc);                                 \
  }                                                                                               \
  void s##syr2k_(const char* uplo, const char* t, const int* n, const int* k, const T* alpha,     \
                 const T* a, const int* lda, const T* b, const int* ldb, const T* beta, T* c,     \
                 const int* ldc) {                                                                \
    syr2k<T, T>(uplo, t, *n, *k, *alpha, a, *lda, b, *ldb, *beta, c, *ldc);                       \
  }                                                                                               \
  void s##trmm_(const char* side, const char* uplo, const char* t, const char* d, const int* m,   \
                const int* n, const T* alpha, const T* a, const int* lda, T* b, const int* ldb) { \
    trmm<T>(false, side, uplo, t, d, *m, *n, *alpha, a, *lda, b, *ldb);                           \
  }                                                                                               \
  void s##trsm_(const char* side, const char* uplo, const char* t, const char* d, const int* m,   \
                const int* n, const T* alpha, const T* a, const int* lda, T* b, const int* ldb) { \
    trmm<T>(true, side, uplo, t, d, *m, *n, *alpha, a, *lda, b, *ldb);                            \
  }
TROUPE_FOR_NUMBERS(TROUPE_LEVEL3)

#define TROUPE_LEVEL3_COMPLEX(T, s)                                                              \
  void s##hemm_(const char* side, const char* uplo, const int* m, const int* n, const T* alpha,  \
                const T* a, const int* lda, const T* b, const int* ldb, const T* beta, T* c,     \
                const int* ldc) {                                                                \
    symm<T>(true, side, uplo, *m, *n, *alpha, a, *lda, b, *ldb, *beta, c, *ldc);                 \
  }                                                                                              \
  void s##herk_(const char* uplo, const char* t, const int* n, const int* k,                     \
                const RealOf<T>* alpha, const T* a, const int* lda, const RealOf<T>* beta, T* c, \
                const int* ldc) {                                                                \
    syrk<T, RealOf<T>>(uplo, t, *n, *k, *alpha, a, *lda, *beta, c, *ldc);                        \
  }                                                                                              \
  void s##her2k_(const char* uplo, const char* t, const int* n, const int* k, const T* alpha,    \
                 const T* a, const int* lda, const T* b, const int* ldb, const RealOf<T>* beta,  \
                 T* c, const int* ldc) {                                                         \
    syr2k<T, RealOf<T>>(uplo, t, *n, *k, *alpha, a, *lda, b, *ldb, *beta, c, *ldc);              \
  }
TROUPE_FOR_COMPLEX(TROUPE_LEVEL3_COMPLEX)
}
