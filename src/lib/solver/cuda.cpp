#include "lib/solver/cuda.hpp"

/// The handles and the memory of cuSOLVER.
namespace troupe::host::cuda {

Result<void> Solver::open(Queue queue) {
  auto& opened = state(queue);
  if (!opened.handle) TROUPE_CUDA_TRY(cusolverDnCreate(opened.handle.out()));
  if (!opened.params) TROUPE_CUDA_TRY(cusolverDnCreateParams(opened.params.out()));
  TROUPE_CUDA_TRY(cusolverDnSetStream(opened.handle.get(), services.stream(queue)));
  // A replay gives the same bits.
  TROUPE_CUDA_TRY(
      cusolverDnSetDeterministicMode(opened.handle.get(), CUSOLVER_DETERMINISTIC_RESULTS));
  TROUPE_CUDA_PROPAGATE(reserve(queue, {.device_bytes = std::size_t{1} << 20}));
  return queue.detour ? Result<void>() : warm_up(queue);
}

Result<void> Solver::reserve(Queue queue, const Needed& needed) {
  auto& own = state(queue);
  if (needed.host_bytes > 0 && (own.host.empty() || own.host.back().size() < needed.host_bytes)) {
    if (services.records()) return Services::not_recorded("more memory");
    const auto twice = own.host.empty() ? 0 : 2 * own.host.back().size();
    own.host.emplace_back(std::max(twice, needed.host_bytes));
  }
  own.extra_bytes = aligned(needed.extra_bytes);
  return own.memory.reserve(services, queue,
                            Needed::kAligned + own.extra_bytes + needed.device_bytes);
}

Result<void> Solver::tell_zero(const Operand& cell, std::size_t bytes, const Call& call) {
  TROUPE_CUDA_TRY(cudaMemsetAsync(call.at(cell), 0, bytes, services.stream(call.queue())));
  return {};
}

Result<void> Solver::tell(const Operand& cell, const Call& call) {
  TROUPE_CUDA_TRY(cudaMemcpyAsync(call.at(cell), state(call.queue()).info(), sizeof(std::int32_t),
                                  cudaMemcpyDefault, services.stream(call.queue())));
  return {};
}

/// On zeros, of an order at which cuSOLVER picks the kernels that it picks for large matrices. The
/// other operations load theirs when they are prepared or first called.
Result<void> Solver::warm_up(Queue queue) {
  constexpr std::int64_t kOrder = 256;
  constexpr std::uint64_t kBytes = 16 * kOrder * kOrder;
  const auto stream = services.stream(queue);
  WarmUp warming(services, queue);
  void* memory = nullptr;
  TROUPE_CUDA_TRY(cudaMallocAsync(&memory, kBytes, stream));
  const auto matrix = warming.add(2, memory, kBytes);
  const auto cell = WarmUp::part(1), w = WarmUp::part(2);
  for (const auto dtype : {DType::f32, DType::f64, DType::c64, DType::c128}) {
    TROUPE_CUDA_TRY(cudaMemsetAsync(memory, 0, kBytes, stream));
    const solver::Potrf potrf{dtype, solver::Uplo::lower, OnFailure::report, kOrder, kOrder, matrix,
                              cell};
    TROUPE_CUDA_PROPAGATE(carry_out(potrf, warming.call()));
    TROUPE_CUDA_TRY(cudaMemsetAsync(memory, 0, kBytes, stream));
    const solver::Syevd syevd{dtype,
                              solver::Vectors::yes,
                              solver::Uplo::lower,
                              OnFailure::report,
                              0,
                              kOrder,
                              kOrder,
                              matrix,
                              w,
                              cell};
    TROUPE_CUDA_PROPAGATE(carry_out(syevd, warming.call()));
  }
  TROUPE_CUDA_TRY(cudaFreeAsync(memory, stream));
  return {};
}

}  // namespace troupe::host::cuda

TROUPE_MODULE_HALF(troupe::host::cuda::Solver, cuda)
