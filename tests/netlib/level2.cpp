#include "shim.hpp"

namespace troupe::netlib {
namespace {

/// Runs call(x, y), of vectors that are read and updated.
template <class T, class Call>
void with_vectors(Device& on, const T* x, int nx, int incx, T* y, int ny, int incy, Call&& call) {
  const Vector<const T> u(on, x, nx, incx);
  const Vector<T> v(on, y, ny, incy);
  call(u.ref(), v.ref()).get();
  v.download();
}
template <class T>
void gemv(const char* trans, int m, int n, T alpha, const T* a, int lda, const T* x, int incx,
          T beta, T* y, int incy) {
  if (m == 0 || n == 0) return;  // then y stays as it is, and has no length
  auto& on = device();
  const auto transpose = transpose_of(trans);
  const bool plain = transpose == Transpose::no;
  const Matrix<const T> matrix(on, a, m, n, lda);
  with_vectors(on, x, plain ? n : m, incx, y, plain ? m : n, incy,
               [&](const auto& u, const auto& v) {
                 return on.blas().gemv(transpose, alpha, matrix.ref(), u, beta, v);
               });
}
template <class T>
void gbmv(const char* trans, int m, int n, int kl, int ku, T alpha, const T* a, int lda, const T* x,
          int incx, T beta, T* y, int incy) {
  if (m == 0 || n == 0) return;
  auto& on = device();
  const auto transpose = transpose_of(trans);
  const bool plain = transpose == Transpose::no;
  const Matrix<const T> matrix(on, a, kl + ku + 1, n, lda);
  with_vectors(on, x, plain ? n : m, incx, y, plain ? m : n, incy,
               [&](const auto& u, const auto& v) {
                 return on.blas().gbmv(transpose, m, kl, ku, alpha, matrix.ref(), u, beta, v);
               });
}
template <class T>
void symv(const char* uplo, int n, T alpha, const T* a, int lda, const T* x, int incx, T beta, T* y,
          int incy) {
  auto& on = device();
  const Matrix<const T> matrix(on, a, n, n, lda);
  with_vectors(on, x, n, incx, y, n, incy, [&](const auto& u, const auto& v) {
    if constexpr (ComplexElement<T>) {
      return on.blas().hemv(uplo_of(uplo), alpha, matrix.ref(), u, beta, v);
    } else {
      return on.blas().symv(uplo_of(uplo), alpha, matrix.ref(), u, beta, v);
    }
  });
}
template <class T>
void sbmv(const char* uplo, int n, int k, T alpha, const T* a, int lda, const T* x, int incx,
          T beta, T* y, int incy) {
  auto& on = device();
  const Matrix<const T> matrix(on, a, k + 1, n, lda);
  with_vectors(on, x, n, incx, y, n, incy, [&](const auto& u, const auto& v) {
    if constexpr (ComplexElement<T>) {
      return on.blas().hbmv(uplo_of(uplo), k, alpha, matrix.ref(), u, beta, v);
    } else {
      return on.blas().sbmv(uplo_of(uplo), k, alpha, matrix.ref(), u, beta, v);
    }
  });
}
template <class T>
void spmv(const char* uplo, int n, T alpha, const T* a, const T* x, int incx, T beta, T* y,
          int incy) {
  auto& on = device();
  const Array<const T> matrix(on, a, blas::packed_size(n));
  with_vectors(on, x, n, incx, y, n, incy, [&](const auto& u, const auto& v) {
    if constexpr (ComplexElement<T>) {
      return on.blas().hpmv(uplo_of(uplo), alpha, matrix.ref(), u, beta, v);
    } else {
      return on.blas().spmv(uplo_of(uplo), alpha, matrix.ref(), u, beta, v);
    }
  });
}
template <class T>
void ger(int m, int n, T alpha, const T* x, int incx, const T* y, int incy, T* a, int lda,
         bool conjugated = false) {
  auto& on = device();
  const Vector<const T> u(on, x, m, incx), v(on, y, n, incy);
  const Matrix<T> matrix(on, a, m, n, lda);
  if constexpr (ComplexElement<T>) {
    (conjugated ? on.blas().gerc(alpha, u.ref(), v.ref(), matrix.ref())
                : on.blas().ger(alpha, u.ref(), v.ref(), matrix.ref()))
        .get();
  } else {
    on.blas().ger(alpha, u.ref(), v.ref(), matrix.ref()).get();
  }
  matrix.download();
}
template <class T>
void syr(const char* uplo, int n, RealOf<T> alpha, const T* x, int incx, T* a, int lda) {
  auto& on = device();
  const Vector<const T> u(on, x, n, incx);
  const Matrix<T> matrix(on, a, n, n, lda);
  if constexpr (ComplexElement<T>) {
    on.blas().her(uplo_of(uplo), alpha, u.ref(), matrix.ref()).get();
  } else {
    on.blas().syr(uplo_of(uplo), alpha, u.ref(), matrix.ref()).get();
  }
  matrix.download();
}
template <class T>
void spr(const char* uplo, int n, RealOf<T> alpha, const T* x, int incx, T* a) {
  auto& on = device();
  const Vector<const T> u(on, x, n, incx);
  const Array<T> matrix(on, a, blas::packed_size(n));
  if constexpr (ComplexElement<T>) {
    on.blas().hpr(uplo_of(uplo), alpha, u.ref(), matrix.ref()).get();
  } else {
    on.blas().spr(uplo_of(uplo), alpha, u.ref(), matrix.ref()).get();
  }
  matrix.download();
}
template <class T>
void syr2(const char* uplo, int n, T alpha, const T* x, int incx, const T* y, int incy, T* a,
          int lda) {
  auto& on = device();
  const Vector<const T> u(on, x, n, incx), v(on, y, n, incy);
  const Matrix<T> matrix(on, a, n, n, lda);
  if constexpr (ComplexElement<T>) {
    on.blas().her2(uplo_of(uplo), alpha, u.ref(), v.ref(), matrix.ref()).get();
  } else {
    on.blas().syr2(uplo_of(uplo), alpha, u.ref(), v.ref(), matrix.ref()).get();
  }
  matrix.download();
}
template <class T>
void spr2(const char* uplo, int n, T alpha, const T* x, int incx, const T* y, int incy, T* a) {
  auto& on = device();
  const Vector<const T> u(on, x, n, incx), v(on, y, n, incy);
  const Array<T> matrix(on, a, blas::packed_size(n));
  if constexpr (ComplexElement<T>) {
    on.blas().hpr2(uplo_of(uplo), alpha, u.ref(), v.ref(), matrix.ref()).get();
  } else {
    on.blas().spr2(uplo_of(uplo), alpha, u.ref(), v.ref(), matrix.ref()).get();
  }
  matrix.download();
}
template <class T>
void trmv(bool solve, const char* uplo, const char* trans, const char* diag, int n, const T* a,
          int lda, T* x, int incx) {
  auto& on = device();
  const Matrix<const T> matrix(on, a, n, n, lda);
  const Vector<T> u(on, x, n, incx);
  auto blas = on.blas();
  const auto half = uplo_of(uplo);
  const auto transpose = transpose_of(trans);
  const auto diagonal = diagonal_of(diag);
  (solve ? blas.trsv(half, transpose, diagonal, matrix.ref(), u.ref())
         : blas.trmv(half, transpose, diagonal, matrix.ref(), u.ref()))
      .get();
  u.download();
}
template <class T>
void tbmv(bool solve, const char* uplo, const char* trans, const char* diag, int n, int k,
          const T* a, int lda, T* x, int incx) {
  auto& on = device();
  const Matrix<const T> matrix(on, a, k + 1, n, lda);
  const Vector<T> u(on, x, n, incx);
  auto blas = on.blas();
  const auto half = uplo_of(uplo);
  const auto transpose = transpose_of(trans);
  const auto diagonal = diagonal_of(diag);
  (solve ? blas.tbsv(half, transpose, diagonal, k, matrix.ref(), u.ref())
         : blas.tbmv(half, transpose, diagonal, k, matrix.ref(), u.ref()))
      .get();
  u.download();
}
template <class T>
void tpmv(bool solve, const char* uplo, const char* trans, const char* diag, int n, const T* a,
          T* x, int incx) {
  auto& on = device();
  const Array<const T> matrix(on, a, blas::packed_size(n));
  const Vector<T> u(on, x, n, incx);
  auto blas = on.blas();
  const auto half = uplo_of(uplo);
  const auto transpose = transpose_of(trans);
  const auto diagonal = diagonal_of(diag);
  (solve ? blas.tpsv(half, transpose, diagonal, matrix.ref(), u.ref())
         : blas.tpmv(half, transpose, diagonal, matrix.ref(), u.ref()))
      .get();
  u.download();
}

}  // namespace
}  // namespace troupe::netlib

