#include <algorithm>
#include <array>

#include "device_host/engine/cuda/cuda_engine.hpp"
#include "device_host/engine/cuda/factors.hpp"
#include "device_host/engine/cuda/status.hpp"

namespace troupe::host::cuda {
namespace {

cudaMemcpyKind kind_of(const memory::Copy& op) {
  const bool from_host = (op.source.region & kPinnedRegion) != 0;
  const bool to_host = (op.destination.region & kPinnedRegion) != 0;
  if (from_host) return to_host ? cudaMemcpyHostToHost : cudaMemcpyHostToDevice;
  return to_host ? cudaMemcpyDeviceToHost : cudaMemcpyDeviceToDevice;
}

template <class T>
kernels::Factor<T> factor(const Scalar& scalar, const Call& call) {
  return {scalar.device.present() ? call.at<const T>(scalar.device) : nullptr, scalar.as<T>()};
}

}  // namespace

Result<void> CudaEngine::run(const memory::Fill& op, const Call& call) {
  std::array<std::uint8_t, 16> pattern{};
  std::copy(std::begin(op.pattern), std::end(op.pattern), pattern.begin());
  TROUPE_CUDA_TRY(kernels::fill(launch(call.queue()), call.at(op.destination), pattern,
                                size_of(op.dtype), op.count));
  return {};
}

Result<void> CudaEngine::run(const memory::Copy& op, const Call& call) {
  if (op.source.bytes == 0) return {};
  TROUPE_CUDA_TRY(cudaMemcpyAsync(call.at(op.destination), call.at(op.source), op.source.bytes,
                                  kind_of(op), stream(call.queue())));
  return {};
}

Result<void> CudaEngine::run(const vector::Multiply& op, const Call& call) {
  return for_real(op.dtype, [&]<class T>(T) -> Result<void> {
    TROUPE_CUDA_TRY(kernels::multiply(launch(call.queue()), op.n, call.at<const T>(op.x),
                                      call.at<const T>(op.y), call.at<T>(op.z)));
    return {};
  });
}

Result<void> CudaEngine::run(const vector::Divide& op, const Call& call) {
  return for_real(op.dtype, [&]<class T>(T) -> Result<void> {
    TROUPE_CUDA_TRY(kernels::divide(launch(call.queue()), op.n, call.at<const T>(op.x),
                                    call.at<const T>(op.y), call.at<T>(op.z)));
    return {};
  });
}

Result<void> CudaEngine::run(const vector::Axpby& op, const Call& call) {
  return for_real(op.dtype, [&]<class T>(T) -> Result<void> {
    TROUPE_CUDA_TRY(kernels::axpby(launch(call.queue()), op.n, factor<T>(op.alpha, call),
                                   call.at<const T>(op.x), factor<T>(op.beta, call),
                                   call.at<T>(op.y)));
    return {};
  });
}

}  // namespace troupe::host::cuda
