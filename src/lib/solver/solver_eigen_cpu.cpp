#include "lib/solver/solver_cpu.hpp"

/// Eigenvalues on the cpu engine.
namespace troupe::host::cpu {

Result<void> Solver::run(const solver::Syevd& op, const Call& call) {
  return with_number(op.dtype, {op.lda}, [&]<class T>(T) {
    return queue_for_info(
        call, op.info, op.n == 0, [op, a = call.at<T>(op.a), w = call.at<RealOf<T>>(op.w)] {
          return Lapack<T>::evd(LAPACK_COL_MAJOR, letter(op.vectors), letter(op.uplo), to_int(op.n),
                                a, to_int(op.lda), w);
        });
  });
}

}  // namespace troupe::host::cpu
