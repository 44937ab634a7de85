#include <troupe/lib/vector.hpp>

#include "device_host/engine/cuda/library.hpp"
#include "lib/vector/kernels.cuh"

namespace troupe::host::cuda {
namespace {

class Vector final : public LibraryHalfOf<Vector, vectors::Operations> {
 public:
  explicit Vector(Services& services) : services_(services) {}
  Result<void> open(Queue queue) override;
  Result<void> run(const vectors::Multiply& op, const Call& call);
  Result<void> run(const vectors::Divide& op, const Call& call);
  Result<void> run(const vectors::Axpby& op, const Call& call);

 private:
  Services& services_;
};

Result<void> Vector::open(Queue queue) {
  if (queue.detour) return {};
  TROUPE_CUDA_TRY(kernels::preload_vector());
  const WarmUp warm_up(services_, queue);
  const auto call = warm_up.call();
  const auto x = WarmUp::part(1), y = WarmUp::part(2), z = WarmUp::part(3);
  for (const auto dtype : WarmUp::kReals) {
    TROUPE_CUDA_PROPAGATE(run(vectors::Multiply{dtype, 64, x, y, z}, call));
    TROUPE_CUDA_PROPAGATE(run(vectors::Divide{dtype, 64, x, y, z}, call));
    TROUPE_CUDA_PROPAGATE(run(vectors::Axpby{dtype, 64, {}, {}, x, y}, call));
  }
  return {};
}

Result<void> Vector::run(const vectors::Multiply& op, const Call& call) {
  return with_real(op.dtype, [&]<class T>(T) -> Result<void> {
    TROUPE_CUDA_TRY(kernels::multiply(services_.launch(call.queue()), op.n, call.at<const T>(op.x),
                                      call.at<const T>(op.y), call.at<T>(op.z)));
    return {};
  });
}

Result<void> Vector::run(const vectors::Divide& op, const Call& call) {
  return with_real(op.dtype, [&]<class T>(T) -> Result<void> {
    TROUPE_CUDA_TRY(kernels::divide(services_.launch(call.queue()), op.n, call.at<const T>(op.x),
                                    call.at<const T>(op.y), call.at<T>(op.z)));
    return {};
  });
}

Result<void> Vector::run(const vectors::Axpby& op, const Call& call) {
  return with_real(op.dtype, [&]<class T>(T) -> Result<void> {
    TROUPE_CUDA_TRY(kernels::axpby(services_.launch(call.queue()), op.n, scalar<T>(op.alpha, call),
                                   call.at<const T>(op.x), scalar<T>(op.beta, call),
                                   call.at<T>(op.y)));
    return {};
  });
}

}  // namespace
}  // namespace troupe::host::cuda

TROUPE_MODULE_HALF(troupe::host::cuda::Vector, cuda)
