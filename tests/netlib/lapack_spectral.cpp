#include <optional>

#include "lapack.hpp"

namespace troupe::netlib {
namespace {

using solver::Columns;
using solver::Vectors;

Vectors vectors_of(const char* job) {
  return is_one_of(job, "V") ? Vectors::yes : Vectors::no;
}

// ---- eigenvalues

/// What SYEVD and HEEVD need, and SYGVD and HEGVD as well: of T, of its real type (apart from the
/// first for complex numbers only) and of integers.
struct EigenWork {
  int values, reals, integers;
};
template <class T>
constexpr EigenWork work_of_syevd(Vectors vectors, int n) {
  if (n <= 1) return {1, 1, 1};
  if (vectors == Vectors::no) return {ComplexElement<T> ? n + 1 : 2 * n + 1, n, 1};
  const int of_vectors = 1 + (ComplexElement<T> ? 5 : 6) * n + 2 * n * n;
  return {ComplexElement<T> ? 2 * n + n * n : of_vectors, of_vectors, 3 + 5 * n};
}
template <class T>
void syevd_on(Device& on, const char* jobz, const char* uplo, int n, T* a, int lda, RealOf<T>* w,
              int* info) {
  const Matrix<T> matrix(on, a, n, n, lda);
  const Array<RealOf<T>> values(on, w, n);
  *info =
      on.solver().syevd(vectors_of(jobz), uplo_of(uplo), matrix.ref(), values.ref(), kReport).get();
  matrix.download(), values.download();
}
template <class T>
void syevd(const char* jobz, const char* uplo, int n, T* a, int lda, T* w, T* work, int lwork,
           int* iwork, int liwork, int* info) {
  const Routine<T> routine("SYEVD");
  const auto least = work_of_syevd<T>(vectors_of(jobz), n);
  const bool asked = lwork == -1 || liwork == -1;
  if (!routine.accepts(
          {is_one_of(jobz, "NV"), is_one_of(uplo, "UL"), n >= 0, true, lda >= at_least_one(n), true,
           true, asked || lwork >= least.values, true, asked || liwork >= least.integers},
          info))
    return;
  tell(work, least.values), tell(iwork, least.integers);
  if (!asked) syevd_on(routine.device(), jobz, uplo, n, a, lda, w, info);
}
template <class T>
void heevd(const char* jobz, const char* uplo, int n, T* a, int lda, RealOf<T>* w, T* work,
           int lwork, RealOf<T>* rwork, int lrwork, int* iwork, int liwork, int* info) {
  const Routine<T> routine("HEEVD");
  const auto least = work_of_syevd<T>(vectors_of(jobz), n);
  const bool asked = lwork == -1 || lrwork == -1 || liwork == -1;
  if (!routine.accepts({is_one_of(jobz, "NV"), is_one_of(uplo, "UL"), n >= 0, true,
                        lda >= at_least_one(n), true, true, asked || lwork >= least.values, true,
                        asked || lrwork >= least.reals, true, asked || liwork >= least.integers},
                       info))
    return;
  tell(work, least.values), tell(rwork, least.reals), tell(iwork, least.integers);
  if (!asked) syevd_on(routine.device(), jobz, uplo, n, a, lda, w, info);
}

template <class T>
void sygvd_on(Device& on, int itype, const char* jobz, const char* uplo, int n, T* a, int lda, T* b,
              int ldb, RealOf<T>* w, int* info) {
  const Matrix<T> matrix(on, a, n, n, lda), other(on, b, n, n, ldb);
  const Array<RealOf<T>> values(on, w, n);
  *info = on.solver()
              .sygvd(static_cast<solver::Problem>(itype), vectors_of(jobz), uplo_of(uplo),
                     matrix.ref(), other.ref(), values.ref(), kReport)
              .get();
  matrix.download(), other.download(), values.download();
}
template <class T>
void sygvd(int itype, const char* jobz, const char* uplo, int n, T* a, int lda, T* b, int ldb, T* w,
           T* work, int lwork, int* iwork, int liwork, int* info) {
  const Routine<T> routine("SYGVD");
  const auto least = work_of_syevd<T>(vectors_of(jobz), n);
  const bool asked = lwork == -1 || liwork == -1;
  if (!routine.accepts(
          {itype >= 1 && itype <= 3, is_one_of(jobz, "NV"), is_one_of(uplo, "UL"), n >= 0, true,
           lda >= at_least_one(n), true, ldb >= at_least_one(n), true, true,
           asked || lwork >= least.values, true, asked || liwork >= least.integers},
          info))
    return;
  tell(work, least.values), tell(iwork, least.integers);
  if (!asked) sygvd_on(routine.device(), itype, jobz, uplo, n, a, lda, b, ldb, w, info);
}
template <class T>
void hegvd(int itype, const char* jobz, const char* uplo, int n, T* a, int lda, T* b, int ldb,
           RealOf<T>* w, T* work, int lwork, RealOf<T>* rwork, int lrwork, int* iwork, int liwork,
           int* info) {
  const Routine<T> routine("HEGVD");
  const auto least = work_of_syevd<T>(vectors_of(jobz), n);
  const bool asked = lwork == -1 || lrwork == -1 || liwork == -1;
  if (!routine.accepts({itype >= 1 && itype <= 3, is_one_of(jobz, "NV"), is_one_of(uplo, "UL"),
                        n >= 0, true, lda >= at_least_one(n), true, ldb >= at_least_one(n), true,
                        true, asked || lwork >= least.values, true, asked || lrwork >= least.reals,
                        true, asked || liwork >= least.integers},
                       info))
    return;
  tell(work, least.values), tell(rwork, least.reals), tell(iwork, least.integers);
  if (!asked) sygvd_on(routine.device(), itype, jobz, uplo, n, a, lda, b, ldb, w, info);
}

// ---- singular values

/// Which vectors there are, and how many columns of U (rows of V^H).
struct Wanted {
  Columns columns;
  int count;

