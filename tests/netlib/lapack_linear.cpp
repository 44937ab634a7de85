#include "lapack.hpp"

namespace troupe::netlib {
namespace {

// ---- Cholesky

template <class T>
void potrf(const char* uplo, int n, T* a, int lda, int* info) {
  const Routine<T> routine("POTRF");
  if (!routine.accepts({is_one_of(uplo, "UL"), n >= 0, true, lda >= at_least_one(n)}, info)) return;
  auto& on = routine.device();
  const Matrix<T> matrix(on, a, n, n, lda);
  *info = on.solver().potrf(uplo_of(uplo), matrix.ref(), kReport).get();
  matrix.download();
}
template <class T>
void potrs(const char* uplo, int n, int nrhs, const T* a, int lda, T* b, int ldb, int* info) {
  const Routine<T> routine("POTRS");
  if (!routine.accepts({is_one_of(uplo, "UL"), n >= 0, nrhs >= 0, true, lda >= at_least_one(n),
                        true, ldb >= at_least_one(n)},
                       info))
    return;
  auto& on = routine.device();
  const Matrix<const T> factor(on, a, n, n, lda);
  const Matrix<T> solution(on, b, n, nrhs, ldb);
  on.solver().potrs(uplo_of(uplo), factor.ref(), solution.ref()).get();
  solution.download();
}
template <class T>
void potri(const char* uplo, int n, T* a, int lda, int* info) {
  const Routine<T> routine("POTRI");
  if (!routine.accepts({is_one_of(uplo, "UL"), n >= 0, true, lda >= at_least_one(n)}, info)) return;
  auto& on = routine.device();
  const Matrix<T> matrix(on, a, n, n, lda);
  *info = on.solver().potri(uplo_of(uplo), matrix.ref(), kReport).get();
  matrix.download();
}

// ---- triangles

template <class T>
void trtri(const char* uplo, const char* diag, int n, T* a, int lda, int* info) {
  const Routine<T> routine("TRTRI");
  if (!routine.accepts(
          {is_one_of(uplo, "UL"), is_one_of(diag, "NU"), n >= 0, true, lda >= at_least_one(n)},
          info))
    return;
  auto& on = routine.device();
  const Matrix<T> matrix(on, a, n, n, lda);
  *info = on.solver().trtri(uplo_of(uplo), diagonal_of(diag), matrix.ref(), kReport).get();
  matrix.download();
}
template <class T>
void lauum(const char* uplo, int n, T* a, int lda, int* info) {
  const Routine<T> routine("LAUUM");
  if (!routine.accepts({is_one_of(uplo, "UL"), n >= 0, true, lda >= at_least_one(n)}, info)) return;
  auto& on = routine.device();
  const Matrix<T> matrix(on, a, n, n, lda);
  on.solver().lauum(uplo_of(uplo), matrix.ref()).get();
  matrix.download();
}

// ---- LU

template <class T>
void getrf(int m, int n, T* a, int lda, int* ipiv, int* info) {
  const Routine<T> routine("GETRF");
  if (!routine.accepts({m >= 0, n >= 0, true, lda >= at_least_one(m)}, info)) return;
  auto& on = routine.device();
  const Matrix<T> matrix(on, a, m, n, lda);
  const Pivots pivots(on, ipiv, std::min(m, n));
  *info = on.solver().getrf(matrix.ref(), pivots.ref(), kReport).get();
  matrix.download();
  pivots.download(ipiv);
}
template <class T>
void getrs(const char* trans, int n, int nrhs, const T* a, int lda, const int* ipiv, T* b, int ldb,
           int* info) {
  const Routine<T> routine("GETRS");
  if (!routine.accepts({is_one_of(trans, "NTC"), n >= 0, nrhs >= 0, true, lda >= at_least_one(n),
                        true, true, ldb >= at_least_one(n)},
                       info))
    return;
  auto& on = routine.device();
  const Matrix<const T> factors(on, a, n, n, lda);
  const Pivots pivots(on, ipiv, n);
  const Matrix<T> solution(on, b, n, nrhs, ldb);
  on.solver().getrs(transpose_of(trans), factors.ref(), pivots.ref(), solution.ref()).get();
  solution.download();
}
/// LAPACK does not say how many rows there are: as many as the exchanges meet. Pivots with gaps
/// between them are gathered.
template <class T>
void laswp(int n, T* a, int lda, int k1, int k2, const int* ipiv, int incx) {
  if (incx == 0 || n <= 0 || k2 < k1) return;
  std::vector<int> pivots(static_cast<std::size_t>(k2), 1);
  int rows = k2;
  for (int k = k1; k <= k2; ++k) {
    const int pivot = ipiv[k1 - 1 + (k - k1) * std::abs(incx)];
    pivots[static_cast<std::size_t>(k - 1)] = pivot;
    rows = std::max(rows, pivot);
  }
  auto& on = Routine<T>("LASWP").device();
  const Matrix<T> matrix(on, a, rows, n, lda);
  const Pivots wide(on, pivots.data(), k2);
  on.solver()
      .laswp(matrix.ref(), k1, k2, wide.ref(),
             incx > 0 ? solver::Order::forward : solver::Order::backward)
      .get();
  matrix.download();
}

// ---- L D L^T

template <class T>
void sytrf(const char* uplo, int n, T* a, int lda, int* ipiv, T* work, int lwork, int* info) {
  const Routine<T> routine("SYTRF");
  if (!routine.accepts({is_one_of(uplo, "UL"), n >= 0, true, lda >= at_least_one(n), true, true,
                        enough(lwork, 1)},
                       info))
    return;
  if (asked_only(work, lwork, 1)) return;
  auto& on = routine.device();
  const Matrix<T> matrix(on, a, n, n, lda);
  const Pivots pivots(on, ipiv, n);
  *info = on.solver().sytrf(uplo_of(uplo), matrix.ref(), pivots.ref(), kReport).get();
  matrix.download();
  pivots.download(ipiv);
}
template <class T>
void sytrs(const char* uplo, int n, int nrhs, const T* a, int lda, const int* ipiv, T* b, int ldb,
           int* info) {
  const Routine<T> routine("SYTRS");
  if (!routine.accepts({is_one_of(uplo, "UL"), n >= 0, nrhs >= 0, true, lda >= at_least_one(n),
                        true, true, ldb >= at_least_one(n)},
                       info))
    return;
  auto& on = routine.device();
  const Matrix<const T> factors(on, a, n, n, lda);
  const Pivots pivots(on, ipiv, n);
  const Matrix<T> solution(on, b, n, nrhs, ldb);
  on.solver().sytrs(uplo_of(uplo), factors.ref(), pivots.ref(), solution.ref()).get();
  solution.download();
}
/// Of the cpu engine; the cuda engine has it not.
template <class T>
void sytri(const char* uplo, int n, T* a, int lda, const int* ipiv, T* work, int* info,
           const char* symbol) {
  if (test::on_cuda()) {
    using Next = void(const char*, const int*, T*, const int*, const int*, T*, int*, std::size_t);
    return next<Next>(symbol)(uplo, &n, a, &lda, ipiv, work, info, 1);
  }
  const Routine<T> routine("SYTRI");
  if (!routine.accepts({is_one_of(uplo, "UL"), n >= 0, true, lda >= at_least_one(n)}, info)) return;
  auto& on = routine.device();
  const Matrix<T> matrix(on, a, n, n, lda);
  const Pivots pivots(on, ipiv, n);
  *info = on.solver().sytri(uplo_of(uplo), matrix.ref(), pivots.ref(), kReport).get();
  matrix.download();
}

}  // namespace
}  // namespace troupe::netlib

