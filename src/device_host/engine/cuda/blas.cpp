#include <algorithm>

#include "device_host/engine/cuda/cuda_engine.hpp"
#include "device_host/engine/cuda/factors.hpp"
#include "device_host/engine/cuda/status.hpp"

namespace troupe::host::cuda {
namespace {

/// What cuBLAS recommends for Hopper; with a workspace of its own the handle never allocates, and
/// results do not depend on what else runs.
constexpr std::size_t kWorkspaceBytes = std::size_t{32} << 20;

/// The 64-bit functions of cuBLAS by type.
template <class T>
struct Cublas;
template <>
struct Cublas<float> {
  static constexpr auto axpy = cublasSaxpy_64;
  static constexpr auto dot = cublasSdot_64;
  static constexpr auto nrm2 = cublasSnrm2_64;
  static constexpr auto scal = cublasSscal_64;
  static constexpr auto copy = cublasScopy_64;
  static constexpr auto gemv = cublasSgemv_64;
  static constexpr auto gemm = cublasSgemm_64;
};
template <>
struct Cublas<double> {
  static constexpr auto axpy = cublasDaxpy_64;
  static constexpr auto dot = cublasDdot_64;
  static constexpr auto nrm2 = cublasDnrm2_64;
  static constexpr auto scal = cublasDscal_64;
  static constexpr auto copy = cublasDcopy_64;
  static constexpr auto gemv = cublasDgemv_64;
  static constexpr auto gemm = cublasDgemm_64;
};

cublasOperation_t operation(blas::Transpose transpose) {
  return transpose == blas::Transpose::no ? CUBLAS_OP_N : CUBLAS_OP_T;
}

/// cuBLAS wants leading dimensions of at least 1 also where a matrix is empty.
std::int64_t leading(std::int64_t dimension) {
  return std::max<std::int64_t>(1, dimension);
}

}  // namespace

Result<void> CudaEngine::open_blas(Queue queue) {
  auto& state = blas(queue);
  TROUPE_CUDA_TRY(cublasCreate(state.handle.out()));
  TROUPE_CUDA_TRY(reserve(queue, state.workspace, kWorkspaceBytes));
  // In this order: setting the stream takes the workspace away.
  TROUPE_CUDA_TRY(cublasSetStream(state.handle.get(), stream(queue)));
  TROUPE_CUDA_TRY(cublasSetWorkspace(state.handle.get(), state.workspace.get(), kWorkspaceBytes));
  TROUPE_CUDA_TRY(cublasSetPointerMode(state.handle.get(), CUBLAS_POINTER_MODE_HOST));
  state.scalars = ScalarsAt::host;
  return {};
}

Result<cublasHandle_t> CudaEngine::blas_at(Queue queue, ScalarsAt where) {
  enter();
  auto& state = blas(queue);
  check(static_cast<bool>(state.handle), "the blas lane is not open");
  const auto handle = state.handle.get();
  if (state.scalars == where) return handle;
  TROUPE_CUDA_TRY(cublasSetPointerMode(
      handle, where == ScalarsAt::host ? CUBLAS_POINTER_MODE_HOST : CUBLAS_POINTER_MODE_DEVICE));
  state.scalars = where;
  return handle;
}

Result<void> CudaEngine::run(const blas::Axpy& op, const Call& call) {
  if (op.n == 0) return {};
  return for_real(op.dtype, [&]<class T>(T) -> Result<void> {
    Factors<T> factors;
    TROUPE_CUDA_PROPAGATE(factors.resolve(*this, call, {&op.alpha}));
    const auto handle = blas_at(call.queue(), factors.where());
    if (!handle) return handle.error();
    TROUPE_CUDA_TRY(Cublas<T>::axpy(*handle, op.n, factors[0], call.at<const T>(op.x), op.incx,
                                    call.at<T>(op.y), op.incy));
    return {};
  });
}

Result<void> CudaEngine::run(const blas::Dot& op, const Call& call) {
  return for_real(op.dtype, [&]<class T>(T) -> Result<void> {
    if (op.n == 0) {
      TROUPE_CUDA_TRY(cudaMemsetAsync(call.at(op.result), 0, sizeof(T), stream(call.queue())));
      return {};
    }
    const auto handle = blas_at(call.queue(), ScalarsAt::device);
    if (!handle) return handle.error();
    TROUPE_CUDA_TRY(Cublas<T>::dot(*handle, op.n, call.at<const T>(op.x), op.incx,
                                   call.at<const T>(op.y), op.incy, call.at<T>(op.result)));
    return {};
  });
}

Result<void> CudaEngine::run(const blas::Nrm2& op, const Call& call) {
  return for_real(op.dtype, [&]<class T>(T) -> Result<void> {
    if (op.n == 0) {
      TROUPE_CUDA_TRY(cudaMemsetAsync(call.at(op.result), 0, sizeof(T), stream(call.queue())));
      return {};
    }
    const auto handle = blas_at(call.queue(), ScalarsAt::device);
    if (!handle) return handle.error();
    TROUPE_CUDA_TRY(
        Cublas<T>::nrm2(*handle, op.n, call.at<const T>(op.x), op.incx, call.at<T>(op.result)));
    return {};
  });
}

Result<void> CudaEngine::run(const blas::Scal& op, const Call& call) {
  if (op.n == 0) return {};
  return for_real(op.dtype, [&]<class T>(T) -> Result<void> {
    Factors<T> factors;
    TROUPE_CUDA_PROPAGATE(factors.resolve(*this, call, {&op.alpha}));
    const auto handle = blas_at(call.queue(), factors.where());
    if (!handle) return handle.error();
    TROUPE_CUDA_TRY(Cublas<T>::scal(*handle, op.n, factors[0], call.at<T>(op.x), op.incx));
    return {};
  });
}

Result<void> CudaEngine::run(const blas::Copy& op, const Call& call) {
  if (op.n == 0) return {};
  const auto handle = blas_at(call.queue(), blas(call.queue()).scalars);  // it has no factors
  if (!handle) return handle.error();
  return for_real(op.dtype, [&]<class T>(T) -> Result<void> {
    TROUPE_CUDA_TRY(
        Cublas<T>::copy(*handle, op.n, call.at<const T>(op.x), op.incx, call.at<T>(op.y), op.incy));
    return {};
  });
}

Result<void> CudaEngine::run(const blas::Gemv& op, const Call& call) {
  if (op.m == 0 || op.n == 0) return {};
  return for_real(op.dtype, [&]<class T>(T) -> Result<void> {
    Factors<T> factors;
    TROUPE_CUDA_PROPAGATE(factors.resolve(*this, call, {&op.alpha, &op.beta}));
    const auto handle = blas_at(call.queue(), factors.where());
    if (!handle) return handle.error();
    TROUPE_CUDA_TRY(Cublas<T>::gemv(*handle, operation(op.transpose), op.m, op.n, factors[0],
                                    call.at<const T>(op.a), leading(op.lda), call.at<const T>(op.x),
                                    op.incx, factors[1], call.at<T>(op.y), op.incy));
    return {};
  });
}

Result<void> CudaEngine::run(const blas::Gemm& op, const Call& call) {
  if (op.m == 0 || op.n == 0) return {};
  return for_real(op.dtype, [&]<class T>(T) -> Result<void> {
    Factors<T> factors;
    TROUPE_CUDA_PROPAGATE(factors.resolve(*this, call, {&op.alpha, &op.beta}));
    const auto handle = blas_at(call.queue(), factors.where());
    if (!handle) return handle.error();
    TROUPE_CUDA_TRY(Cublas<T>::gemm(*handle, operation(op.transpose_a), operation(op.transpose_b),
                                    op.m, op.n, op.k, factors[0], call.at<const T>(op.a),
                                    leading(op.lda), call.at<const T>(op.b), leading(op.ldb),
                                    factors[1], call.at<T>(op.c), leading(op.ldc)));
    return {};
  });
}

}  // namespace troupe::host::cuda
