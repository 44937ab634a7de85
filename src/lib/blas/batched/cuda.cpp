#include <vector>

#include "lib/blas/cuda.hpp"

/// Batches on the cuda engine.
namespace troupe::host::cuda {

Result<void**> addresses_of_tail(const Call& call, Blas& library) {
  auto& addresses = library.state(call.queue()).addresses;
  TROUPE_CUDA_PROPAGATE(
      addresses.reserve(library.services, call.queue(), call.tail().size() * sizeof(void*)));
  std::vector<void*> matrices;
  for (const auto& part : call.tail()) matrices.push_back(call.at(part.range));
  auto** const written = static_cast<void**>(addresses.get());
  TROUPE_CUDA_PROPAGATE(library.services.write_addresses(call.queue(), written, matrices));
  return written;
}

template <class Op>
Result<void> multiply(const Op& op, const Call& call, void* addresses, Blas& library) {
  if (is_narrow(op.dtype)) {
    return library.issue_as<float>(op, call, {&op.alpha, &op.beta}, [&](const Given<float>& with) {
      const auto type = type_of(op.dtype);
      auto** const matrices = static_cast<void**>(addresses);
      return cublasGemmBatchedEx_64(
          with.handle, operation(op.transpose_a), operation(op.transpose_b), op.m, op.n, op.k,
          with.scalar(0), matrices, type, leading(op.lda), matrices + op.batch, type,
          leading(op.ldb), with.scalar(1), matrices + 2 * op.batch, type, leading(op.ldc), op.batch,
          CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT);
    });
  }
  return library.issue(op, call, {&op.alpha, &op.beta}, [&]<class T>(const Given<T>& with) {
    auto** const matrices = static_cast<Native<T>**>(addresses);
    return Cublas<T>::gemm_batched(
        with.handle, operation(op.transpose_a), operation(op.transpose_b), op.m, op.n, op.k,
        with.scalar(0), matrices, leading(op.lda), matrices + op.batch, leading(op.ldb),
        with.scalar(1), matrices + 2 * op.batch, leading(op.ldc), op.batch);
  });
}

Result<void> run(const blas::GemmBatched& op, const Call& call, Blas& library) {
  if (op.m == 0 || op.n == 0 || op.batch == 0) return {};
  if (!call.tail().empty()) {
    const auto written = addresses_of_tail(call, library);
    if (!written) return written.error();
    return multiply(op, call, *written, library);
  }
  if (is_narrow(op.dtype)) {
    return library.issue_as<float>(op, call, {&op.alpha, &op.beta}, [&](const Given<float>& with) {
      const auto type = type_of(op.dtype);
      return cublasGemmStridedBatchedEx_64(
          with.handle, operation(op.transpose_a), operation(op.transpose_b), op.m, op.n, op.k,
          with.scalar(0), with.at(op.a), type, leading(op.lda), op.stride_a, with.at(op.b), type,
          leading(op.ldb), op.stride_b, with.scalar(1), with.at(op.c), type, leading(op.ldc),
          op.stride_c, op.batch, CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT);
    });
  }
  return library.issue(op, call, {&op.alpha, &op.beta}, [&]<class T>(const Given<T>& with) {
    return Cublas<T>::gemm_strided(
        with.handle, operation(op.transpose_a), operation(op.transpose_b), op.m, op.n, op.k,
        with.scalar(0), with.at(op.a), leading(op.lda), op.stride_a, with.at(op.b), leading(op.ldb),
        op.stride_b, with.scalar(1), with.at(op.c), leading(op.ldc), op.stride_c, op.batch);
  });
}

Result<void> run(const blas::GemmIndexed& op, const Call& call, Blas& library) {
  auto& memory = library.state(call.queue()).addresses;
  const auto stream = library.services.stream(call.queue());
  const auto count = static_cast<std::size_t>(op.batch);
  TROUPE_CUDA_PROPAGATE(memory.reserve(library.services, call.queue(),
                                       sizeof(std::int64_t) + 3 * count * sizeof(void*)));
  auto* const outside = static_cast<std::int64_t*>(memory.get());
  auto** const addresses = reinterpret_cast<void**>(outside + 1);
  TROUPE_CUDA_TRY(cudaMemsetAsync(outside, 0, sizeof *outside, stream));
  const Operand* const operands[] = {&op.a, &op.b, &op.c};
  const auto last = blas::last_offsets(op);
  for (std::size_t i = 0; i < 3; ++i) {
    const kernels::Places places{call.at(*operands[i]), size_of(op.dtype),
                                 call.at<const std::int64_t>(op.offsets) + i * count, last[i]};
    TROUPE_CUDA_PROPAGATE(library.services.write_addresses(call.queue(), addresses + i * count,
                                                           places, op.batch, outside));
  }
  TROUPE_CUDA_TRY(
      cudaMemcpyAsync(call.at(op.outside), outside, sizeof *outside, cudaMemcpyDefault, stream));
  if (op.m == 0 || op.n == 0 || op.batch == 0) return {};
  return multiply(op, call, addresses, library);
}

TROUPE_HANDLERS(Blas)

}  // namespace troupe::host::cuda