using namespace troupe::netlib;

extern "C" {

#define TROUPE_LAPACK_LINEAR(T, s)                                                               \
  void s##potrf_(const char* uplo, const int* n, T* a, const int* lda, int* info) {              \
    potrf<T>(uplo, *n, a, *lda, info);                                                           \
  }                                                                                              \
  void s##potrs_(const char* uplo, const int* n, const int* nrhs, const T* a, const int* lda,    \
                 T* b, const int* ldb, int* info) {                                              \
    potrs<T>(uplo, *n, *nrhs, a, *lda, b, *ldb, info);                                           \
  }                                                                                              \
  void s##potri_(const char* uplo, const int* n, T* a, const int* lda, int* info) {              \
    potri<T>(uplo, *n, a, *lda, info);                                                           \
  }                                                                                              \
  void s##trtri_(const char* uplo, const char* diag, const int* n, T* a, const int* lda,         \
                 int* info) {                                                                    \
    trtri<T>(uplo, diag, *n, a, *lda, info);                                                     \
  }                                                                                              \
  void s##lauum_(const char* uplo, const int* n, T* a, const int* lda, int* info) {              \
    lauum<T>(uplo, *n, a, *lda, info);                                                           \
  }                                                                                              \
  void s##getrf_(const int* m, const int* n, T* a, const int* lda, int* ipiv, int* info) {       \
    getrf<T>(*m, *n, a, *lda, ipiv, info);                                                       \
  }                                                                                              \
  void s##getrs_(const char* trans, const int* n, const int* nrhs, const T* a, const int* lda,   \
                 const int* ipiv, T* b, const int* ldb, int* info) {                             \
    getrs<T>(trans, *n, *nrhs, a, *lda, ipiv, b, *ldb, info);                                    \
  }                                                                                              \
  void s##laswp_(const int* n, T* a, const int* lda, const int* k1, const int* k2,               \
                 const int* ipiv, const int* incx) {                                             \
    laswp<T>(*n, a, *lda, *k1, *k2, ipiv, *incx);                                                \
  }                                                                                              \
  void s##sytrf_(const char* uplo, const int* n, T* a, const int* lda, int* ipiv, T* work,       \
                 const int* lwork, int* info) {                                                  \
    sytrf<T>(uplo, *n, a, *lda, ipiv, work, *lwork, info);                                       \
  }                                                                                              \
  void s##sytrs_(const char* uplo, const int* n, const int* nrhs, const T* a, const int* lda,    \
                 const int* ipiv, T* b, const int* ldb, int* info) {                             \
    sytrs<T>(uplo, *n, *nrhs, a, *lda, ipiv, b, *ldb, info);                                     \
  }                                                                                              \
  void s##sytri_(const char* uplo, const int* n, T* a, const int* lda, const int* ipiv, T* work, \
                 int* info) {                                                                    \
    sytri<T>(uplo, *n, a, *lda, ipiv, work, info, #s "sytri_");                                  \
  }
TROUPE_FOR_NUMBERS(TROUPE_LAPACK_LINEAR)
}
