#include "lib/blas/cuda.hpp"

#include "lib/blas/looks/kernels.cuh"

/// The handles of cuBLAS.
namespace troupe::host::cuda {
namespace {

/// The order of the matrices to warm up with: small enough to be quick, large enough that cuBLAS
/// picks the kernels it picks for large matrices.
constexpr std::int64_t kWarmUpOrder = 512;

}  // namespace

Result<void> Blas::open(Queue queue) {
  auto& opened = state(queue);
  if (!opened.handle) TROUPE_CUDA_TRY(cublasCreate(opened.handle.out()));
  if (!opened.workspace) {
    auto reserved = services.reserve(queue, kWorkspaceBytes);
    if (!reserved) return reserved.error();
    opened.workspace = std::move(*reserved);
  }
  const auto handle = opened.handle.get();
  // In this order: setting the stream takes the workspace away.
  TROUPE_CUDA_TRY(cublasSetStream(handle, services.stream(queue)));
  TROUPE_CUDA_TRY(cublasSetWorkspace(handle, opened.workspace.get(), kWorkspaceBytes));
  TROUPE_CUDA_TRY(cublasSetPointerMode(handle, CUBLAS_POINTER_MODE_HOST));
  opened.scalars = ScalarsAt::host;
  // Products of 16-bit numbers are not added up in 16 bits. Nothing else but a call's own compute
  // type makes arithmetic less precise.
  TROUPE_CUDA_TRY(cublasSetMathMode(
      handle, static_cast<cublasMath_t>(CUBLAS_DEFAULT_MATH |
                                        CUBLAS_MATH_DISALLOW_REDUCED_PRECISION_REDUCTION)));
  if (queue.detour) return {};
  if (looks.on()) TROUPE_CUDA_TRY(kernels::preload_checks());
  return warm_up(queue);
}

Result<void> Blas::warm_up(Queue queue) {
  constexpr std::uint64_t kBytes = sizeof(double) * kWarmUpOrder * kWarmUpOrder;
  WarmUp warming(services, queue);
  const auto stream = services.stream(queue);
  void* memory = nullptr;
  TROUPE_CUDA_TRY(cudaMallocAsync(&memory, kBytes, stream));
  TROUPE_CUDA_TRY(cudaMemsetAsync(memory, 0, kBytes, stream));
  const auto matrix = warming.add(2, memory, kBytes);
  for (const auto dtype : WarmUp::kReals)
    TROUPE_CUDA_PROPAGATE(warm_up(dtype, matrix, warming.call()));
  TROUPE_CUDA_TRY(cudaFreeAsync(memory, stream));
  return {};
}

Result<void> Blas::warm_up(DType dtype, const Operand& matrix, const Call& call) {
  const auto x = WarmUp::part(1), y = WarmUp::part(2), result = WarmUp::part(3);
  for (const auto& scalar : {Scalar{}, WarmUp::scalar_in_memory(dtype)}) {
    TROUPE_CUDA_PROPAGATE(carry_out(blas::Axpy{dtype, 64, 1, 1, scalar, x, y}, call));
    TROUPE_CUDA_PROPAGATE(carry_out(blas::Scal{dtype, 64, 1, scalar, x, {}, 0}, call));
  }
  TROUPE_CUDA_PROPAGATE(carry_out(blas::Dot{dtype, 64, 1, 1, x, y, result, {}, 0}, call));
  TROUPE_CUDA_PROPAGATE(carry_out(blas::Nrm2{dtype, 64, 1, x, result}, call));
  TROUPE_CUDA_PROPAGATE(carry_out(blas::Copy{dtype, 64, 1, 1, x, y}, call));

  constexpr auto n = kWarmUpOrder;
  const auto no = blas::Transpose::no, yes = blas::Transpose::yes;
  for (const auto transpose : {no, yes}) {
    TROUPE_CUDA_PROPAGATE(
        carry_out(blas::Gemv{dtype, transpose, 0, n, n, n, 1, 1, {}, {}, matrix, x, y}, call));
  }
  // One matrix of zeros stands for all three: the result is zeros whatever the order of reads and
  // writes.
  return carry_out(blas::Gemm{dtype, no, no, n, n, n, n, n, n, {}, {}, matrix, matrix, matrix},
                   call);
}

Result<cublasHandle_t> Blas::handle_at(Queue queue, ScalarsAt where) {
  auto& open = state(queue);
  check(static_cast<bool>(open.handle), "the blas lane is not open");
  const auto handle = open.handle.get();
  if (open.scalars == where) return handle;
  TROUPE_CUDA_TRY(cublasSetPointerMode(
      handle, where == ScalarsAt::host ? CUBLAS_POINTER_MODE_HOST : CUBLAS_POINTER_MODE_DEVICE));
  open.scalars = where;
  return handle;
}

Result<void> Blas::write_zero(const Operand& result, DType dtype, const Call& call) {
  TROUPE_CUDA_TRY(
      cudaMemsetAsync(call.at(result), 0, size_of(dtype), services.stream(call.queue())));
  return {};
}

}  // namespace troupe::host::cuda

TROUPE_MODULE_HALF(troupe::host::cuda::Blas, cuda)
