#include "lib/solver/cuda.hpp"

/// Eigenvalues on the cuda engine.
namespace troupe::host::cuda {
namespace {

cusolverEigRange_t flag(solver::Range range) {
  constexpr cusolverEigRange_t kRanges[] = {CUSOLVER_EIG_RANGE_ALL, CUSOLVER_EIG_RANGE_V,
                                            CUSOLVER_EIG_RANGE_I};
  return kRanges[static_cast<std::size_t>(range)];
}

}  // namespace

Result<void> run(const solver::Syevd& op, const Call& call, Solver& library) {
  if (op.n == 0) return library.tell_zero(op.info, sizeof(std::int32_t), call);
  if (auto answer =
          refuse<std::int32_t>(op.dtype, {half_of(op)}, op.info, {&op.w, op.n}, call, library))
    return *answer;
  const auto type = type_of(op.dtype), real = type_of(real_type(op.dtype));
  TROUPE_CUDA_PROPAGATE(library.issue(
      op, call, {},
      [&](Solver::State& own, Needed& needed) {
        return cusolverDnXsyevd_bufferSize(own.handle.get(), own.params.get(), flag(op.vectors),
                                           flag(op.uplo), op.n, type, call.at(op.a), op.lda, real,
                                           call.at(op.w), type, &needed.device_bytes,
                                           &needed.host_bytes);
      },
      [&](Solver::State& own, const Needed& needed) {
        return cusolverDnXsyevd(own.handle.get(), own.params.get(), flag(op.vectors), flag(op.uplo),
                                op.n, type, call.at(op.a), op.lda, real, call.at(op.w), type,
                                own.device(), needed.device_bytes, own.host_memory(),
                                needed.host_bytes, own.info());
      }));
  return library.tell(op.info, call);
}

Result<void> set_syevj(Solver::State& own, double tolerance, std::int32_t max_sweeps) {
  Handle<Solver::SyevjTraits> info;  // with the library's own tolerance
  TROUPE_CUDA_TRY(cusolverDnCreateSyevjInfo(info.out()));
  if (tolerance > 0) TROUPE_CUDA_TRY(cusolverDnXsyevjSetTolerance(info.get(), tolerance));
  TROUPE_CUDA_TRY(cusolverDnXsyevjSetMaxSweeps(info.get(), max_sweeps));
  own.syevj = std::move(info);
  return {};
}

Result<void> tell_sweeps(const Operand& cell, int sweeps, double residual, const Call& call,
                         Solver& library) {
  TROUPE_CUDA_PROPAGATE(library.tell(cell, call));
  TROUPE_CUDA_PROPAGATE(library.tell_more(cell, offsetof(solver::Sweeps, sweeps),
                                          static_cast<std::int32_t>(sweeps), call));
  return library.tell_more(cell, offsetof(solver::Sweeps, residual), residual, call);
}

Result<void> tell_sweeps_of_syevj(const Operand& cell, const Call& call, Solver& library) {
  const auto& own = library.state(call.queue());
  TROUPE_CUDA_TRY(cudaStreamSynchronize(library.services.stream(call.queue())));
  int sweeps = 0;
  double residual = 0;
  TROUPE_CUDA_TRY(cusolverDnXsyevjGetSweeps(own.handle.get(), own.syevj.get(), &sweeps));
  TROUPE_CUDA_TRY(cusolverDnXsyevjGetResidual(own.handle.get(), own.syevj.get(), &residual));
  return tell_sweeps(cell, sweeps, residual, call, library);
}

Result<void> run(const solver::Syevj& op, const Call& call, Solver& library) {
  if (op.n == 0) return library.tell_zero(op.told, sizeof(solver::Sweeps), call);
  if (auto answer =
          refuse<solver::Sweeps>(op.dtype, {half_of(op)}, op.told, {&op.w, op.n}, call, library))
    return *answer;
  auto& own = library.state(call.queue());
  TROUPE_CUDA_PROPAGATE(set_syevj(own, op.tolerance, op.max_sweeps));
  TROUPE_CUDA_PROPAGATE(with_number(op.dtype, {op.lda}, [&]<class T>(T) {
    auto* const a = call.at<Native<T>>(op.a);
    auto* const w = call.at<RealOf<T>>(op.w);
    const int n = to_int(op.n), lda = to_int(op.lda);
    return library.issue_narrow<T>(
        op, call, 0,
        [&](cusolverDnHandle_t handle, int* length) {
          return Cusolver<T>::evj_size(handle, flag(op.vectors), flag(op.uplo), n, a, lda, w,
                                       length, own.syevj.get());
        },
        [&](cusolverDnHandle_t handle, Native<T>* memory, int length, int* info) {
          return Cusolver<T>::evj(handle, flag(op.vectors), flag(op.uplo), n, a, lda, w, memory,
                                  length, info, own.syevj.get());
        });
  }));
  return tell_sweeps_of_syevj(op.told, call, library);
}

Result<void> run(const solver::Syevdx& op, const Call& call, Solver& library) {
  if (op.n == 0) return library.tell_zero(op.told, sizeof(solver::FoundEigenvalues), call);
  if (auto answer = refuse<solver::FoundEigenvalues>(op.dtype, {half_of(op)}, op.told,
                                                     {&op.w, op.n}, call, library))
    return *answer;
  const auto type = type_of(op.dtype), real = type_of(real_type(op.dtype));
  const auto range = flag(op.range);
  // In the type of the eigenvalues.
  const bool single = real == CUDA_R_32F;
  float narrow[] = {static_cast<float>(op.from), static_cast<float>(op.to)};
  double wide[] = {op.from, op.to};
  void* const from = single ? static_cast<void*>(&narrow[0]) : &wide[0];
  void* const to = single ? static_cast<void*>(&narrow[1]) : &wide[1];
  std::int64_t found = 0;
  TROUPE_CUDA_PROPAGATE(library.issue(
      op, call, {},
      [&](Solver::State& own, Needed& needed) {
        return cusolverDnXsyevdx_bufferSize(
            own.handle.get(), own.params.get(), flag(op.vectors), range, flag(op.uplo), op.n, type,
            call.at(op.a), op.lda, from, to, op.first, op.last, &found, real, call.at(op.w), type,
            &needed.device_bytes, &needed.host_bytes);
      },
      [&](Solver::State& own, const Needed& needed) {
        return cusolverDnXsyevdx(
            own.handle.get(), own.params.get(), flag(op.vectors), range, flag(op.uplo), op.n, type,
            call.at(op.a), op.lda, from, to, op.first, op.last, &found, real, call.at(op.w), type,
            own.device(), needed.device_bytes, own.host_memory(), needed.host_bytes, own.info());
      }));
  TROUPE_CUDA_TRY(cudaStreamSynchronize(library.services.stream(call.queue())));
  TROUPE_CUDA_PROPAGATE(library.tell(op.told, call));
  return library.tell_more(op.told, offsetof(solver::FoundEigenvalues, count), found, call);
}

Result<void> run(const solver::Sygvd& op, const Call& call, Solver& library) {
  if (op.n == 0) return library.tell_zero(op.info, sizeof(std::int32_t), call);
  if (auto answer = refuse<std::int32_t>(
          op.dtype, {half_of(op), {&op.b, op.n, op.n, op.ldb, counting_of(op.uplo)}}, op.info,
          {&op.w, op.n}, call, library))
    return *answer;
  TROUPE_CUDA_PROPAGATE(with_number(op.dtype, {op.lda, op.ldb}, [&]<class T>(T) {
    auto* const a = call.at<Native<T>>(op.a);
    auto* const b = call.at<Native<T>>(op.b);
    auto* const w = call.at<RealOf<T>>(op.w);
    const int n = to_int(op.n), lda = to_int(op.lda), ldb = to_int(op.ldb);
    const auto problem = static_cast<cusolverEigType_t>(op.problem);
    return library.issue_narrow<T>(
        op, call, 0,
        [&](cusolverDnHandle_t handle, int* length) {
          return Cusolver<T>::gvd_size(handle, problem, flag(op.vectors), flag(op.uplo), n, a, lda,
                                       b, ldb, w, length);
        },
        [&](cusolverDnHandle_t handle, Native<T>* memory, int length, int* info) {
          return Cusolver<T>::gvd(handle, problem, flag(op.vectors), flag(op.uplo), n, a, lda, b,
                                  ldb, w, memory, length, info);
        });
  }));
  return library.tell(op.info, call);
}

Result<void> run(const solver::Sygvj& op, const Call& call, Solver& library) {
  if (op.n == 0) return library.tell_zero(op.told, sizeof(solver::Sweeps), call);
  if (auto answer = refuse<solver::Sweeps>(
          op.dtype, {half_of(op), {&op.b, op.n, op.n, op.ldb, counting_of(op.uplo)}}, op.told,
          {&op.w, op.n}, call, library))
    return *answer;
  auto& own = library.state(call.queue());
  TROUPE_CUDA_PROPAGATE(set_syevj(own, op.tolerance, op.max_sweeps));
  TROUPE_CUDA_PROPAGATE(with_number(op.dtype, {op.lda, op.ldb}, [&]<class T>(T) {
    auto* const a = call.at<Native<T>>(op.a);
    auto* const b = call.at<Native<T>>(op.b);
    auto* const w = call.at<RealOf<T>>(op.w);
    const int n = to_int(op.n), lda = to_int(op.lda), ldb = to_int(op.ldb);
    const auto problem = static_cast<cusolverEigType_t>(op.problem);
    return library.issue_narrow<T>(
        op, call, 0,
        [&](cusolverDnHandle_t handle, int* length) {
          return Cusolver<T>::gvj_size(handle, problem, flag(op.vectors), flag(op.uplo), n, a, lda,
                                       b, ldb, w, length, own.syevj.get());
        },
        [&](cusolverDnHandle_t handle, Native<T>* memory, int length, int* info) {
          return Cusolver<T>::gvj(handle, problem, flag(op.vectors), flag(op.uplo), n, a, lda, b,
                                  ldb, w, memory, length, info, own.syevj.get());
        });
  }));
  return tell_sweeps_of_syevj(op.told, call, library);
}

Result<void> run(const solver::Sygvdx& op, const Call& call, Solver& library) {
  if (op.n == 0) return library.tell_zero(op.told, sizeof(solver::FoundEigenvalues), call);
  if (auto answer = refuse<solver::FoundEigenvalues>(
          op.dtype, {half_of(op), {&op.b, op.n, op.n, op.ldb, counting_of(op.uplo)}}, op.told,
          {&op.w, op.n}, call, library))
    return *answer;
  int found = 0;
  TROUPE_CUDA_PROPAGATE(with_number(op.dtype, {op.lda, op.ldb}, [&]<class T>(T) {
    auto* const a = call.at<Native<T>>(op.a);
    auto* const b = call.at<Native<T>>(op.b);
    auto* const w = call.at<RealOf<T>>(op.w);
    const int n = to_int(op.n), lda = to_int(op.lda), ldb = to_int(op.ldb),
              first = to_int(op.first), last = to_int(op.last);
    const auto from = static_cast<RealOf<T>>(op.from), to = static_cast<RealOf<T>>(op.to);
    const auto problem = static_cast<cusolverEigType_t>(op.problem);
    return library.issue_narrow<T>(
        op, call, 0,
        [&](cusolverDnHandle_t handle, int* length) {
          return Cusolver<T>::gvdx_size(handle, problem, flag(op.vectors), flag(op.range),
                                        flag(op.uplo), n, a, lda, b, ldb, from, to, first, last,
                                        &found, w, length);
        },
        [&](cusolverDnHandle_t handle, Native<T>* memory, int length, int* info) {
          return Cusolver<T>::gvdx(handle, problem, flag(op.vectors), flag(op.range), flag(op.uplo),
                                   n, a, lda, b, ldb, from, to, first, last, &found, w, memory,
                                   length, info);
        });
  }));
  TROUPE_CUDA_TRY(cudaStreamSynchronize(library.services.stream(call.queue())));
  TROUPE_CUDA_PROPAGATE(library.tell(op.told, call));
  return library.tell_more(op.told, offsetof(solver::FoundEigenvalues, count), std::int64_t{found},
                           call);
}

Result<void> run(const solver::Geev& op, const Call& call, Solver& library) {
  if (op.n == 0) return library.tell_zero(op.info, sizeof(std::int32_t), call);
  if (auto answer = refuse<std::int32_t>(op.dtype, {{&op.a, op.n, op.n, op.lda}}, op.info,
                                         {&op.w, 2 * op.n}, call, library))
    return *answer;
  // Real matrices have complex eigenvalues, and real vectors in pairs.
  const auto type = type_of(op.dtype), complex = type_of(op.complex_type(op.dtype));
  const bool wanted = op.vr.present();
  const auto right = flag(wanted ? solver::Vectors::yes : solver::Vectors::no);
  void* const vr = wanted ? call.at(op.vr) : nullptr;
  const auto ldvr = wanted ? op.ldvr : op.n;
  TROUPE_CUDA_PROPAGATE(library.issue(
      op, call, {},
      [&](Solver::State& own, Needed& needed) {
        return cusolverDnXgeev_bufferSize(
            own.handle.get(), own.params.get(), CUSOLVER_EIG_MODE_NOVECTOR, right, op.n, type,
            call.at(op.a), op.lda, complex, call.at(op.w), type, nullptr, op.n, type, vr, ldvr,
            type, &needed.device_bytes, &needed.host_bytes);
      },
      [&](Solver::State& own, const Needed& needed) {
        return cusolverDnXgeev(own.handle.get(), own.params.get(), CUSOLVER_EIG_MODE_NOVECTOR,
                               right, op.n, type, call.at(op.a), op.lda, complex, call.at(op.w),
                               type, nullptr, op.n, type, vr, ldvr, type, own.device(),
                               needed.device_bytes, own.host_memory(), needed.host_bytes,
                               own.info());
      }));
  return library.tell(op.info, call);
}

TROUPE_HANDLERS(Solver)

}  // namespace troupe::host::cuda
