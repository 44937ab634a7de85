#include "lib/solver/solver_cuda.hpp"

/// Eigenvalues on the cuda engine.
namespace troupe::host::cuda {

Result<void> Solver::run(const solver::Syevd& op, const Call& call) {
  if (op.n == 0) return tell_zero(op.info, sizeof(std::int32_t), call);
  const auto type = type_of(op.dtype), real = type_of(real_type(op.dtype));
  TROUPE_CUDA_PROPAGATE(issue(
      op, call, {},
      [&](State& own, Needed& needed) {
        return cusolverDnXsyevd_bufferSize(own.handle.get(), own.params.get(), flag(op.vectors),
                                           flag(op.uplo), op.n, type, call.at(op.a), op.lda, real,
                                           call.at(op.w), type, &needed.device_bytes,
                                           &needed.host_bytes);
      },
      [&](State& own, const Needed& needed) {
        return cusolverDnXsyevd(own.handle.get(), own.params.get(), flag(op.vectors), flag(op.uplo),
                                op.n, type, call.at(op.a), op.lda, real, call.at(op.w), type,
                                own.device(), needed.device_bytes, own.host_memory(),
                                needed.host_bytes, own.info());
      }));
  return tell(op.info, call);
}

}  // namespace troupe::host::cuda
