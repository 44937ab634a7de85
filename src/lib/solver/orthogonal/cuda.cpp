#include "lib/solver/cuda.hpp"

/// QR factorisations and refined solutions on the cuda engine.
namespace troupe::host::cuda {
namespace {

/// The functions that refine what they have computed in another precision, the matrix being of T.
/// All of one T have the same parameters.
template <class T>
struct Refining;
#define TROUPE_REFINING(T, main, single, tensor, brain, half)                                \
  template <>                                                                                \
  struct Refining<T> {                                                                       \
    static constexpr decltype(&cusolverDn##main##main##gesv) gesv[] = {                      \
        cusolverDn##main##main##gesv, cusolverDn##main##single##gesv,                        \
        cusolverDn##main##tensor##gesv, cusolverDn##main##brain##gesv,                       \
        cusolverDn##main##half##gesv};                                                       \
    static constexpr decltype(&cusolverDn##main##main##gesv_bufferSize) gesv_size[] = {      \
        cusolverDn##main##main##gesv_bufferSize, cusolverDn##main##single##gesv_bufferSize,  \
        cusolverDn##main##tensor##gesv_bufferSize, cusolverDn##main##brain##gesv_bufferSize, \
        cusolverDn##main##half##gesv_bufferSize};                                            \
    static constexpr decltype(&cusolverDn##main##main##gels) gels[] = {                      \
        cusolverDn##main##main##gels, cusolverDn##main##single##gels,                        \
        cusolverDn##main##tensor##gels, cusolverDn##main##brain##gels,                       \
        cusolverDn##main##half##gels};                                                       \
    static constexpr decltype(&cusolverDn##main##main##gels_bufferSize) gels_size[] = {      \
        cusolverDn##main##main##gels_bufferSize, cusolverDn##main##single##gels_bufferSize,  \
        cusolverDn##main##tensor##gels_bufferSize, cusolverDn##main##brain##gels_bufferSize, \
        cusolverDn##main##half##gels_bufferSize};                                            \
  };
// In the order of solver::Lowest.
TROUPE_REFINING(float, S, S, X, B, H)
TROUPE_REFINING(double, D, S, X, B, H)
TROUPE_REFINING(std::complex<float>, C, C, Y, E, K)
TROUPE_REFINING(std::complex<double>, Z, C, Y, E, K)
#undef TROUPE_REFINING

}  // namespace

Result<void> run(const solver::Geqrf& op, const Call& call, Solver& library) {
  if (op.m == 0 || op.n == 0) return {};
  const auto type = type_of(op.dtype);
  return library.issue(
      op, call, {},
      [&](Solver::State& own, Needed& needed) {
        return cusolverDnXgeqrf_bufferSize(own.handle.get(), own.params.get(), op.m, op.n, type,
                                           call.at(op.a), op.lda, type, call.at(op.tau), type,
                                           &needed.device_bytes, &needed.host_bytes);
      },
      [&](Solver::State& own, const Needed& needed) {
        return cusolverDnXgeqrf(own.handle.get(), own.params.get(), op.m, op.n, type, call.at(op.a),
                                op.lda, type, call.at(op.tau), type, own.device(),
                                needed.device_bytes, own.host_memory(), needed.host_bytes,
                                own.info());
      });
}

Result<void> run(const solver::Ormqr& op, const Call& call, Solver& library) {
  if (op.m == 0 || op.n == 0 || op.k == 0) return {};
  return with_number(op.dtype, {op.m, op.n, op.lda, op.ldc}, [&]<class T>(T) {
    const auto transpose = flag_of_q<T>(op.transpose);
    const auto* const a = call.at<const Native<T>>(op.a);
    const auto* const tau = call.at<const Native<T>>(op.tau);
    auto* const c = call.at<Native<T>>(op.c);
    const int m = to_int(op.m), n = to_int(op.n), k = to_int(op.k), lda = to_int(op.lda),
              ldc = to_int(op.ldc);
    return library.issue_narrow<T>(
        op, call, 0,
        [&](cusolverDnHandle_t handle, int* length) {
          return Cusolver<T>::mqr_size(handle, flag(op.side), transpose, m, n, k, a, lda, tau, c,
                                       ldc, length);
        },
        [&](cusolverDnHandle_t handle, Native<T>* memory, int length, int* info) {
          return Cusolver<T>::mqr(handle, flag(op.side), transpose, m, n, k, a, lda, tau, c, ldc,
                                  memory, length, info);
        });
  });
}

Result<void> run(const solver::Orgqr& op, const Call& call, Solver& library) {
  if (op.n == 0) return {};
  return with_number(op.dtype, {op.m, op.lda}, [&]<class T>(T) {
    auto* const a = call.at<Native<T>>(op.a);
    const auto* const tau = call.at<const Native<T>>(op.tau);
    const int m = to_int(op.m), n = to_int(op.n), k = to_int(op.k), lda = to_int(op.lda);
    return library.issue_narrow<T>(
        op, call, 0,
        [&](cusolverDnHandle_t handle, int* length) {
          return Cusolver<T>::gqr_size(handle, m, n, k, a, lda, tau, length);
        },
        [&](cusolverDnHandle_t handle, Native<T>* memory, int length, int* info) {
          return Cusolver<T>::gqr(handle, m, n, k, a, lda, tau, memory, length, info);
        });
  });
}

/// `ask(handle, memory, std::size_t*)` gives how many bytes it needs, `compute(State&, std::size_t,
/// cusolver_int_t*)` queues it and says how often it has refined.
Result<std::int32_t> first_zero(DType dtype, const std::byte* a, std::int64_t n, std::int64_t lda,
                                const Call& call, Solver& library) {
  const auto size = size_of(dtype);
  std::vector<std::byte> diagonal(size * static_cast<std::size_t>(n));
  TROUPE_CUDA_TRY(cudaMemcpy2DAsync(
      diagonal.data(), size, a, size * static_cast<std::size_t>(lda + 1), size,
      static_cast<std::size_t>(n), cudaMemcpyDeviceToHost, library.services.stream(call.queue())));
  TROUPE_CUDA_TRY(cudaStreamSynchronize(library.services.stream(call.queue())));
  std::int32_t zero = 0;
  TROUPE_CUDA_PROPAGATE(with_number(dtype, [&]<class T>(T) -> Result<void> {
    for (std::int64_t i = n; i > 0; --i) {
      T element;
      std::memcpy(&element, diagonal.data() + static_cast<std::size_t>(i - 1) * size, size);
      if (element == T{}) zero = static_cast<std::int32_t>(i);
    }
    return {};
  }));
  return zero;
}

template <class Op, class Ask, class Compute>
Result<void> refine(const Op& op, const Call& call, std::size_t extra_bytes, Ask&& ask,
                    Compute&& compute, Solver& library) {
  cusolver_int_t iterations = 0;
  TROUPE_CUDA_PROPAGATE(library.issue(
      op, call, {.extra_bytes = extra_bytes},
      [&](Solver::State& own, Needed& needed) {
        return ask(own.handle.get(), own.device(), &needed.device_bytes);
      },
      [&](Solver::State& own, const Needed& needed) {
        const cusolverStatus_t status = compute(own, needed.device_bytes, &iterations);
        // That it is singular is what info says.
        return status == CUSOLVER_STATUS_IRS_MATRIX_SINGULAR ? CUSOLVER_STATUS_SUCCESS : status;
      }));
  TROUPE_CUDA_PROPAGATE(library.tell(op.told, call));
  // Then a factor in full precision stands in a; the library does not tell that it is singular.
  if (iterations < 0) {
    const auto zero = first_zero(op.dtype, call.at(op.a), op.n, op.lda, call, library);
    if (!zero) return zero.error();
    if (*zero != 0) TROUPE_CUDA_PROPAGATE(library.tell_more(op.told, 0, *zero, call));
  }
  return library.tell_more(op.told, offsetof(solver::Refinement, iterations),
                           static_cast<std::int32_t>(iterations), call);
}

Result<void> run(const solver::Gesv& op, const Call& call, Solver& library) {
  if (op.n == 0 || op.nrhs == 0)
    return library.tell_zero(op.told, sizeof(solver::Refinement), call);
  const std::int64_t parts = size_of(op.dtype) == size_of(real_type(op.dtype)) ? 1 : 2;
  if (auto answer =
          refuse<solver::Refinement>(op.dtype, {{&op.a, op.n, op.n, op.lda}}, op.told,
                                     {&op.x, parts * op.n, op.nrhs, parts * op.ldx}, call, library))
    return *answer;
  return with_number(op.dtype, {op.n, op.nrhs, op.lda, op.ldb, op.ldx}, [&]<class T>(T) {
    auto* const a = call.at<Native<T>>(op.a);
    auto* const b = call.at<Native<T>>(op.b);
    auto* const x = call.at<Native<T>>(op.x);
    const int n = to_int(op.n), nrhs = to_int(op.nrhs), lda = to_int(op.lda), ldb = to_int(op.ldb),
              ldx = to_int(op.ldx);
    const auto which = static_cast<std::size_t>(op.lowest);
    return refine(
        op, call, sizeof(cusolver_int_t) * static_cast<std::size_t>(op.n),
        [&](cusolverDnHandle_t handle, void* memory, std::size_t* bytes) {
          return Refining<T>::gesv_size[which](handle, n, nrhs, a, lda,
                                               static_cast<cusolver_int_t*>(memory), b, ldb, x, ldx,
                                               memory, bytes);
        },
        [&](Solver::State& own, std::size_t bytes, cusolver_int_t* iterations) {
          return Refining<T>::gesv[which](own.handle.get(), n, nrhs, a, lda,
                                          static_cast<cusolver_int_t*>(own.extra()), b, ldb, x, ldx,
                                          own.device(), bytes, iterations, own.info());
        },
        library);
  });
}

Result<void> run(const solver::Gels& op, const Call& call, Solver& library) {
  if (op.n == 0 || op.nrhs == 0)
    return library.tell_zero(op.told, sizeof(solver::Refinement), call);
  const std::int64_t parts = size_of(op.dtype) == size_of(real_type(op.dtype)) ? 1 : 2;
  if (auto answer =
          refuse<solver::Refinement>(op.dtype, {{&op.a, op.m, op.n, op.lda}}, op.told,
                                     {&op.x, parts * op.n, op.nrhs, parts * op.ldx}, call, library))
    return *answer;
  return with_number(op.dtype, {op.m, op.nrhs, op.lda, op.ldb, op.ldx}, [&]<class T>(T) {
    auto* const a = call.at<Native<T>>(op.a);
    auto* const b = call.at<Native<T>>(op.b);
    auto* const x = call.at<Native<T>>(op.x);
    const int m = to_int(op.m), n = to_int(op.n), nrhs = to_int(op.nrhs), lda = to_int(op.lda),
              ldb = to_int(op.ldb), ldx = to_int(op.ldx);
    const auto which = static_cast<std::size_t>(op.lowest);
    return refine(
        op, call, 0,
        [&](cusolverDnHandle_t handle, void* memory, std::size_t* bytes) {
          return Refining<T>::gels_size[which](handle, m, n, nrhs, a, lda, b, ldb, x, ldx, memory,
                                               bytes);
        },
        [&](Solver::State& own, std::size_t bytes, cusolver_int_t* iterations) {
          return Refining<T>::gels[which](own.handle.get(), m, n, nrhs, a, lda, b, ldb, x, ldx,
                                          own.device(), bytes, iterations, own.info());
        },
        library);
  });
}

TROUPE_HANDLERS(Solver)

}  // namespace troupe::host::cuda
