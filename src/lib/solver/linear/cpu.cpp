#include "lib/solver/common/finite_cpu.hpp"

#include <cblas.h>

/// Linear systems on the cpu engine.
namespace troupe::host::cpu {
namespace {

/// LU without pivots, which LAPACK does not have. Gives info.
template <class T>
lapack_int factor_without_pivots(std::int64_t m, std::int64_t n, T* a, std::int64_t lda) {
  lapack_int info = 0;
  for (std::int64_t k = 0; k < std::min(m, n); ++k) {
    const T pivot = a[k * lda + k];
    if (pivot == T(0)) {
      if (info == 0) info = to_int(k + 1);
      continue;
    }
    for (auto i = k + 1; i < m; ++i) a[k * lda + i] /= pivot;
    for (auto j = k + 1; j < n; ++j) {
      for (auto i = k + 1; i < m; ++i) a[j * lda + i] -= a[k * lda + i] * a[j * lda + k];
    }
  }
  return info;
}

}  // namespace

Result<void> run(const solver::Potrf& op, const Call& call, Solver& library) {
  return with_number(op.dtype, {op.lda}, [&]<class T>(T) {
    return library.queue_for_info(call, op.info, op.n == 0, [op, a = call.at<T>(op.a)] {
      return factor_definite(op.uplo, op.n, a, op.lda);
    });
  });
}

Result<void> run(const solver::Potrs& op, const Call& call, Solver& library) {
  return with_number(op.dtype, {op.lda, op.ldb, op.nrhs}, [&]<class T>(T) {
    return library.queue_silent(
        call, op.n == 0 || op.nrhs == 0, [op, a = call.at<const T>(op.a), b = call.at<T>(op.b)] {
          return Lapack<T>::potrs(LAPACK_COL_MAJOR, letter(op.uplo), to_int(op.n), to_int(op.nrhs),
                                  a, to_int(op.lda), b, to_int(op.ldb));
        });
  });
}

Result<void> run(const solver::Potri& op, const Call& call, Solver& library) {
  return with_number(op.dtype, {op.lda}, [&]<class T>(T) {
    return library.queue_for_info(call, op.info, op.n == 0, [op, a = call.at<T>(op.a)] {
      return Lapack<T>::potri(LAPACK_COL_MAJOR, letter(op.uplo), to_int(op.n), a, to_int(op.lda));
    });
  });
}

Result<void> run(const solver::Trtri& op, const Call& call, Solver& library) {
  return with_number(op.dtype, {op.lda}, [&]<class T>(T) {
    return library.queue_for_info(call, op.info, op.n == 0, [op, a = call.at<T>(op.a)] {
      return Lapack<T>::trtri(LAPACK_COL_MAJOR, letter(op.uplo), letter(op.diagonal), to_int(op.n),
                              a, to_int(op.lda));
    });
  });
}

Result<void> run(const solver::Getrf& op, const Call& call, Solver& library) {
  return with_number(op.dtype, {op.lda}, [&]<class T>(T) {
    auto* const pivots = op.pivots.present() ? call.at<std::int64_t>(op.pivots) : nullptr;
    return library.queue_for_info(
        call, op.info, op.m == 0 || op.n == 0, [op, pivots, a = call.at<T>(op.a)] {
          if (pivots == nullptr) return factor_without_pivots(op.m, op.n, a, op.lda);
          std::vector<lapack_int> narrow(static_cast<std::size_t>(std::min(op.m, op.n)));
          const auto info = Lapack<T>::getrf(LAPACK_COL_MAJOR, to_int(op.m), to_int(op.n), a,
                                             to_int(op.lda), narrow.data());
          std::copy(narrow.begin(), narrow.end(), pivots);
          return info;
        });
  });
}

Result<void> run(const solver::Getrs& op, const Call& call, Solver& library) {
  return with_number(op.dtype, {op.lda, op.ldb, op.nrhs}, [&]<class T>(T) {
    const auto* const pivots =
        op.pivots.present() ? call.at<const std::int64_t>(op.pivots) : nullptr;
    return library.queue_silent(call, op.n == 0 || op.nrhs == 0,
                                [op, pivots, a = call.at<const T>(op.a), b = call.at<T>(op.b)] {
                                  return Lapack<T>::getrs(
                                      LAPACK_COL_MAJOR, letter(op.transpose), to_int(op.n),
                                      to_int(op.nrhs), a, to_int(op.lda),
                                      narrowed(pivots, op.n, op.n).data(), b, to_int(op.ldb));
                                });
  });
}

Result<void> run(const solver::Sytrf& op, const Call& call, Solver& library) {
  return with_number(op.dtype, {op.lda}, [&]<class T>(T) {
    return library.queue_for_info(
        call, op.info, op.n == 0,
        [op, a = call.at<T>(op.a), pivots = call.at<std::int64_t>(op.pivots)] {
          std::vector<lapack_int> narrow(static_cast<std::size_t>(op.n));
          const auto info = Lapack<T>::sytrf(LAPACK_COL_MAJOR, letter(op.uplo), to_int(op.n), a,
                                             to_int(op.lda), narrow.data());
          std::copy(narrow.begin(), narrow.end(), pivots);
          return info;
        });
  });
}

Result<void> run(const solver::Sytri& op, const Call& call, Solver& library) {
  return with_number(op.dtype, {op.lda}, [&]<class T>(T) {
    return library.queue_for_info(
        call, op.info, op.n == 0,
        [op, a = call.at<T>(op.a), pivots = call.at<const std::int64_t>(op.pivots)] {
          return Lapack<T>::sytri(LAPACK_COL_MAJOR, letter(op.uplo), to_int(op.n), a,
                                  to_int(op.lda), narrowed(pivots, op.n, op.n).data());
        });
  });
}

Result<void> run(const solver::Laswp& op, const Call& call, Solver& library) {
  return with_number(op.dtype, {op.n, op.lda}, [&]<class T>(T) {
    return library.queue_silent(
        call, op.n == 0 || op.last < op.first,
        [op, a = call.at<T>(op.a), pivots = call.at<const std::int64_t>(op.pivots)] {
          return Lapack<T>::laswp(
              LAPACK_COL_MAJOR, to_int(op.n), a, to_int(op.lda), to_int(op.first), to_int(op.last),
              narrowed(pivots, op.last, op.m).data(), op.order == solver::Order::forward ? 1 : -1);
        });
  });
}

Result<void> run(const solver::Sytrs& op, const Call& call, Solver& library) {
  return with_number(op.dtype, {op.lda, op.ldb, op.nrhs}, [&]<class T>(T) {
    return library.queue_silent(
        call, op.n == 0 || op.nrhs == 0,
        [op, a = call.at<const T>(op.a), pivots = call.at<const std::int64_t>(op.pivots),
         b = call.at<T>(op.b)] {
          return Lapack<T>::sytrs(LAPACK_COL_MAJOR, letter(op.uplo), to_int(op.n), to_int(op.nrhs),
                                  a, to_int(op.lda), narrowed(pivots, op.n, op.n).data(), b,
                                  to_int(op.ldb));
        });
  });
}

TROUPE_HANDLERS(Solver)

}  // namespace troupe::host::cpu
