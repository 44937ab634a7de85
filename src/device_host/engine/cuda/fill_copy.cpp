#include <algorithm>
#include <array>

#include "device_host/engine/cuda/cuda_engine.hpp"
#include "device_host/engine/cuda/kernels.hpp"

namespace troupe::host::cuda {
namespace {

cudaMemcpyKind kind_of(const memory::Copy& op) {
  const bool from_host = (op.source.region & kPinnedRegion) != 0;
  const bool to_host = (op.destination.region & kPinnedRegion) != 0;
  if (from_host) return to_host ? cudaMemcpyHostToHost : cudaMemcpyHostToDevice;
  return to_host ? cudaMemcpyDeviceToHost : cudaMemcpyDeviceToDevice;
}

}  // namespace

/// Warms up the lanes that move memory. The communicator warms itself up when it is formed.
Result<void> CudaEngine::open(Queue queue) {
  if (queue.detour || queue.lane == Lane::collective) return {};
  WarmUp warm_up(*this, queue);
  const auto x = WarmUp::part(1), y = WarmUp::part(2);
  if (queue.lane == Lane::memory) {
    TROUPE_CUDA_PROPAGATE(run(memory::Fill{DType::f64, 64, {}, x}, warm_up.call()));
    return run(memory::Copy{DType::f64, x, y}, warm_up.call());
  }
  auto& pinned = queues_[queue.index()].pinned;
  if (!pinned) TROUPE_CUDA_TRY(cudaMallocHost(pinned.out(), kPartBytes));
  const auto host = warm_up.add(kPinnedRegion | 1, pinned.get(), kPartBytes);
  return run(queue.lane == Lane::host_to_device ? memory::Copy{DType::f64, host, x}
                                                : memory::Copy{DType::f64, x, host},
             warm_up.call());
}

Result<void> CudaEngine::fill(Queue queue, void* destination,
                              const std::array<std::uint8_t, 16>& pattern, std::size_t size,
                              std::uint64_t count) const {
  TROUPE_CUDA_TRY(kernels::fill(launch(queue), destination, pattern, size, count));
  return {};
}

Result<void> CudaEngine::run(const memory::Fill& op, const Call& call) {
  std::array<std::uint8_t, 16> pattern{};
  std::copy(std::begin(op.pattern), std::end(op.pattern), pattern.begin());
  return fill(call.queue(), call.at(op.destination), pattern, size_of(op.dtype), op.count);
}

Result<void> CudaEngine::run(const memory::Copy& op, const Call& call) {
  if (op.source.bytes == 0) return {};
  TROUPE_CUDA_TRY(cudaMemcpyAsync(call.at(op.destination), call.at(op.source), op.source.bytes,
                                  kind_of(op), stream(call.queue())));
  return {};
}

}  // namespace troupe::host::cuda
