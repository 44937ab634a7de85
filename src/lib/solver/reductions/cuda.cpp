#include "lib/solver/cuda.hpp"

/// Steps of factorisations and eigenvalue problems on the cuda engine.
namespace troupe::host::cuda {

Result<void> run(const solver::Sytrd& op, const Call& call, Solver& library) {
  if (op.n == 0) return {};
  return with_number(op.dtype, {op.lda}, [&]<class T>(T) {
    auto* const a = call.at<Native<T>>(op.a);
    auto* const d = call.at<RealOf<T>>(op.d);
    auto* const e = call.at<RealOf<T>>(op.e);
    auto* const tau = call.at<Native<T>>(op.tau);
    const int n = to_int(op.n), lda = to_int(op.lda);
    return library.issue_narrow<T>(
        op, call, 0,
        [&](cusolverDnHandle_t handle, int* length) {
          return Cusolver<T>::trd_size(handle, flag(op.uplo), n, a, lda, d, e, tau, length);
        },
        [&](cusolverDnHandle_t handle, Native<T>* memory, int length, int* info) {
          return Cusolver<T>::trd(handle, flag(op.uplo), n, a, lda, d, e, tau, memory, length,
                                  info);
        });
  });
}

/// cuSOLVER 12.0 writes what lies between the columns, too: where anything does, it works on a
/// copy.
Result<void> run(const solver::Orgtr& op, const Call& call, Solver& library) {
  if (op.n == 0) return {};
  return with_number(op.dtype, {op.lda}, [&]<class T>(T) -> Result<void> {
    auto* const a = call.at<Native<T>>(op.a);
    const auto* const tau = call.at<const Native<T>>(op.tau);
    const int n = to_int(op.n);
    const bool apart = op.lda > op.n;
    auto& own = library.state(call.queue());
    const auto column = bytes_of(op.n, op.dtype), pitch = bytes_of(op.lda, op.dtype);
    const auto copy = [&](void* to, std::size_t to_pitch, const void* from,
                          std::size_t from_pitch) {
      return cudaMemcpy2DAsync(to, to_pitch, from, from_pitch, column,
                               static_cast<std::size_t>(op.n), cudaMemcpyDeviceToDevice,
                               library.services.stream(call.queue()));
    };
    int length = 0;
    TROUPE_CUDA_TRY(Cusolver<T>::gtr_size(own.handle.get(), flag(op.uplo), n, a, n, tau, &length));
    TROUPE_CUDA_PROPAGATE(library.reserve(
        call.queue(), {.device_bytes = sizeof(T) * static_cast<std::size_t>(std::max(0, length)),
                       .extra_bytes = apart ? bytes_of(op.n * op.n, op.dtype) : 0}));
    auto* const q = apart ? static_cast<Native<T>*>(own.extra()) : a;
    if (apart) TROUPE_CUDA_TRY(copy(q, column, a, pitch));
    TROUPE_CUDA_TRY(Cusolver<T>::gtr(own.handle.get(), flag(op.uplo), n, q, n, tau,
                                     static_cast<Native<T>*>(own.device()), length, own.info()));
    if (apart) TROUPE_CUDA_TRY(copy(a, pitch, q, column));
    return {};
  });
}

Result<void> run(const solver::Ormtr& op, const Call& call, Solver& library) {
  if (op.m == 0 || op.n == 0) return {};
  return with_number(op.dtype, {op.m, op.n, op.lda, op.ldc}, [&]<class T>(T) {
    auto* const a = call.at<Native<T>>(op.a);
    auto* const tau = call.at<Native<T>>(op.tau);
    auto* const c = call.at<Native<T>>(op.c);
    const auto transpose = flag_of_q<T>(op.transpose);
    const int m = to_int(op.m), n = to_int(op.n), lda = to_int(op.lda), ldc = to_int(op.ldc);
    return library.issue_narrow<T>(
        op, call, 0,
        [&](cusolverDnHandle_t handle, int* length) {
          return Cusolver<T>::mtr_size(handle, flag(op.side), flag(op.uplo), transpose, m, n, a,
                                       lda, tau, c, ldc, length);
        },
        [&](cusolverDnHandle_t handle, Native<T>* memory, int length, int* info) {
          return Cusolver<T>::mtr(handle, flag(op.side), flag(op.uplo), transpose, m, n, a, lda,
                                  tau, c, ldc, memory, length, info);
        });
  });
}

Result<void> run(const solver::Gebrd& op, const Call& call, Solver& library) {
  if (op.n == 0) return {};
  return with_number(op.dtype, {op.m, op.lda}, [&]<class T>(T) {
    auto* const a = call.at<Native<T>>(op.a);
    auto* const d = call.at<RealOf<T>>(op.d);
    auto* const e = call.at<RealOf<T>>(op.e);
    auto* const tau_q = call.at<Native<T>>(op.tau_q);
    auto* const tau_p = call.at<Native<T>>(op.tau_p);
    const int m = to_int(op.m), n = to_int(op.n), lda = to_int(op.lda);
    return library.issue_narrow<T>(
        op, call, 0,
        [&](cusolverDnHandle_t handle, int* length) {
          return Cusolver<T>::gebrd_size(handle, m, n, length);
        },
        [&](cusolverDnHandle_t handle, Native<T>* memory, int length, int* info) {
          return Cusolver<T>::gebrd(handle, m, n, a, lda, d, e, tau_q, tau_p, memory, length, info);
        });
  });
}

Result<void> run(const solver::Orgbr& op, const Call& call, Solver& library) {
  if (op.n == 0) return {};
  return with_number(op.dtype, {op.m, op.lda}, [&]<class T>(T) {
    auto* const a = call.at<Native<T>>(op.a);
    const auto* const tau = call.at<const Native<T>>(op.tau);
    const bool left = op.side == solver::Side::left;
    const int m = to_int(op.rows()), n = to_int(op.n), k = to_int(left ? op.n : op.m),
              lda = to_int(op.lda);
    return library.issue_narrow<T>(
        op, call, 0,
        [&](cusolverDnHandle_t handle, int* length) {
          return Cusolver<T>::gbr_size(handle, flag(op.side), m, n, k, a, lda, tau, length);
        },
        [&](cusolverDnHandle_t handle, Native<T>* memory, int length, int* info) {
          return Cusolver<T>::gbr(handle, flag(op.side), m, n, k, a, lda, tau, memory, length,
                                  info);
        });
  });
}

Result<void> run(const solver::Larft& op, const Call& call, Solver& library) {
  if (op.k == 0) return {};
  const auto type = type_of(op.dtype);
  return library.issue(
      op, call, {},
      [&](Solver::State& own, Needed& needed) {
        return cusolverDnXlarft_bufferSize(
            own.handle.get(), own.params.get(), CUBLAS_DIRECT_FORWARD, CUBLAS_STOREV_COLUMNWISE,
            op.n, op.k, type, call.at(op.v), op.ldv, type, call.at(op.tau), type, call.at(op.t),
            op.ldt, type, &needed.device_bytes, &needed.host_bytes);
      },
      [&](Solver::State& own, const Needed& needed) {
        return cusolverDnXlarft(
            own.handle.get(), own.params.get(), CUBLAS_DIRECT_FORWARD, CUBLAS_STOREV_COLUMNWISE,
            op.n, op.k, type, call.at(op.v), op.ldv, type, call.at(op.tau), type, call.at(op.t),
            op.ldt, type, own.device(), needed.device_bytes, own.host_memory(), needed.host_bytes);
      });
}

Result<void> run(const solver::Lauum& op, const Call& call, Solver& library) {
  if (op.n == 0) return {};
  return with_number(op.dtype, {op.lda}, [&]<class T>(T) {
    auto* const a = call.at<Native<T>>(op.a);
    const int n = to_int(op.n), lda = to_int(op.lda);
    return library.issue_narrow<T>(
        op, call, 0,
        [&](cusolverDnHandle_t handle, int* length) {
          return Cusolver<T>::lauum_size(handle, flag(op.uplo), n, a, lda, length);
        },
        [&](cusolverDnHandle_t handle, Native<T>* memory, int length, int* info) {
          return Cusolver<T>::lauum(handle, flag(op.uplo), n, a, lda, memory, length, info);
        });
  });
}

TROUPE_HANDLERS(Solver)

}  // namespace troupe::host::cuda