  Wanted(const char* job, int all, int some) : columns(Columns::none), count(0) {
    if (is_one_of(job, "A")) columns = Columns::all, count = all;
    if (is_one_of(job, "S")) columns = Columns::some, count = some;
    if (is_one_of(job, "O")) columns = Columns::overwrite;
  }
};
template <class T>
MatrixRef<GpuRef<T>> ref_of(const std::optional<Matrix<T>>& matrix) {
  return matrix ? matrix->ref() : MatrixRef<GpuRef<T>>{};
}
/// Of a matrix with at least as many rows as columns.
template <class T>
void gesvd_on(Device& on, const char* jobu, const char* jobvt, int m, int n, T* a, int lda,
              RealOf<T>* s, T* u, int ldu, T* vt, int ldvt, int* info) {
  const Wanted of_u(jobu, m, n), of_v(jobvt, n, n);
  const Matrix<T> matrix(on, a, m, n, lda);
  const Array<RealOf<T>> values(on, s, n);
  std::optional<Matrix<T>> left, right;
  if (of_u.count > 0) left.emplace(on, u, m, of_u.count, ldu);
  if (of_v.count > 0) right.emplace(on, vt, of_v.count, n, ldvt);
  *info = on.solver()
              .gesvd(of_u.columns, of_v.columns, matrix.ref(), values.ref(), ref_of(left),
                     ref_of(right), kReport)
              .get();
  matrix.download(), values.download();
  if (left) left->download();
  if (right) right->download();
}
/// `real_work` is RWORK of complex numbers, and nothing of real ones.
template <class T, class... Real>
void gesvd(const char* jobu, const char* jobvt, int m, int n, T* a, int lda, RealOf<T>* s, T* u,
           int ldu, T* vt, int ldvt, T* work, int lwork, int* info, const char* symbol,
           Real*... real_work) {
  // What is asked for is enough for those that go on, too.
  if (lwork == -1 || (m < n && m >= 0)) {
    using Next =
        void(const char*, const char*, const int*, const int*, T*, const int*, RealOf<T>*, T*,
             const int*, T*, const int*, T*, const int*, Real*..., int*, std::size_t, std::size_t);
    return next<Next>(symbol)(jobu, jobvt, &m, &n, a, &lda, s, u, &ldu, vt, &ldvt, work, &lwork,
                              real_work..., info, 1, 1);
  }
  const Routine<T> routine("GESVD");
  const int least = m == 0 || n == 0    ? 1
                    : ComplexElement<T> ? 2 * n + m
                                        : std::max(3 * n + m, 5 * n);
  const bool rows_of_u = is_one_of(jobu, "AS"), rows_of_v = is_one_of(jobvt, "AS");
  if (!routine.accepts(
          {is_one_of(jobu, "ASON"),
           is_one_of(jobvt, "ASON") && !(is_one_of(jobu, "O") && is_one_of(jobvt, "O")), m >= 0,
           n >= 0, true, lda >= at_least_one(m), true, true,
           ldu >= (rows_of_u ? at_least_one(m) : 1), true,
           ldvt >= (rows_of_v ? at_least_one(n) : 1), true, lwork >= least},
          info))
    return;
  tell(work, least);
  if (m > 0 && n > 0)
    gesvd_on(routine.device(), jobu, jobvt, m, n, a, lda, s, u, ldu, vt, ldvt, info);
}

}  // namespace
}  // namespace troupe::netlib

