#include "lib/solver/cuda.hpp"

#include "lib/solver/linear/kernels.cuh"

/// Linear systems on the cuda engine.
namespace troupe::host::cuda {
namespace {

template <class Pivot>
std::size_t bytes_of_pivots(std::int64_t n) {
  return sizeof(Pivot) * static_cast<std::size_t>(n);
}

}  // namespace

template <class Pivot>
Result<void> Solver::bring_pivots(const Operand& pivots, std::int64_t count, std::int64_t order,
                                  const Call& call) {
  TROUPE_CUDA_TRY(
      kernels::copy_pivots(services.launch(call.queue()), call.at<const std::int64_t>(pivots),
                           static_cast<Pivot*>(state(call.queue()).extra()), count, order));
  return {};
}

Result<void> run(const solver::Potrf& op, const Call& call, Solver& library) {
  if (op.n == 0) return library.tell_zero(op.info, sizeof(std::int32_t), call);
  const auto type = type_of(op.dtype);
  TROUPE_CUDA_PROPAGATE(library.issue(
      op, call, {},
      [&](Solver::State& own, Needed& needed) {
        return cusolverDnXpotrf_bufferSize(own.handle.get(), own.params.get(), flag(op.uplo), op.n,
                                           type, call.at(op.a), op.lda, type, &needed.device_bytes,
                                           &needed.host_bytes);
      },
      [&](Solver::State& own, const Needed& needed) {
        return cusolverDnXpotrf(own.handle.get(), own.params.get(), flag(op.uplo), op.n, type,
                                call.at(op.a), op.lda, type, own.device(), needed.device_bytes,
                                own.host_memory(), needed.host_bytes, own.info());
      }));
  TROUPE_CUDA_PROPAGATE(with_number(op.dtype, [&]<class T>(T) -> Result<void> {
    TROUPE_CUDA_TRY(kernels::find_no_pivot(library.services.launch(call.queue()),
                                           call.at<const Native<T>>(op.a), op.lda, op.n,
                                           library.state(call.queue()).info()));
    return {};
  }));
  return library.tell(op.info, call);
}

Result<void> run(const solver::Potrs& op, const Call& call, Solver& library) {
  if (op.n == 0 || op.nrhs == 0) return {};
  const auto& own = library.state(call.queue());
  const auto type = type_of(op.dtype);
  TROUPE_CUDA_TRY(cusolverDnXpotrs(own.handle.get(), own.params.get(), flag(op.uplo), op.n, op.nrhs,
                                   type, call.at(op.a), op.lda, type, call.at(op.b), op.ldb,
                                   own.info()));
  return {};
}

/// cuSOLVER's own potri does not tell of a zero on the factor's diagonal.
Result<void> run(const solver::Potri& op, const Call& call, Solver& library) {
  solver::Trtri inverse{};
  inverse.dtype = op.dtype, inverse.uplo = op.uplo, inverse.diagonal = blas::Diagonal::stored;
  inverse.n = op.n, inverse.lda = op.lda, inverse.a = op.a, inverse.info = op.info;
  TROUPE_CUDA_PROPAGATE(library.carry_out(inverse, call));
  solver::Lauum product{};
  product.dtype = op.dtype, product.uplo = op.uplo;
  product.n = op.n, product.lda = op.lda, product.a = op.a;
  return library.carry_out(product, call);
}

Result<void> run(const solver::Trtri& op, const Call& call, Solver& library) {
  if (op.n == 0) return library.tell_zero(op.info, sizeof(std::int32_t), call);
  const auto type = type_of(op.dtype);
  // A diagonal of ones is not stored: what stands there may be another factor's.
  const bool kept = op.diagonal == blas::Diagonal::unit;
  const auto copy_diagonal = [&](bool back) {
    return with_number(op.dtype, [&]<class T>(T) -> Result<void> {
      auto* const a = call.at<Native<T>>(op.a);
      auto* const aside = static_cast<Native<T>*>(library.state(call.queue()).extra());
      const auto launch = library.services.launch(call.queue());
      TROUPE_CUDA_TRY(back ? kernels::copy_diagonal(launch, aside, 1, a, op.lda + 1, op.n)
                           : kernels::copy_diagonal(launch, a, op.lda + 1, aside, 1, op.n));
      return {};
    });
  };
  Needed needed{.extra_bytes = kept ? size_of(op.dtype) * static_cast<std::size_t>(op.n) : 0};
  auto& own = library.state(call.queue());
  TROUPE_CUDA_TRY(cusolverDnXtrtri_bufferSize(own.handle.get(), flag(op.uplo), flag(op.diagonal),
                                              op.n, type, call.at(op.a), op.lda,
                                              &needed.device_bytes, &needed.host_bytes));
  TROUPE_CUDA_PROPAGATE(library.reserve(call.queue(), needed));
  if (kept) TROUPE_CUDA_PROPAGATE(copy_diagonal(false));
  TROUPE_CUDA_TRY(cusolverDnXtrtri(own.handle.get(), flag(op.uplo), flag(op.diagonal), op.n, type,
                                   call.at(op.a), op.lda, own.device(), needed.device_bytes,
                                   own.host_memory(), needed.host_bytes, own.info()));
  if (kept) TROUPE_CUDA_PROPAGATE(copy_diagonal(true));
  return library.tell(op.info, call);
}

Result<void> run(const solver::Getrf& op, const Call& call, Solver& library) {
  if (op.m == 0 || op.n == 0) return library.tell_zero(op.info, sizeof(std::int32_t), call);
  const auto type = type_of(op.dtype);
  auto* const pivots = op.pivots.present() ? call.at<std::int64_t>(op.pivots) : nullptr;
  TROUPE_CUDA_PROPAGATE(library.issue(
      op, call, {},
      [&](Solver::State& own, Needed& needed) {
        return cusolverDnXgetrf_bufferSize(own.handle.get(), own.params.get(), op.m, op.n, type,
                                           call.at(op.a), op.lda, type, &needed.device_bytes,
                                           &needed.host_bytes);
      },
      [&](Solver::State& own, const Needed& needed) {
        return cusolverDnXgetrf(own.handle.get(), own.params.get(), op.m, op.n, type, call.at(op.a),
                                op.lda, pivots, type, own.device(), needed.device_bytes,
                                own.host_memory(), needed.host_bytes, own.info());
      }));
  return library.tell(op.info, call);
}

Result<void> run(const solver::Getrs& op, const Call& call, Solver& library) {
  if (op.n == 0 || op.nrhs == 0) return {};
  const bool pivoted = op.pivots.present();
  const auto type = type_of(op.dtype);
  TROUPE_CUDA_PROPAGATE(library.reserve(
      call.queue(), {.extra_bytes = pivoted ? bytes_of_pivots<std::int64_t>(op.n) : 0}));
  if (pivoted)
    TROUPE_CUDA_PROPAGATE(library.bring_pivots<std::int64_t>(op.pivots, op.n, op.n, call));
  const auto& own = library.state(call.queue());
  TROUPE_CUDA_TRY(cusolverDnXgetrs(
      own.handle.get(), own.params.get(), flag(op.transpose), op.n, op.nrhs, type, call.at(op.a),
      op.lda, pivoted ? static_cast<const std::int64_t*>(own.extra()) : nullptr, type,
      call.at(op.b), op.ldb, own.info()));
  return {};
}

Result<void> run(const solver::Sytrf& op, const Call& call, Solver& library) {
  if (op.n == 0) return library.tell_zero(op.info, sizeof(std::int32_t), call);
  const auto factor = [&]<class T>(T) -> Result<void> {
    auto* const a = call.at<Native<T>>(op.a);
    const int n = to_int(op.n), lda = to_int(op.lda);
    TROUPE_CUDA_PROPAGATE(library.issue_narrow<T>(
        op, call, bytes_of_pivots<int>(op.n),
        [&](cusolverDnHandle_t handle, int* length) {
          return Cusolver<T>::sytrf_size(handle, n, a, lda, length);
        },
        [&](cusolverDnHandle_t handle, Native<T>* memory, int length, int* info) {
          return Cusolver<T>::sytrf(handle, flag(op.uplo), n, a, lda,
                                    static_cast<int*>(library.state(call.queue()).extra()), memory,
                                    length, info);
        }));
    auto& own = library.state(call.queue());
    TROUPE_CUDA_TRY(kernels::find_singular(library.services.launch(call.queue()), a, op.lda,
                                           static_cast<const int*>(own.extra()), n,
                                           op.uplo == blas::Uplo::upper, own.info()));
    return {};
  };
  TROUPE_CUDA_PROPAGATE(with_number(op.dtype, {op.lda}, factor));
  TROUPE_CUDA_TRY(kernels::copy_pivots(library.services.launch(call.queue()),
                                       static_cast<const int*>(library.state(call.queue()).extra()),
                                       call.at<std::int64_t>(op.pivots), op.n, op.n));
  return library.tell(op.info, call);
}

Result<void> run(const solver::Sytri&, const Call&, Solver&) {
  return Error{Errc::unsupported, 0,
               "solver.sytri: cuSOLVER 12.0 leaves the matrix as it is; solve for the identity"};
}

Result<void> run(const solver::Sytrs& op, const Call& call, Solver& library) {
  if (op.n == 0 || op.nrhs == 0) return {};
  const auto type = type_of(op.dtype);
  const auto* const told = call.at<const std::int64_t>(op.pivots);
  const auto ask = [&](Solver::State& own, Needed& needed) {
    return cusolverDnXsytrs_bufferSize(own.handle.get(), flag(op.uplo), op.n, op.nrhs, type,
                                       call.at(op.a), op.lda, told, type, call.at(op.b), op.ldb,
                                       &needed.device_bytes, &needed.host_bytes);
  };
  Needed needed{.extra_bytes = bytes_of_pivots<std::int64_t>(op.n)};
  auto& own = library.state(call.queue());
  TROUPE_CUDA_TRY(ask(own, needed));
  TROUPE_CUDA_PROPAGATE(library.reserve(call.queue(), needed));
  TROUPE_CUDA_PROPAGATE(library.bring_pivots<std::int64_t>(op.pivots, op.n, op.n, call));
  // cuSOLVER 12.0 fetches the pivots without waiting for its stream, and exchanges rows by them.
  TROUPE_CUDA_TRY(cudaStreamSynchronize(library.services.stream(call.queue())));
  TROUPE_CUDA_TRY(cusolverDnXsytrs(
      own.handle.get(), flag(op.uplo), op.n, op.nrhs, type, call.at(op.a), op.lda,
      static_cast<const std::int64_t*>(own.extra()), type, call.at(op.b), op.ldb, own.device(),
      needed.device_bytes, own.host_memory(), needed.host_bytes, own.info()));
  return {};
}

Result<void> run(const solver::Laswp& op, const Call& call, Solver& library) {
  const auto count = op.last - op.first + 1;
  if (op.n == 0 || count == 0) return {};
  return with_number(op.dtype, {op.n, op.lda}, [&]<class T>(T) -> Result<void> {
    TROUPE_CUDA_PROPAGATE(
        library.reserve(call.queue(), {.extra_bytes = bytes_of_pivots<int>(op.last)}));
    TROUPE_CUDA_PROPAGATE(library.bring_pivots<int>(op.pivots, op.last, op.m, call));
    const auto& own = library.state(call.queue());
    TROUPE_CUDA_TRY(Cusolver<T>::laswp(own.handle.get(), to_int(op.n), call.at<Native<T>>(op.a),
                                       to_int(op.lda), to_int(op.first), to_int(op.last),
                                       static_cast<const int*>(own.extra()),
                                       op.order == solver::Order::forward ? 1 : -1));
    return {};
  });
}

TROUPE_HANDLERS(Solver)

}  // namespace troupe::host::cuda
