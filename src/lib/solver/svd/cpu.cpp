#include "lib/solver/svd/decompose_cpu.hpp"

/// Singular values on the cpu engine.
namespace troupe::host::cpu {

Result<void> run(const solver::Gesvd& op, const Call& call, Solver& library) {
  return with_number(op.dtype, {op.lda, op.ldu, op.ldvt}, [&]<class T>(T) {
    using Real = RealOf<T>;
    constexpr char kLetters[] = {'N', 'S', 'A', 'O'};
    const char u_job = kLetters[static_cast<std::size_t>(op.columns_u)],
               v_job = kLetters[static_cast<std::size_t>(op.columns_v)];
    auto* const u = op.u.present() ? call.at<T>(op.u) : nullptr;
    auto* const vt = op.vt.present() ? call.at<T>(op.vt) : nullptr;
    return library.queue_for_info(
        call, op.info, op.m == 0 || op.n == 0,
        [op, u_job, v_job, u, vt, a = call.at<T>(op.a), s = call.at<Real>(op.s)] {
          if (!all_finite(op.m, op.n, a, op.lda)) return not_finite(s, op.n);
          std::vector<Real> superdiagonals(static_cast<std::size_t>(op.n));
          return Lapack<T>::gesvd(LAPACK_COL_MAJOR, u_job, v_job, to_int(op.m), to_int(op.n), a,
                                  to_int(op.lda), s, u, to_int(u != nullptr ? op.ldu : op.m), vt,
                                  to_int(vt != nullptr ? op.ldvt : op.n), superdiagonals.data());
        });
  });
}

template <class Told, class Op>
Result<void> queue_decomposition(const Op& op, const Call& call, Solver& library) {
  return with_number(op.dtype, {op.m, op.n, op.lda, op.ldu, op.ldv}, [&]<class T>(T) {
    const bool vectors = op.vectors == solver::Vectors::yes;
    auto* const u = vectors ? call.at<T>(op.u) : nullptr;
    auto* const v = vectors ? call.at<T>(op.v) : nullptr;
    return library.queue<Told>(
        call, op.told, op.m == 0 || op.n == 0,
        [op, u, v, a = call.at<T>(op.a), s = call.at<RealOf<T>>(op.s)](Told& told) {
          told.info = Solver::require_memory(
              decompose(op.m, op.n, a, op.lda, s, u, op.ldu, v, op.ldv, op.extent));
        });
  });
}

Result<void> run(const solver::Gesvdj& op, const Call& call, Solver& library) {
  return queue_decomposition<solver::Sweeps>(op, call, library);
}

Result<void> run(const solver::Gesvdp& op, const Call& call, Solver& library) {
  return queue_decomposition<solver::Perturbation>(op, call, library);
}

Result<void> run(const solver::Gesvdr& op, const Call& call, Solver& library) {
  return with_number(op.dtype, {op.m, op.n, op.lda}, [&]<class T>(T) {
    auto* const u = op.u.present() ? call.at<T>(op.u) : nullptr;
    auto* const v = op.v.present() ? call.at<T>(op.v) : nullptr;
    return library.queue_for_info(call, op.info, op.m == 0 || op.n == 0,
                                  [op, u, v, a = call.at<T>(op.a), s = call.at<RealOf<T>>(op.s)] {
                                    return decompose_first(op.m, op.n, op.rank, a, op.lda, s, u,
                                                           op.ldu, v, op.ldv);
                                  });
  });
}

TROUPE_HANDLERS(Solver)

}  // namespace troupe::host::cpu
