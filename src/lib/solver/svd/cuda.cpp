#include "lib/solver/cuda.hpp"

/// Singular values on the cuda engine.
namespace troupe::host::cuda {
namespace {

int economy(solver::Extent extent) {
  return extent == solver::Extent::economy ? 1 : 0;
}

}  // namespace

Result<void> set_gesvdj(Solver::State& own, double tolerance, std::int32_t max_sweeps) {
  Handle<Solver::GesvdjTraits> info;  // with the library's own tolerance
  TROUPE_CUDA_TRY(cusolverDnCreateGesvdjInfo(info.out()));
  if (tolerance > 0) TROUPE_CUDA_TRY(cusolverDnXgesvdjSetTolerance(info.get(), tolerance));
  TROUPE_CUDA_TRY(cusolverDnXgesvdjSetMaxSweeps(info.get(), max_sweeps));
  own.gesvdj = std::move(info);
  return {};
}

Result<void> run(const solver::Gesvd& op, const Call& call, Solver& library) {
  if (op.m == 0 || op.n == 0) return library.tell_zero(op.info, sizeof(std::int32_t), call);
  if (auto answer = refuse<std::int32_t>(op.dtype, {{&op.a, op.m, op.n, op.lda}}, op.info,
                                         {&op.s, std::min(op.m, op.n)}, call, library))
    return *answer;
  const auto type = type_of(op.dtype), real = type_of(real_type(op.dtype));
  constexpr signed char kLetters[] = {'N', 'S', 'A', 'O'};
  const auto u_job = kLetters[static_cast<std::size_t>(op.columns_u)],
             v_job = kLetters[static_cast<std::size_t>(op.columns_v)];
  void* const u = op.u.present() ? call.at(op.u) : nullptr;
  void* const vt = op.vt.present() ? call.at(op.vt) : nullptr;
  const auto ldu = op.u.present() ? op.ldu : op.m, ldvt = op.vt.present() ? op.ldvt : op.n;
  TROUPE_CUDA_PROPAGATE(library.issue(
      op, call, {},
      [&](Solver::State& own, Needed& needed) {
        return cusolverDnXgesvd_bufferSize(own.handle.get(), own.params.get(), u_job, v_job, op.m,
                                           op.n, type, call.at(op.a), op.lda, real, call.at(op.s),
                                           type, u, ldu, type, vt, ldvt, type, &needed.device_bytes,
                                           &needed.host_bytes);
      },
      [&](Solver::State& own, const Needed& needed) {
        return cusolverDnXgesvd(own.handle.get(), own.params.get(), u_job, v_job, op.m, op.n, type,
                                call.at(op.a), op.lda, real, call.at(op.s), type, u, ldu, type, vt,
                                ldvt, type, own.device(), needed.device_bytes, own.host_memory(),
                                needed.host_bytes, own.info());
      }));
  return library.tell(op.info, call);
}

Result<void> run(const solver::Gesvdj& op, const Call& call, Solver& library) {
  if (op.m == 0 || op.n == 0) return library.tell_zero(op.told, sizeof(solver::Sweeps), call);
  if (auto answer = refuse<solver::Sweeps>(op.dtype, {{&op.a, op.m, op.n, op.lda}}, op.told,
                                           {&op.s, std::min(op.m, op.n)}, call, library))
    return *answer;
  auto& own = library.state(call.queue());
  TROUPE_CUDA_PROPAGATE(set_gesvdj(own, op.tolerance, op.max_sweeps));
  const bool wanted = op.vectors == solver::Vectors::yes;
  TROUPE_CUDA_PROPAGATE(
      with_number(op.dtype, {op.m, op.n, op.lda, op.ldu, op.ldv}, [&]<class T>(T) {
        auto* const a = call.at<Native<T>>(op.a);
        auto* const s = call.at<RealOf<T>>(op.s);
        auto* const u = wanted ? call.at<Native<T>>(op.u) : nullptr;
        auto* const v = wanted ? call.at<Native<T>>(op.v) : nullptr;
        const int m = to_int(op.m), n = to_int(op.n), lda = to_int(op.lda),
                  ldu = to_int(wanted ? op.ldu : op.m), ldv = to_int(wanted ? op.ldv : op.n);
        // The library writes vectors that nobody wants, too.
        const auto unwanted_u = wanted ? 0 : bytes_of(op.m * op.m, op.dtype),
                   unwanted_v = wanted ? 0 : bytes_of(op.n * op.n, op.dtype);
        return library.issue_narrow<T>(
            op, call, aligned(unwanted_u) + unwanted_v,
            [&](cusolverDnHandle_t handle, int* length) {
              return Cusolver<T>::gesvdj_size(handle, flag(op.vectors), economy(op.extent), m, n, a,
                                              lda, s, u, ldu, v, ldv, length, own.gesvdj.get());
            },
            [&](cusolverDnHandle_t handle, Native<T>* memory, int length, int* info) {
              return Cusolver<T>::gesvdj(
                  handle, flag(op.vectors), economy(op.extent), m, n, a, lda, s,
                  wanted ? u : reinterpret_cast<Native<T>*>(own.at(0)), ldu,
                  wanted ? v : reinterpret_cast<Native<T>*>(own.at(aligned(unwanted_u))), ldv,
                  memory, length, info, own.gesvdj.get());
            });
      }));
  TROUPE_CUDA_TRY(cudaStreamSynchronize(library.services.stream(call.queue())));
  int sweeps = 0;
  double residual = 0;
  TROUPE_CUDA_TRY(cusolverDnXgesvdjGetSweeps(own.handle.get(), own.gesvdj.get(), &sweeps));
  TROUPE_CUDA_TRY(cusolverDnXgesvdjGetResidual(own.handle.get(), own.gesvdj.get(), &residual));
  return tell_sweeps(op.told, sweeps, residual, call, library);
}

Result<void> run(const solver::Gesvdp& op, const Call& call, Solver& library) {
  if (op.m == 0 || op.n == 0) return library.tell_zero(op.told, sizeof(solver::Perturbation), call);
  if (auto answer = refuse<solver::Perturbation>(op.dtype, {{&op.a, op.m, op.n, op.lda}}, op.told,
                                                 {&op.s, std::min(op.m, op.n)}, call, library))
    return *answer;
  const auto type = type_of(op.dtype), real = type_of(real_type(op.dtype));
  const bool wanted = op.vectors == solver::Vectors::yes;
  void* const u = wanted ? call.at(op.u) : nullptr;
  void* const v = wanted ? call.at(op.v) : nullptr;
  const auto ldu = wanted ? op.ldu : op.m, ldv = wanted ? op.ldv : op.n;
  const auto unwanted_u = wanted ? 0 : bytes_of(op.m * op.m, op.dtype),
             unwanted_v = wanted ? 0 : bytes_of(op.n * op.n, op.dtype);
  double error = 0;
  TROUPE_CUDA_PROPAGATE(library.issue(
      op, call, {.extra_bytes = aligned(unwanted_u) + unwanted_v},
      [&](Solver::State& own, Needed& needed) {
        return cusolverDnXgesvdp_bufferSize(own.handle.get(), own.params.get(), flag(op.vectors),
                                            economy(op.extent), op.m, op.n, type, call.at(op.a),
                                            op.lda, real, call.at(op.s), type, u, ldu, type, v, ldv,
                                            type, &needed.device_bytes, &needed.host_bytes);
      },
      [&](Solver::State& own, const Needed& needed) {
        return cusolverDnXgesvdp(
            own.handle.get(), own.params.get(), flag(op.vectors), economy(op.extent), op.m, op.n,
            type, call.at(op.a), op.lda, real, call.at(op.s), type, wanted ? u : own.at(0), ldu,
            type, wanted ? v : own.at(aligned(unwanted_u)), ldv, type, own.device(),
            needed.device_bytes, own.host_memory(), needed.host_bytes, own.info(), &error);
      }));
  TROUPE_CUDA_TRY(cudaStreamSynchronize(library.services.stream(call.queue())));
  TROUPE_CUDA_PROPAGATE(library.tell(op.told, call));
  return library.tell_more(op.told, offsetof(solver::Perturbation, error), error, call);
}

Result<void> run(const solver::Gesvdr& op, const Call& call, Solver& library) {
  if (auto answer = refuse<std::int32_t>(op.dtype, {{&op.a, op.m, op.n, op.lda}}, op.info,
                                         {&op.s, op.rank}, call, library))
    return *answer;
  const auto type = type_of(op.dtype), real = type_of(real_type(op.dtype));
  const bool left = op.u.present(), right = op.v.present();
  const signed char u_job = left ? 'S' : 'N', v_job = right ? 'S' : 'N';
  void* const u = left ? call.at(op.u) : nullptr;
  void* const v = right ? call.at(op.v) : nullptr;
  const auto ldu = left ? op.ldu : op.m, ldv = right ? op.ldv : op.n;
  // The library may write more values than `rank`: they go to memory of its own.
  const auto size = size_of(real_type(op.dtype));
  TROUPE_CUDA_PROPAGATE(library.issue(
      op, call, {.extra_bytes = size * static_cast<std::size_t>(std::min(op.m, op.n))},
      [&](Solver::State& own, Needed& needed) {
        return cusolverDnXgesvdr_bufferSize(
            own.handle.get(), own.params.get(), u_job, v_job, op.m, op.n, op.rank, op.oversampling,
            op.iterations, type, call.at(op.a), op.lda, real, own.extra(), type, u, ldu, type, v,
            ldv, type, &needed.device_bytes, &needed.host_bytes);
      },
      [&](Solver::State& own, const Needed& needed) {
        return cusolverDnXgesvdr(own.handle.get(), own.params.get(), u_job, v_job, op.m, op.n,
                                 op.rank, op.oversampling, op.iterations, type, call.at(op.a),
                                 op.lda, real, own.extra(), type, u, ldu, type, v, ldv, type,
                                 own.device(), needed.device_bytes, own.host_memory(),
                                 needed.host_bytes, own.info());
      }));
  TROUPE_CUDA_TRY(cudaMemcpyAsync(call.at(op.s), library.state(call.queue()).extra(),
                                  size * static_cast<std::size_t>(op.rank), cudaMemcpyDefault,
                                  library.services.stream(call.queue())));
  return library.tell(op.info, call);
}

TROUPE_HANDLERS(Solver)

}  // namespace troupe::host::cuda