using namespace troupe::netlib;
using troupe::RealOf;

extern "C" {

#define TROUPE_LAPACK_SPECTRAL_REAL(T, s)                                                          \
  void s##syevd_(const char* jobz, const char* uplo, const int* n, T* a, const int* lda, T* w,     \
                 T* work, const int* lwork, int* iwork, const int* liwork, int* info) {            \
    syevd<T>(jobz, uplo, *n, a, *lda, w, work, *lwork, iwork, *liwork, info);                      \
  }                                                                                                \
  void s##sygvd_(const int* itype, const char* jobz, const char* uplo, const int* n, T* a,         \
                 const int* lda, T* b, const int* ldb, T* w, T* work, const int* lwork,            \
                 int* iwork, const int* liwork, int* info) {                                       \
    sygvd<T>(*itype, jobz, uplo, *n, a, *lda, b, *ldb, w, work, *lwork, iwork, *liwork, info);     \
  }                                                                                                \
  void s##gesvd_(const char* jobu, const char* jobvt, const int* m, const int* n, T* a,            \
                 const int* lda, T* values, T* u, const int* ldu, T* vt, const int* ldvt, T* work, \
                 const int* lwork, int* info) {                                                    \
    gesvd<T>(jobu, jobvt, *m, *n, a, *lda, values, u, *ldu, vt, *ldvt, work, *lwork, info,         \
             #s "gesvd_");                                                                         \
  }
TROUPE_FOR_REALS(TROUPE_LAPACK_SPECTRAL_REAL)

#define TROUPE_LAPACK_SPECTRAL_COMPLEX(T, s)                                                      \
  void s##heevd_(const char* jobz, const char* uplo, const int* n, T* a, const int* lda,          \
                 RealOf<T>* w, T* work, const int* lwork, RealOf<T>* rwork, const int* lrwork,    \
                 int* iwork, const int* liwork, int* info) {                                      \
    heevd<T>(jobz, uplo, *n, a, *lda, w, work, *lwork, rwork, *lrwork, iwork, *liwork, info);     \
  }                                                                                               \
  void s##hegvd_(const int* itype, const char* jobz, const char* uplo, const int* n, T* a,        \
                 const int* lda, T* b, const int* ldb, RealOf<T>* w, T* work, const int* lwork,   \
                 RealOf<T>* rwork, const int* lrwork, int* iwork, const int* liwork, int* info) { \
    hegvd<T>(*itype, jobz, uplo, *n, a, *lda, b, *ldb, w, work, *lwork, rwork, *lrwork, iwork,    \
             *liwork, info);                                                                      \
  }                                                                                               \
  void s##gesvd_(const char* jobu, const char* jobvt, const int* m, const int* n, T* a,           \
                 const int* lda, RealOf<T>* values, T* u, const int* ldu, T* vt, const int* ldvt, \
                 T* work, const int* lwork, RealOf<T>* rwork, int* info) {                        \
    gesvd<T>(jobu, jobvt, *m, *n, a, *lda, values, u, *ldu, vt, *ldvt, work, *lwork, info,        \
             #s "gesvd_", rwork);                                                                 \
  }
TROUPE_FOR_COMPLEX(TROUPE_LAPACK_SPECTRAL_COMPLEX)
}