using namespace troupe::netlib;
using troupe::RealOf;

extern "C" {

#define TROUPE_LEVEL2(T, s)                                                                  \
  void s##gemv_(const char* t, const int* m, const int* n, const T* alpha, const T* a,       \
                const int* lda, const T* x, const int* incx, const T* beta, T* y,            \
                const int* incy) {                                                           \
    gemv<T>(t, *m, *n, *alpha, a, *lda, x, *incx, *beta, y, *incy);                          \
  }                                                                                          \
  void s##gbmv_(const char* t, const int* m, const int* n, const int* kl, const int* ku,     \
                const T* alpha, const T* a, const int* lda, const T* x, const int* incx,     \
                const T* beta, T* y, const int* incy) {                                      \
    gbmv<T>(t, *m, *n, *kl, *ku, *alpha, a, *lda, x, *incx, *beta, y, *incy);                \
  }                                                                                          \
  void s##trmv_(const char* u, const char* t, const char* d, const int* n, const T* a,       \
                const int* lda, T* x, const int* incx) {                                     \
    trmv<T>(false, u, t, d, *n, a, *lda, x, *incx);                                          \
  }                                                                                          \
  void s##trsv_(const char* u, const char* t, const char* d, const int* n, const T* a,       \
                const int* lda, T* x, const int* incx) {                                     \
    trmv<T>(true, u, t, d, *n, a, *lda, x, *incx);                                           \
  }                                                                                          \
  void s##tbmv_(const char* u, const char* t, const char* d, const int* n, const int* k,     \
                const T* a, const int* lda, T* x, const int* incx) {                         \
    tbmv<T>(false, u, t, d, *n, *k, a, *lda, x, *incx);                                      \
  }                                                                                          \
  void s##tbsv_(const char* u, const char* t, const char* d, const int* n, const int* k,     \
                const T* a, const int* lda, T* x, const int* incx) {                         \
    tbmv<T>(true, u, t, d, *n, *k, a, *lda, x, *incx);                                       \
  }                                                                                          \
  void s##tpmv_(const char* u, const char* t, const char* d, const int* n, const T* a, T* x, \
                const int* incx) {                                                           \
    tpmv<T>(false, u, t, d, *n, a, x, *incx);                                                \
  }                                                                                          \
  void s##tpsv_(const char* u, const char* t, const char* d, const int* n, const T* a, T* x, \
                const int* incx) {                                                           \
    tpmv<T>(true, u, t, d, *n, a, x, *incx);                                                 \
  }
