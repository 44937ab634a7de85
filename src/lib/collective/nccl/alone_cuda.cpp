#include "lib/collective/nccl/alone_cuda.hpp"

#include "lib/collective/nccl/kernels.cuh"
#include "lib/collective/nccl/reducible_cuda.hpp"

namespace troupe::host::cuda {
Result<void> reduce_alone(const Services& services, const AloneReduction& reduction,
                          const Call& call) {
  if (reduction.op != ReduceOp::premul_sum) {
    const auto* const source = call.at(reduction.source);
    auto* const destination = call.at(reduction.destination);
    if (source == destination) return {};
    TROUPE_CUDA_TRY(cudaMemcpyAsync(destination, source, reduction.count * size_of(reduction.dtype),
                                    cudaMemcpyDeviceToDevice, services.stream(call.queue())));
    return {};
  }
  return for_reducible(reduction.dtype, [&]<class T>(T) -> Result<void> {
    TROUPE_CUDA_TRY(kernels::scale(services.launch(call.queue()), reduction.count,
                                   reduction_scalar<T>(*reduction.scalar, call),
                                   call.at<const T>(reduction.source),
                                   call.at<T>(reduction.destination)));
    return {};
  });
}

}  // namespace troupe::host::cuda
