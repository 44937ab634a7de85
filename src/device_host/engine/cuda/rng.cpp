#include "device_host/engine/cuda/cuda_engine.hpp"
#include "device_host/engine/cuda/factors.hpp"
#include "device_host/engine/cuda/status.hpp"

namespace troupe::host::cuda {
namespace {

template <class Op>
kernels::RandomRange range_of(const Op& op) {
  return {op.seed, op.subsequence * rng::kSubsequenceStride + op.offset, op.n};
}

}  // namespace

Result<void> CudaEngine::run(const rng::Uniform& op, const Call& call) {
  return for_real(op.dtype, [&]<class T>(T) -> Result<void> {
    TROUPE_CUDA_TRY(
        kernels::uniform(launch(call.queue()), range_of(op), call.at<T>(op.destination)));
    return {};
  });
}

Result<void> CudaEngine::run(const rng::Normal& op, const Call& call) {
  return for_real(op.dtype, [&]<class T>(T) -> Result<void> {
    TROUPE_CUDA_TRY(kernels::normal(launch(call.queue()), range_of(op), static_cast<T>(op.mean),
                                    static_cast<T>(op.deviation), call.at<T>(op.destination)));
    return {};
  });
}

}  // namespace troupe::host::cuda
