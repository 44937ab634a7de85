#include <troupe/lib/memory.hpp>

#include <algorithm>
#include <array>

#include "device_host/engine/cuda/library.hpp"
#include "lib/memory/memory_kernels.cuh"

namespace troupe::host::cuda {
namespace {

cudaMemcpyKind kind_of(const memory::Copy& op) {
  const bool from_host = (op.source.region & kPinnedRegion) != 0;
  const bool to_host = (op.destination.region & kPinnedRegion) != 0;
  if (from_host) return to_host ? cudaMemcpyHostToHost : cudaMemcpyHostToDevice;
  return to_host ? cudaMemcpyDeviceToHost : cudaMemcpyDeviceToDevice;
}

/// The engine of a lane that moves memory.
class Memory final : public LibraryHalfOf<Memory, memory::Fill, memory::Copy, memory::Digest,
                                          memory::Flip, memory::StrayWrite> {
 public:
  explicit Memory(Services& services) : services_(services) {}
  Result<void> open(Queue queue) override;
  Result<void> run(const memory::Fill& op, const Call& call);
  Result<void> run(const memory::Copy& op, const Call& call);
  Result<void> run(const memory::Digest& op, const Call& call);
  Result<void> run(const memory::Flip& op, const Call& call);
  Result<void> run(const memory::StrayWrite& op, const Call& call);

 private:
  Services& services_;
  HostMemory pinned_;  ///< to warm up with, on a lane between host and device
};

Result<void> Memory::open(Queue queue) {
  if (queue.detour) return {};
  WarmUp warm_up(services_, queue);
  const auto x = WarmUp::part(1), y = WarmUp::part(2);
  if (queue.lane == Lane::memory) {
    TROUPE_CUDA_TRY(kernels::load_memory());
    TROUPE_CUDA_PROPAGATE(run(memory::Fill{DType::f64, 64, {}, x}, warm_up.call()));
    return run(memory::Copy{DType::f64, x, y}, warm_up.call());
  }
  if (!pinned_) TROUPE_CUDA_TRY(cudaMallocHost(pinned_.out(), Services::kPartBytes));
  const auto host = warm_up.add(kPinnedRegion | 1, pinned_.get(), Services::kPartBytes);
  return run(queue.lane == Lane::host_to_device ? memory::Copy{DType::f64, host, x}
                                                : memory::Copy{DType::f64, x, host},
             warm_up.call());
}

Result<void> Memory::run(const memory::Fill& op, const Call& call) {
  std::array<std::uint8_t, 16> pattern{};
  std::copy(std::begin(op.pattern), std::end(op.pattern), pattern.begin());
  return services_.fill(call.queue(), call.at(op.destination), pattern, size_of(op.dtype),
                        op.count);
}

Result<void> Memory::run(const memory::Copy& op, const Call& call) {
  if (op.source.bytes == 0) return {};
  TROUPE_CUDA_TRY(cudaMemcpyAsync(call.at(op.destination), call.at(op.source), op.source.bytes,
                                  kind_of(op), services_.stream(call.queue())));
  return {};
}

Result<void> Memory::run(const memory::Digest& op, const Call& call) {
  TROUPE_CUDA_TRY(kernels::digest(services_.launch(call.queue()), call.at(op.source),
                                  op.source.bytes, call.at<std::uint64_t>(op.result)));
  return {};
}

Result<void> Memory::run(const memory::Flip& op, const Call& call) {
  TROUPE_CUDA_TRY(kernels::flip(services_.launch(call.queue()), call.at(op.range), op.bit));
  return {};
}

Result<void> Memory::run(const memory::StrayWrite& op, const Call& call) {
  return run(memory::Flip{op.dtype, op.bit, op.range}, call);
}

}  // namespace
}  // namespace troupe::host::cuda

extern "C" __attribute__((visibility("default"))) troupe::host::LibraryHalf* troupe_library_make(
    troupe::host::cuda::Services& services) {
  return new troupe::host::cuda::Memory(services);
}