TROUPE_FOR_NUMBERS(TROUPE_LEVEL2)

/// Of real numbers they are called symmetric, of complex ones Hermitian.
#define TROUPE_LEVEL2_SYMMETRIC(T, mv, bmv, pmv, r, pr, r2, pr2)                                  \
  void mv(const char* u, const int* n, const T* alpha, const T* a, const int* lda, const T* x,    \
          const int* incx, const T* beta, T* y, const int* incy) {                                \
    symv<T>(u, *n, *alpha, a, *lda, x, *incx, *beta, y, *incy);                                   \
  }                                                                                               \
  void bmv(const char* u, const int* n, const int* k, const T* alpha, const T* a, const int* lda, \
           const T* x, const int* incx, const T* beta, T* y, const int* incy) {                   \
    sbmv<T>(u, *n, *k, *alpha, a, *lda, x, *incx, *beta, y, *incy);                               \
  }                                                                                               \
  void pmv(const char* u, const int* n, const T* alpha, const T* a, const T* x, const int* incx,  \
           const T* beta, T* y, const int* incy) {                                                \
    spmv<T>(u, *n, *alpha, a, x, *incx, *beta, y, *incy);                                         \
  }                                                                                               \
  void r(const char* u, const int* n, const RealOf<T>* alpha, const T* x, const int* incx, T* a,  \
         const int* lda) {                                                                        \
    syr<T>(u, *n, *alpha, x, *incx, a, *lda);                                                     \
  }                                                                                               \
  void pr(const char* u, const int* n, const RealOf<T>* alpha, const T* x, const int* incx,       \
          T* a) {                                                                                 \
    spr<T>(u, *n, *alpha, x, *incx, a);                                                           \
  }                                                                                               \
  void r2(const char* u, const int* n, const T* alpha, const T* x, const int* incx, const T* y,   \
          const int* incy, T* a, const int* lda) {                                                \
    syr2<T>(u, *n, *alpha, x, *incx, y, *incy, a, *lda);                                          \
  }                                                                                               \
  void pr2(const char* u, const int* n, const T* alpha, const T* x, const int* incx, const T* y,  \
           const int* incy, T* a) {                                                               \
    spr2<T>(u, *n, *alpha, x, *incx, y, *incy, a);                                                \
  }
TROUPE_LEVEL2_SYMMETRIC(float, ssymv_, ssbmv_, sspmv_, ssyr_, sspr_, ssyr2_, sspr2_)
TROUPE_LEVEL2_SYMMETRIC(double, dsymv_, dsbmv_, dspmv_, dsyr_, dspr_, dsyr2_, dspr2_)
TROUPE_LEVEL2_SYMMETRIC(std::complex<float>, chemv_, chbmv_, chpmv_, cher_, chpr_, cher2_, chpr2_)
TROUPE_LEVEL2_SYMMETRIC(std::complex<double>, zhemv_, zhbmv_, zhpmv_, zher_, zhpr_, zher2_, zhpr2_)

#define TROUPE_GER(T, name, conjugated)                                                          \
  void name(const int* m, const int* n, const T* alpha, const T* x, const int* incx, const T* y, \
            const int* incy, T* a, const int* lda) {                                             \
    ger<T>(*m, *n, *alpha, x, *incx, y, *incy, a, *lda, conjugated);                             \
  }
TROUPE_GER(float, sger_, false)
TROUPE_GER(double, dger_, false)
TROUPE_GER(std::complex<float>, cgeru_, false)
TROUPE_GER(std::complex<float>, cgerc_, true)
TROUPE_GER(std::complex<double>, zgeru_, false)
TROUPE_GER(std::complex<double>, zgerc_, true)
}
