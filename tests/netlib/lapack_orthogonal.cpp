#include "lapack.hpp"

namespace troupe::netlib {
namespace {

template <class T>
bool is_transpose(const char* trans) {
  return is_one_of(trans, ComplexElement<T> ? "NC" : "NT");
}

template <class T>
void geqrf(int m, int n, T* a, int lda, T* tau, T* work, int lwork, int* info) {
  const Routine<T> routine("GEQRF");
  const int least = std::min(m, n) > 0 ? n : 1;
  if (!routine.accepts({m >= 0, n >= 0, true, lda >= at_least_one(m), true, true,
                        enough(lwork, m > 0 ? at_least_one(n) : 1)},
                       info))
    return;
  if (asked_only(work, lwork, least)) return;
  auto& on = routine.device();
  const Matrix<T> matrix(on, a, m, n, lda);
  const Array<T> factors(on, tau, std::min(m, n));
  on.solver().geqrf(matrix.ref(), factors.ref()).get();
  matrix.download(), factors.download();
}
template <class T>
void ormqr(const char* side, const char* trans, int m, int n, int k, const T* a, int lda,
           const T* tau, T* c, int ldc, T* work, int lwork, int* info) {
  const Routine<T> routine("ORMQR", "UNMQR");
  const bool left = is_one_of(side, "L");
  const int order = left ? m : n;
  const int least = at_least_one(left ? n : m);
  if (!routine.accepts({is_one_of(side, "LR"), is_transpose<T>(trans), m >= 0, n >= 0,
                        k >= 0 && k <= order, true, lda >= at_least_one(order), true, true,
                        ldc >= at_least_one(m), true, enough(lwork, least)},
                       info))
    return;
  if (asked_only(work, lwork, least)) return;
  auto& on = routine.device();
  const Matrix<const T> reflectors(on, a, order, k, lda);
  const Array<const T> factors(on, tau, k);
  const Matrix<T> matrix(on, c, m, n, ldc);
  if constexpr (ComplexElement<T>) {
    on.solver()
        .unmqr(side_of(side), transpose_of(trans), reflectors.ref(), factors.ref(), matrix.ref())
        .get();
  } else {
    on.solver()
        .ormqr(side_of(side), transpose_of(trans), reflectors.ref(), factors.ref(), matrix.ref())
        .get();
  }
  matrix.download();
}
/// Other directions, and reflectors in rows, stay with LAPACK.
template <class T>
void larft(const char* direct, const char* storev, int n, int k, const T* v, int ldv, const T* tau,
           T* t, int ldt, const char* symbol) {
  if (!is_one_of(direct, "F") || !is_one_of(storev, "C")) {
    using Next = void(const char*, const char*, const int*, const int*, const T*, const int*,
                      const T*, T*, const int*, std::size_t, std::size_t);
    return next<Next>(symbol)(direct, storev, &n, &k, v, &ldv, tau, t, &ldt, 1, 1);
  }
  if (n == 0 || k == 0) return;
  auto& on = Routine<T>("LARFT").device();
  const Matrix<const T> reflectors(on, v, n, k, ldv);
  const Array<const T> factors(on, tau, k);
  const Matrix<T> triangle(on, t, k, k, ldt);
  on.solver().larft(reflectors.ref(), factors.ref(), triangle.ref()).get();
  triangle.download();
}
template <class T>
void orgqr(int m, int n, int k, T* a, int lda, const T* tau, T* work, int lwork, int* info) {
  const Routine<T> routine("ORGQR", "UNGQR");
  const int least = at_least_one(n);
  if (!routine.accepts({m >= 0, n >= 0 && n <= m, k >= 0 && k <= n, true, lda >= at_least_one(m),
                        true, true, enough(lwork, least)},
                       info))
    return;
  if (asked_only(work, lwork, least)) return;
  auto& on = routine.device();
  const Matrix<T> matrix(on, a, m, n, lda);
  const Array<const T> factors(on, tau, k);
  if constexpr (ComplexElement<T>) {
    on.solver().ungqr(matrix.ref(), k, factors.ref()).get();
  } else {
    on.solver().orgqr(matrix.ref(), k, factors.ref()).get();
  }
  matrix.download();
}

// ---- tridiagonal form

template <class T>
void sytrd(const char* uplo, int n, T* a, int lda, RealOf<T>* d, RealOf<T>* e, T* tau, T* work,
           int lwork, int* info) {
  const Routine<T> routine("SYTRD", "HETRD");
  if (!routine.accepts({is_one_of(uplo, "UL"), n >= 0, true, lda >= at_least_one(n), true, true,
                        true, true, enough(lwork, 1)},
                       info))
    return;
  if (asked_only(work, lwork, 1)) return;
  auto& on = routine.device();
  const int beside = std::max(0, n - 1);
  const Matrix<T> matrix(on, a, n, n, lda);
  const Array<RealOf<T>> diagonal(on, d, n), off(on, e, beside);
  const Array<T> factors(on, tau, beside);
  on.solver().sytrd(uplo_of(uplo), matrix.ref(), diagonal.ref(), off.ref(), factors.ref()).get();
  matrix.download(), diagonal.download(), off.download(), factors.download();
}
template <class T>
void orgtr(const char* uplo, int n, T* a, int lda, const T* tau, T* work, int lwork, int* info) {
  const Routine<T> routine("ORGTR", "UNGTR");
  const int least = at_least_one(n - 1);
  if (!routine.accepts({is_one_of(uplo, "UL"), n >= 0, true, lda >= at_least_one(n), true, true,
                        enough(lwork, least)},
                       info))
    return;
  if (asked_only(work, lwork, least)) return;
  auto& on = routine.device();
  const Matrix<T> matrix(on, a, n, n, lda);
  const Array<const T> factors(on, tau, std::max(0, n - 1));
  on.solver().orgtr(uplo_of(uplo), matrix.ref(), factors.ref()).get();
  matrix.download();
}
template <class T>
void ormtr(const char* side, const char* uplo, const char* trans, int m, int n, const T* a, int lda,
           const T* tau, T* c, int ldc, T* work, int lwork, int* info) {
  const Routine<T> routine("ORMTR", "UNMTR");
  const bool left = is_one_of(side, "L");
  const int order = left ? m : n;
  const int least = at_least_one(left ? n : m);
  if (!routine.accepts({is_one_of(side, "LR"), is_one_of(uplo, "UL"), is_transpose<T>(trans),
                        m >= 0, n >= 0, true, lda >= at_least_one(order), true, true,
                        ldc >= at_least_one(m), true, enough(lwork, least)},
                       info))
    return;
  if (asked_only(work, lwork, least)) return;
  auto& on = routine.device();
  const Matrix<const T> reflectors(on, a, order, order, lda);
  const Array<const T> factors(on, tau, std::max(0, order - 1));
  const Matrix<T> matrix(on, c, m, n, ldc);
  on.solver()
      .ormtr(side_of(side), uplo_of(uplo), transpose_of(trans), reflectors.ref(), factors.ref(),
             matrix.ref())
      .get();
  matrix.download();
}

// ---- bidiagonal form, of matrices with at least as many rows as columns

template <class T>
void gebrd(int m, int n, T* a, int lda, RealOf<T>* d, RealOf<T>* e, T* tauq, T* taup, T* work,
           int lwork, int* info, const char* symbol) {
  if (m < n && m >= 0) {
    using Next = void(const int*, const int*, T*, const int*, RealOf<T>*, RealOf<T>*, T*, T*, T*,
                      const int*, int*);
    return next<Next>(symbol)(&m, &n, a, &lda, d, e, tauq, taup, work, &lwork, info);
  }
  const Routine<T> routine("GEBRD");
  const int least = at_least_one(std::max(m, n));
  if (!routine.accepts({m >= 0, n >= 0, true, lda >= at_least_one(m), true, true, true, true, true,
                        enough(lwork, least)},
                       info))
    return;
  if (asked_only(work, lwork, least)) return;
  auto& on = routine.device();
  const Matrix<T> matrix(on, a, m, n, lda);
  const Array<RealOf<T>> diagonal(on, d, n), above(on, e, std::max(0, n - 1));
  const Array<T> of_q(on, tauq, n), of_p(on, taup, n);
  on.solver().gebrd(matrix.ref(), diagonal.ref(), above.ref(), of_q.ref(), of_p.ref()).get();
  matrix.download(), diagonal.download(), above.download(), of_q.download(), of_p.download();
}
template <class T>
void orgbr(const char* vect, int m, int n, int k, T* a, int lda, const T* tau, T* work, int lwork,
           int* info, const char* symbol) {
  const bool left = is_one_of(vect, "Q");
  // What an operation makes: all columns of Q that belong to one of B, or all of P.
  if (m >= 0 && (left ? n != k || m < n : n != m || k < n)) {
    using Next = void(const char*, const int*, const int*, const int*, T*, const int*, const T*, T*,
                      const int*, int*, std::size_t);
    return next<Next>(symbol)(vect, &m, &n, &k, a, &lda, tau, work, &lwork, info, 1);
  }
  const Routine<T> routine("ORGBR", "UNGBR");
  const int least = at_least_one(std::min(m, n));
  if (!routine.accepts({is_one_of(vect, "QP"), m >= 0, n >= 0, k >= 0, true, lda >= at_least_one(m),
                        true, true, enough(lwork, least)},
                       info))
    return;
  if (asked_only(work, lwork, least)) return;
  auto& on = routine.device();
  const Matrix<T> matrix(on, a, m, n, lda);
  const Array<const T> factors(on, tau, n);
  // P is of a matrix with k rows.
  const auto ref = matrix.ref();
  on.solver()
      .orgbr(left ? Side::left : Side::right,
             MatrixRef<GpuRef<T>>(ref.buffer, left ? m : k, n, lda), factors.ref())
      .get();
  matrix.download();
}

}  // namespace
}  // namespace troupe::netlib

