#include "lib/solver/common/finite_cpu.hpp"

/// QR factorisations and whole solutions on the cpu engine.
namespace troupe::host::cpu {
namespace {

/// The answer of Gesv and Gels where A is not finite.
template <class T, class Op>
lapack_int no_solution(const Op& op, T* x) {
  for (std::int64_t j = 0; j < op.nrhs; ++j) not_finite(x + j * op.ldx, op.n);
  return solver::kNotFinite;
}

}  // namespace

Result<void> run(const solver::Geqrf& op, const Call& call, Solver& library) {
  return with_number(op.dtype, {op.lda, op.n}, [&]<class T>(T) {
    return library.queue_silent(call, op.m == 0 || op.n == 0,
                                [op, a = call.at<T>(op.a), tau = call.at<T>(op.tau)] {
                                  return Lapack<T>::geqrf(LAPACK_COL_MAJOR, to_int(op.m),
                                                          to_int(op.n), a, to_int(op.lda), tau);
                                });
  });
}

Result<void> run(const solver::Ormqr& op, const Call& call, Solver& library) {
  return with_number(op.dtype, {op.lda, op.ldc, op.n}, [&]<class T>(T) {
    const char transpose = letter_of_q<T>(op.transpose);
    return library.queue_silent(call, op.m == 0 || op.n == 0 || op.k == 0,
                                [op, transpose, a = call.at<const T>(op.a),
                                 tau = call.at<const T>(op.tau), c = call.at<T>(op.c)] {
                                  const auto order = op.order();
                                  const auto own = own_copy(order, op.k, a, op.lda);
                                  return Lapack<T>::mqr(LAPACK_COL_MAJOR, letter(op.side),
                                                        transpose, to_int(op.m), to_int(op.n),
                                                        to_int(op.k), own.data(), to_int(order),
                                                        tau, c, to_int(op.ldc));
                                });
  });
}

Result<void> run(const solver::Orgqr& op, const Call& call, Solver& library) {
  return with_number(op.dtype, {op.lda}, [&]<class T>(T) {
    return library.queue_silent(
        call, op.n == 0, [op, a = call.at<T>(op.a), tau = call.at<const T>(op.tau)] {
          return Lapack<T>::gqr(LAPACK_COL_MAJOR, to_int(op.m), to_int(op.n), to_int(op.k), a,
                                to_int(op.lda), tau);
        });
  });
}

Result<void> run(const solver::Gesv& op, const Call& call, Solver& library) {
  return with_number(op.dtype, {op.lda, op.ldb, op.ldx, op.nrhs}, [&]<class T>(T) {
    return library.queue<solver::Refinement>(
        call, op.told, op.n == 0 || op.nrhs == 0,
        [op, a = call.at<T>(op.a), b = call.at<const T>(op.b),
         x = call.at<T>(op.x)](solver::Refinement& told) {
          if (!all_finite(op.n, op.n, a, op.lda)) {
            told.info = no_solution(op, x);
            return;
          }
          copy_matrix(op.n, op.nrhs, b, op.ldb, x, op.ldx);
          std::vector<lapack_int> pivots(static_cast<std::size_t>(op.n));
          told.info = Solver::require_memory(Lapack<T>::gesv(LAPACK_COL_MAJOR, to_int(op.n),
                                                             to_int(op.nrhs), a, to_int(op.lda),
                                                             pivots.data(), x, to_int(op.ldx)));
        });
  });
}

Result<void> run(const solver::Gels& op, const Call& call, Solver& library) {
  return with_number(op.dtype, {op.lda, op.ldb, op.ldx, op.nrhs}, [&]<class T>(T) {
    return library.queue<solver::Refinement>(
        call, op.told, op.n == 0 || op.nrhs == 0,
        [op, a = call.at<T>(op.a), b = call.at<const T>(op.b),
         x = call.at<T>(op.x)](solver::Refinement& told) {
          if (!all_finite(op.m, op.n, a, op.lda)) {
            told.info = no_solution(op, x);
            return;
          }
          std::vector<T> own(static_cast<std::size_t>(op.m * op.nrhs));  // it is overwritten
          copy_matrix(op.m, op.nrhs, b, op.ldb, own.data(), op.m);
          told.info = Solver::require_memory(
              Lapack<T>::gels(LAPACK_COL_MAJOR, 'N', to_int(op.m), to_int(op.n), to_int(op.nrhs), a,
                              to_int(op.lda), own.data(), to_int(op.m)));
          copy_matrix(op.n, op.nrhs, own.data(), op.m, x, op.ldx);
        });
  });
}

TROUPE_HANDLERS(Solver)

}  // namespace troupe::host::cpu
