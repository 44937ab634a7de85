#include <troupe/lib/rng.hpp>

#include "device_host/engine/cuda/library.hpp"
#include "lib/rng/rng_kernels.cuh"

namespace troupe::host::cuda {
namespace {

template <class Op>
kernels::RandomRange range_of(const Op& op) {
  return {op.seed, op.subsequence * rng::kSubsequenceStride + op.offset, op.n};
}

class Rng final : public LibraryHalfOf<Rng, rng::Uniform, rng::Normal> {
 public:
  explicit Rng(Services& services) : services_(services) {}
  Result<void> open(Queue queue) override;
  Result<void> run(const rng::Uniform& op, const Call& call);
  Result<void> run(const rng::Normal& op, const Call& call);

 private:
  Services& services_;
};

Result<void> Rng::open(Queue queue) {
  if (queue.detour) return {};
  TROUPE_CUDA_TRY(kernels::preload_rng());
  const WarmUp warm_up(services_, queue);
  const auto call = warm_up.call();
  for (const auto dtype : WarmUp::kReals) {
    TROUPE_CUDA_PROPAGATE(run(rng::Uniform{dtype, 64, 0, 0, 0, WarmUp::part(1)}, call));
    TROUPE_CUDA_PROPAGATE(run(rng::Normal{dtype, 64, 0, 0, 0, 0, 1, WarmUp::part(2)}, call));
  }
  return {};
}

Result<void> Rng::run(const rng::Uniform& op, const Call& call) {
  return for_real(op.dtype, [&]<class T>(T) -> Result<void> {
    TROUPE_CUDA_TRY(
        kernels::uniform(services_.launch(call.queue()), range_of(op), call.at<T>(op.destination)));
    return {};
  });
}

Result<void> Rng::run(const rng::Normal& op, const Call& call) {
  return for_real(op.dtype, [&]<class T>(T) -> Result<void> {
    TROUPE_CUDA_TRY(kernels::normal(services_.launch(call.queue()), range_of(op),
                                    static_cast<T>(op.mean), static_cast<T>(op.deviation),
                                    call.at<T>(op.destination)));
    return {};
  });
}

}  // namespace
}  // namespace troupe::host::cuda

extern "C" __attribute__((visibility("default"))) troupe::host::LibraryHalf* troupe_library_make(
    troupe::host::cuda::Services& services) {
  return new troupe::host::cuda::Rng(services);
}