using namespace troupe::netlib;
using troupe::RealOf;

extern "C" {

#define TROUPE_LAPACK_ORTHOGONAL(T, s, ormqr_name, orgqr_name, sytrd_name, orgtr_name, ormtr_name, \
                                 orgbr_name)                                                       \
  void s##geqrf_(const int* m, const int* n, T* a, const int* lda, T* tau, T* work,                \
                 const int* lwork, int* info) {                                                    \
    geqrf<T>(*m, *n, a, *lda, tau, work, *lwork, info);                                            \
  }                                                                                                \
  void s##larft_(const char* direct, const char* storev, const int* n, const int* k, const T* v,   \
                 const int* ldv, const T* tau, T* t, const int* ldt) {                             \
    larft<T>(direct, storev, *n, *k, v, *ldv, tau, t, *ldt, #s "larft_");                          \
  }                                                                                                \
  void s##ormqr_name(const char* side, const char* trans, const int* m, const int* n,              \
                     const int* k, const T* a, const int* lda, const T* tau, T* c, const int* ldc, \
                     T* work, const int* lwork, int* info) {                                       \
    ormqr<T>(side, trans, *m, *n, *k, a, *lda, tau, c, *ldc, work, *lwork, info);                  \
  }                                                                                                \
  void s##orgqr_name(const int* m, const int* n, const int* k, T* a, const int* lda, const T* tau, \
                     T* work, const int* lwork, int* info) {                                       \
    orgqr<T>(*m, *n, *k, a, *lda, tau, work, *lwork, info);                                        \
  }                                                                                                \
  void s##sytrd_name(const char* uplo, const int* n, T* a, const int* lda, RealOf<T>* d,           \
                     RealOf<T>* e, T* tau, T* work, const int* lwork, int* info) {                 \
    sytrd<T>(uplo, *n, a, *lda, d, e, tau, work, *lwork, info);                                    \
  }                                                                                                \
  void s##orgtr_name(const char* uplo, const int* n, T* a, const int* lda, const T* tau, T* work,  \
                     const int* lwork, int* info) {                                                \
    orgtr<T>(uplo, *n, a, *lda, tau, work, *lwork, info);                                          \
  }                                                                                                \
  void s##ormtr_name(const char* side, const char* uplo, const char* trans, const int* m,          \
                     const int* n, const T* a, const int* lda, const T* tau, T* c, const int* ldc, \
                     T* work, const int* lwork, int* info) {                                       \
    ormtr<T>(side, uplo, trans, *m, *n, a, *lda, tau, c, *ldc, work, *lwork, info);                \
  }                                                                                                \
  void s##gebrd_(const int* m, const int* n, T* a, const int* lda, RealOf<T>* d, RealOf<T>* e,     \
                 T* tauq, T* taup, T* work, const int* lwork, int* info) {                         \
    gebrd<T>(*m, *n, a, *lda, d, e, tauq, taup, work, *lwork, info, #s "gebrd_");                  \
  }                                                                                                \
  void s##orgbr_name(const char* vect, const int* m, const int* n, const int* k, T* a,             \
                     const int* lda, const T* tau, T* work, const int* lwork, int* info) {         \
    orgbr<T>(vect, *m, *n, *k, a, *lda, tau, work, *lwork, info, #s #orgbr_name);                  \
  }
#define TROUPE_LAPACK_ORTHOGONAL_REAL(T, s) \
  TROUPE_LAPACK_ORTHOGONAL(T, s, ormqr_, orgqr_, sytrd_, orgtr_, ormtr_, orgbr_)
#define TROUPE_LAPACK_ORTHOGONAL_COMPLEX(T, s) \
  TROUPE_LAPACK_ORTHOGONAL(T, s, unmqr_, ungqr_, hetrd_, ungtr_, unmtr_, ungbr_)
TROUPE_FOR_REALS(TROUPE_LAPACK_ORTHOGONAL_REAL)
TROUPE_FOR_COMPLEX(TROUPE_LAPACK_ORTHOGONAL_COMPLEX)
}
