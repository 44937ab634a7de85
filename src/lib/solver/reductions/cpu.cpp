#include "lib/solver/cpu.hpp"

/// Steps of factorisations and eigenvalue problems on the cpu engine.
namespace troupe::host::cpu {

Result<void> run(const solver::Sytrd& op, const Call& call, Solver& library) {
  return with_number(op.dtype, {op.lda}, [&]<class T>(T) {
    using Real = RealOf<T>;
    return library.queue_silent(call, op.n == 0,
                                [op, a = call.at<T>(op.a), d = call.at<Real>(op.d),
                                 e = call.at<Real>(op.e), tau = call.at<T>(op.tau)] {
                                  return Lapack<T>::trd(LAPACK_COL_MAJOR, letter(op.uplo),
                                                        to_int(op.n), a, to_int(op.lda), d, e, tau);
                                });
  });
}

Result<void> run(const solver::Orgtr& op, const Call& call, Solver& library) {
  return with_number(op.dtype, {op.lda}, [&]<class T>(T) {
    return library.queue_silent(call, op.n == 0,
                                [op, a = call.at<T>(op.a), tau = call.at<const T>(op.tau)] {
                                  return Lapack<T>::gtr(LAPACK_COL_MAJOR, letter(op.uplo),
                                                        to_int(op.n), a, to_int(op.lda), tau);
                                });
  });
}

Result<void> run(const solver::Ormtr& op, const Call& call, Solver& library) {
  return with_number(op.dtype, {op.m, op.n, op.lda, op.ldc}, [&]<class T>(T) {
    return library.queue_silent(
        call, op.m == 0 || op.n == 0,
        [op, transpose = letter_of_q<T>(op.transpose), a = call.at<const T>(op.a),
         tau = call.at<const T>(op.tau), c = call.at<T>(op.c)] {
          return Lapack<T>::mtr(LAPACK_COL_MAJOR, letter(op.side), letter(op.uplo), transpose,
                                to_int(op.m), to_int(op.n), a, to_int(op.lda), tau, c,
                                to_int(op.ldc));
        });
  });
}

Result<void> run(const solver::Gebrd& op, const Call& call, Solver& library) {
  return with_number(op.dtype, {op.m, op.lda}, [&]<class T>(T) {
    using Real = RealOf<T>;
    return library.queue_silent(
        call, op.n == 0,
        [op, a = call.at<T>(op.a), d = call.at<Real>(op.d), e = call.at<Real>(op.e),
         tau_q = call.at<T>(op.tau_q), tau_p = call.at<T>(op.tau_p)] {
          return Lapack<T>::gebrd(LAPACK_COL_MAJOR, to_int(op.m), to_int(op.n), a, to_int(op.lda),
                                  d, e, tau_q, tau_p);
        });
  });
}

Result<void> run(const solver::Orgbr& op, const Call& call, Solver& library) {
  return with_number(op.dtype, {op.m, op.lda}, [&]<class T>(T) {
    return library.queue_silent(
        call, op.n == 0, [op, a = call.at<T>(op.a), tau = call.at<const T>(op.tau)] {
          const bool left = op.side == solver::Side::left;
          return Lapack<T>::gbr(LAPACK_COL_MAJOR, left ? 'Q' : 'P', to_int(op.rows()), to_int(op.n),
                                to_int(left ? op.n : op.m), a, to_int(op.lda), tau);
        });
  });
}

Result<void> run(const solver::Larft& op, const Call& call, Solver& library) {
  return with_number(op.dtype, {op.n, op.ldv, op.ldt}, [&]<class T>(T) {
    return library.queue_silent(
        call, op.k == 0,
        [op, v = call.at<const T>(op.v), tau = call.at<const T>(op.tau), t = call.at<T>(op.t)] {
          return Lapack<T>::larft(LAPACK_COL_MAJOR, 'F', 'C', to_int(op.n), to_int(op.k), v,
                                  to_int(op.ldv), tau, t, to_int(op.ldt));
        });
  });
}

Result<void> run(const solver::Lauum& op, const Call& call, Solver& library) {
  return with_number(op.dtype, {op.lda}, [&]<class T>(T) {
    return library.queue_silent(call, op.n == 0, [op, a = call.at<T>(op.a)] {
      return Lapack<T>::lauum(LAPACK_COL_MAJOR, letter(op.uplo), to_int(op.n), a, to_int(op.lda));
    });
  });
}

TROUPE_HANDLERS(Solver)

}  // namespace troupe::host::cpu
