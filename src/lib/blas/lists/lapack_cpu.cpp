#include <complex>
#include <numeric>
#include <vector>
// Else it takes C's complex types.
#define lapack_complex_float std::complex<float>
#define lapack_complex_double std::complex<double>
#include <lapacke.h>

#include "lib/blas/cpu.hpp"

/// LAPACK's functions for lists of small matrices on the cpu engine, one after the other.
namespace troupe::host::cpu {
namespace {

using Task = blas::LapackBatched::Task;

template <class T>
struct BatchedLapack;
#define TROUPE_LAPACK(T, s)                           \
  template <>                                         \
  struct BatchedLapack<T> {                           \
    static constexpr auto getrf = LAPACKE_##s##getrf; \
    static constexpr auto getrs = LAPACKE_##s##getrs; \
    static constexpr auto getri = LAPACKE_##s##getri; \
    static constexpr auto geqrf = LAPACKE_##s##geqrf; \
    static constexpr auto gels = LAPACKE_##s##gels;   \
  };
TROUPE_LAPACK(float, s)
TROUPE_LAPACK(double, d)
TROUPE_LAPACK(std::complex<float>, c)
TROUPE_LAPACK(std::complex<double>, z)
#undef TROUPE_LAPACK

/// LU without pivots, which LAPACK does not have. Gives info.
template <class T>
lapack_int factor_without_pivots(lapack_int n, T* a, std::int64_t lda) {
  lapack_int info = 0;
  for (std::int64_t k = 0; k < n; ++k) {
    const T pivot = a[k * lda + k];
    if (pivot == T(0)) {
      if (info == 0) info = static_cast<lapack_int>(k + 1);
      continue;
    }
    for (auto i = k + 1; i < n; ++i) a[k * lda + i] /= pivot;
    for (auto j = k + 1; j < n; ++j) {
      for (auto i = k + 1; i < n; ++i) a[j * lda + i] -= a[k * lda + i] * a[j * lda + k];
    }
  }
  return info;
}

/// The task on one pair of matrices. `pivots`: n, or nullptr for none. Gives info.
template <class T>
lapack_int compute(const blas::LapackBatched& op, T* a, T* second, const lapack_int* pivots) {
  using L = BatchedLapack<T>;
  const auto m = static_cast<lapack_int>(op.m), n = static_cast<lapack_int>(op.n),
             nrhs = static_cast<lapack_int>(op.nrhs), lda = static_cast<lapack_int>(op.lda),
             ldb = static_cast<lapack_int>(op.ldb);
  if (n == 0 || m == 0) return 0;
  std::vector<lapack_int> own(static_cast<std::size_t>(n));
  std::iota(own.begin(), own.end(), 1);
  const auto* const rows = pivots != nullptr ? pivots : own.data();
  const auto copy = [&] {
    for (std::int64_t j = 0; j < n; ++j) std::copy_n(a + j * op.lda, n, second + j * op.ldb);
  };
  switch (op.task) {
    case Task::getrs: {
      constexpr char kLetters[] = {'N', 'T', 'C'};
      return L::getrs(LAPACK_COL_MAJOR, kLetters[static_cast<std::size_t>(op.transpose)], n, nrhs,
                      a, lda, rows, second, ldb);
    }
    case Task::getri: copy(); return L::getri(LAPACK_COL_MAJOR, n, second, ldb, rows);
    case Task::matinv: {
      copy();
      const auto info = L::getrf(LAPACK_COL_MAJOR, n, n, second, ldb, own.data());
      return info != 0 ? info : L::getri(LAPACK_COL_MAJOR, n, second, ldb, own.data());
    }
    case Task::geqrf: return L::geqrf(LAPACK_COL_MAJOR, m, n, a, lda, second);
    default: return L::gels(LAPACK_COL_MAJOR, 'N', m, n, nrhs, a, lda, second, ldb);
  }
}

}  // namespace

Result<void> run(const blas::GetrfBatched& op, const Call& call, Blas& library) {
  return with_number(op.dtype, [&]<class T>(T) {
    std::vector<T*> list;
    for (const auto& part : call.tail()) list.push_back(call.at<T>(part.range));
    auto* const pivots = op.pivots.present() ? call.at<lapack_int>(op.pivots) : nullptr;
    return library.services.submit(call, [op, list, pivots, info = call.at<std::int32_t>(op.info)] {
      const auto n = static_cast<lapack_int>(op.n), lda = static_cast<lapack_int>(op.lda);
      for (std::size_t i = 0; i < list.size(); ++i) {
        const auto first = static_cast<std::int64_t>(i) * op.n;
        info[i] = n == 0              ? 0
                  : pivots == nullptr ? factor_without_pivots(n, list[i], op.lda)
                                      : BatchedLapack<T>::getrf(LAPACK_COL_MAJOR, n, n, list[i],
                                                                lda, pivots + first);
      }
    });
  });
}

Result<void> run(const blas::LapackBatched& op, const Call& call, Blas& library) {
  return with_number(op.dtype, [&]<class T>(T) {
    std::vector<T*> list;
    for (const auto& part : call.tail()) list.push_back(call.at<T>(part.range));
    const auto* const pivots = op.pivots.present() ? call.at<const lapack_int>(op.pivots) : nullptr;
    return library.services.submit(call, [op, list, pivots, info = call.at<std::int32_t>(op.info)] {
      const auto count = static_cast<std::size_t>(op.batch);
      for (std::size_t i = 0; i < count; ++i) {
        const auto first = static_cast<std::int64_t>(i) * op.n;
        const auto found =
            compute(op, list[i], list[count + i], pivots != nullptr ? pivots + first : nullptr);
        if (op.tells_info()) info[i] = found;
      }
    });
  });
}

TROUPE_HANDLERS(Blas)

}  // namespace troupe::host::cpu
