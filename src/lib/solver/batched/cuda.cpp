#include "lib/solver/cuda.hpp"

/// Batches of matrices on the cuda engine.
namespace troupe::host::cuda {

Result<void**> addresses_of_tail(const Call& call, Solver& library) {
  TROUPE_CUDA_PROPAGATE(
      library.reserve(call.queue(), {.extra_bytes = call.tail().size() * sizeof(void*)}));
  std::vector<void*> matrices;
  for (const auto& part : call.tail()) matrices.push_back(call.at(part.range));
  auto** const written = static_cast<void**>(library.state(call.queue()).extra());
  TROUPE_CUDA_PROPAGATE(library.services.write_addresses(call.queue(), written, matrices));
  return written;
}

template <class Op>
Result<void> tell_zeros(const Op& op, const Call& call, Solver& library) {
  return library.tell_zero(op.info, sizeof(std::int32_t) * static_cast<std::size_t>(op.batch),
                           call);
}

Result<void> run(const solver::PotrfBatched& op, const Call& call, Solver& library) {
  if (op.batch == 0) return {};
  if (op.n == 0) return tell_zeros(op, call, library);
  const auto list = addresses_of_tail(call, library);
  if (!list) return list.error();
  return with_number(op.dtype, [&]<class T>(T) -> Result<void> {
    TROUPE_CUDA_TRY(Cusolver<T>::potrf_batched(library.state(call.queue()).handle.get(),
                                               flag(op.uplo), to_int(op.n),
                                               reinterpret_cast<Native<T>**>(*list), to_int(op.lda),
                                               call.at<int>(op.info), to_int(op.batch)));
    TROUPE_CUDA_TRY(kernels::find_no_pivots(library.services.launch(call.queue()),
                                            reinterpret_cast<const Native<T>* const*>(*list),
                                            op.lda, op.n, op.batch, call.at<int>(op.info)));
    return {};
  });
}

Result<void> run(const solver::PotrsBatched& op, const Call& call, Solver& library) {
  if (op.batch == 0 || op.n == 0) return {};
  const auto list = addresses_of_tail(call, library);
  if (!list) return list.error();
  return with_number(op.dtype, [&]<class T>(T) -> Result<void> {
    auto** const a = reinterpret_cast<Native<T>**>(*list);
    const auto& own = library.state(call.queue());
    TROUPE_CUDA_TRY(Cusolver<T>::potrs_batched(own.handle.get(), flag(op.uplo), to_int(op.n), 1, a,
                                               to_int(op.lda), a + op.batch, to_int(op.ldb),
                                               own.info(), to_int(op.batch)));
    return {};
  });
}

Result<void> run(const solver::SyevBatched& op, const Call& call, Solver& library) {
  if (op.batch == 0) return {};
  if (op.n == 0) return tell_zeros(op, call, library);
  TROUPE_CUDA_PROPAGATE(find(op, counting_of(op.uplo), op.n, true, call, library));
  const auto type = type_of(op.dtype), real = type_of(real_type(op.dtype));
  TROUPE_CUDA_PROPAGATE(library.issue(
      op, call, {},
      [&](Solver::State& own, Needed& needed) {
        return cusolverDnXsyevBatched_bufferSize(
            own.handle.get(), own.params.get(), flag(op.vectors), flag(op.uplo), op.n, type,
            call.at(op.a), op.lda, real, call.at(op.w), type, &needed.device_bytes,
            &needed.host_bytes, op.batch);
      },
      [&](Solver::State& own, const Needed& needed) {
        return cusolverDnXsyevBatched(
            own.handle.get(), own.params.get(), flag(op.vectors), flag(op.uplo), op.n, type,
            call.at(op.a), op.lda, real, call.at(op.w), type, own.device(), needed.device_bytes,
            own.host_memory(), needed.host_bytes, call.at<int>(op.info), op.batch);
      }));
  return tell_found(op, op.w, op.n, call, library);
}

Result<void> run(const solver::SyevjBatched& op, const Call& call, Solver& library) {
  if (op.batch == 0) return {};
  if (op.n == 0) return tell_zeros(op, call, library);
  TROUPE_CUDA_PROPAGATE(find(op, counting_of(op.uplo), op.n, true, call, library));
  auto& own = library.state(call.queue());
  TROUPE_CUDA_PROPAGATE(set_syevj(own, op.tolerance, op.max_sweeps));
  TROUPE_CUDA_PROPAGATE(with_number(op.dtype, [&]<class T>(T) {
    auto* const a = call.at<Native<T>>(op.a);
    auto* const w = call.at<RealOf<T>>(op.w);
    const int n = to_int(op.n), lda = to_int(op.lda), batch = to_int(op.batch);
    return library.issue_narrow<T>(
        op, call, 0,
        [&](cusolverDnHandle_t handle, int* length) {
          return Cusolver<T>::evj_batched_size(handle, flag(op.vectors), flag(op.uplo), n, a, lda,
                                               w, length, own.syevj.get(), batch);
        },
        [&](cusolverDnHandle_t handle, Native<T>* memory, int length, int*) {
          return Cusolver<T>::evj_batched(handle, flag(op.vectors), flag(op.uplo), n, a, lda, w,
                                          memory, length, call.at<int>(op.info), own.syevj.get(),
                                          batch);
        });
  }));
  return tell_found(op, op.w, op.n, call, library);
}

Result<void> run(const solver::GesvdjBatched& op, const Call& call, Solver& library) {
  if (op.batch == 0) return {};
  if (op.m == 0 || op.n == 0) return tell_zeros(op, call, library);
  TROUPE_CUDA_PROPAGATE(find(op, kernels::Counting::all, op.m, true, call, library));
  auto& own = library.state(call.queue());
  TROUPE_CUDA_PROPAGATE(set_gesvdj(own, op.tolerance, op.max_sweeps));
  const bool wanted = op.vectors == solver::Vectors::yes;
  TROUPE_CUDA_PROPAGATE(with_number(op.dtype, [&]<class T>(T) {
    auto* const a = call.at<Native<T>>(op.a);
    auto* const s = call.at<RealOf<T>>(op.s);
    auto* const u = wanted ? call.at<Native<T>>(op.u) : nullptr;
    auto* const v = wanted ? call.at<Native<T>>(op.v) : nullptr;
    const int m = to_int(op.m), n = to_int(op.n), lda = to_int(op.lda),
              ldu = to_int(wanted ? op.ldu : op.m), ldv = to_int(wanted ? op.ldv : op.n),
              batch = to_int(op.batch);
    const auto unwanted_u = wanted ? 0 : bytes_of(op.batch * op.m * op.m, op.dtype),
               unwanted_v = wanted ? 0 : bytes_of(op.batch * op.n * op.n, op.dtype);
    return library.issue_narrow<T>(
        op, call, aligned(unwanted_u) + unwanted_v,
        [&](cusolverDnHandle_t handle, int* length) {
          return Cusolver<T>::gesvdj_batched_size(handle, flag(op.vectors), m, n, a, lda, s, u, ldu,
                                                  v, ldv, length, own.gesvdj.get(), batch);
        },
        [&](cusolverDnHandle_t handle, Native<T>* memory, int length, int*) {
          // The library writes vectors that nobody wants, too.
          return Cusolver<T>::gesvdj_batched(
              handle, flag(op.vectors), m, n, a, lda, s,
              wanted ? u : reinterpret_cast<Native<T>*>(own.at(0)), ldu,
              wanted ? v : reinterpret_cast<Native<T>*>(own.at(aligned(unwanted_u))), ldv, memory,
              length, call.at<int>(op.info), own.gesvdj.get(), batch);
        });
  }));
  return tell_found(op, op.s, std::min(op.m, op.n), call, library);
}

Result<void> run(const solver::GesvdaBatched& op, const Call& call, Solver& library) {
  if (op.batch == 0) return {};
  TROUPE_CUDA_PROPAGATE(find(op, kernels::Counting::all, op.m, false, call, library));
  const auto& own = library.state(call.queue());
  const bool wanted = op.vectors == solver::Vectors::yes;
  TROUPE_CUDA_PROPAGATE(with_number(op.dtype, [&]<class T>(T) {
    const auto* const a = call.at<const Native<T>>(op.a);
    auto* const s = call.at<RealOf<T>>(op.s);
    auto* const u = wanted ? call.at<Native<T>>(op.u) : nullptr;
    auto* const v = wanted ? call.at<Native<T>>(op.v) : nullptr;
    const int rank = to_int(op.rank), m = to_int(op.m), n = to_int(op.n), lda = to_int(op.lda),
              ldu = to_int(wanted ? op.ldu : op.m), ldv = to_int(wanted ? op.ldv : op.n),
              batch = to_int(op.batch);
    const long long stride_a = op.lda * op.n, stride_s = op.rank,
                    stride_u = static_cast<long long>(ldu) * rank,
                    stride_v = static_cast<long long>(ldv) * rank;
    const auto unwanted_u = wanted ? 0 : bytes_of(op.batch * stride_u, op.dtype),
               unwanted_v = wanted ? 0 : bytes_of(op.batch * stride_v, op.dtype);
    return library.issue_narrow<T>(
        op, call, aligned(unwanted_u) + unwanted_v,
        [&](cusolverDnHandle_t handle, int* length) {
          return Cusolver<T>::gesvda_size(handle, flag(op.vectors), rank, m, n, a, lda, stride_a, s,
                                          stride_s, u, ldu, stride_u, v, ldv, stride_v, length,
                                          batch);
        },
        [&](cusolverDnHandle_t handle, Native<T>* memory, int length, int*) {
          // It writes vectors that nobody wants, too. No residuals: they would be numbers on the
          // host.
          return Cusolver<T>::gesvda(
              handle, flag(op.vectors), rank, m, n, a, lda, stride_a, s, stride_s,
              wanted ? u : reinterpret_cast<Native<T>*>(own.at(0)), ldu, stride_u,
              wanted ? v : reinterpret_cast<Native<T>*>(own.at(aligned(unwanted_u))), ldv, stride_v,
              memory, length, call.at<int>(op.info), nullptr, batch);
        });
  }));
  return tell_found(op, op.s, op.rank, call, library);
}

TROUPE_HANDLERS(Solver)

}  // namespace troupe::host::cuda
