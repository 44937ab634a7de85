#include <troupe/lib/memory.hpp>

#include <cudaTypedefs.h>

#include <algorithm>
#include <array>

#include "device_host/engine/cuda/library.hpp"
#include "lib/memory/kernels.cuh"

namespace troupe::host::cuda {
namespace {

cudaMemcpyKind kind_of(const memory::Copy& op) {
  const bool from_host = (op.source.region & kPinnedRegion) != 0;
  const bool to_host = (op.destination.region & kPinnedRegion) != 0;
  if (from_host) return to_host ? cudaMemcpyHostToHost : cudaMemcpyHostToDevice;
  return to_host ? cudaMemcpyDeviceToHost : cudaMemcpyDeviceToDevice;
}

/// The engine of a lane that moves memory.
class Memory final : public LibraryHalfOf<Memory, memory::Operations> {
 public:
  explicit Memory(Services& services) : services_(services) {}
  Result<void> open(Queue queue) override;
  Result<void> run(const memory::Fill& op, const Call& call);
  Result<void> run(const memory::Copy& op, const Call& call);
  Result<void> run(const memory::CopyRows& op, const Call& call);
  Result<void> run(const memory::Digest& op, const Call& call);
  Result<void> run(const memory::Flip& op, const Call& call);
  Result<void> run(const memory::StrayWrite& op, const Call& call);

 private:
  Services& services_;
  PFN_cuMemcpyDtoDAsync_v3020 copy_on_devices_ = nullptr;  ///< the driver's
  HostMemory pinned_;  ///< to warm up with, on a lane between host and device
};

Result<void> Memory::open(Queue queue) {
  if (copy_on_devices_ == nullptr)
    TROUPE_CUDA_PROPAGATE(find_in_driver("cuMemcpyDtoDAsync", 3020, copy_on_devices_));
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
  auto* const to = call.at(op.destination);
  const auto* const from = call.at(op.source);
  const auto kind = kind_of(op);
  const auto stream = services_.stream(call.queue());
  if (kind == cudaMemcpyDeviceToDevice) {
    // The runtime's call takes a microsecond longer, an eighth of a small copy between two GPUs.
    TROUPE_CUDA_TRY(copy_on_devices_(reinterpret_cast<CUdeviceptr>(to),
                                     reinterpret_cast<CUdeviceptr>(from), op.source.bytes, stream));
  } else {
    TROUPE_CUDA_TRY(cudaMemcpyAsync(to, from, op.source.bytes, kind, stream));
  }
  return {};
}

Result<void> Memory::run(const memory::CopyRows& op, const Call& call) {
  constexpr std::size_t kMostPitch = (std::size_t{1} << 31) - 1;  // cudaDeviceProp::memPitch
  const auto bytes = [&](std::int64_t elements) {
    return static_cast<std::size_t>(elements) * size_of(op.dtype);
  };
  if (op.length == 0 || op.rows == 0) return {};
  auto* const to = call.at(op.destination);
  const auto* const from = call.at(op.source);
  const auto stream = services_.stream(call.queue());
  const auto copy = [&](std::size_t to_pitch, std::size_t from_pitch, std::size_t width,
                        std::int64_t rows, std::int64_t first) {
    const auto i = static_cast<std::size_t>(first);
    return cudaMemcpy2DAsync(to + i * bytes(op.destination_leading), to_pitch,
                             from + i * bytes(op.source_leading), from_pitch, width,
                             static_cast<std::size_t>(rows), cudaMemcpyDefault, stream);
  };
  const auto width = bytes(op.length);
  const auto from_pitch = bytes(op.source_leading), to_pitch = bytes(op.destination_leading);
  if (from_pitch == width && to_pitch == width) {
    TROUPE_CUDA_TRY(
        cudaMemcpyAsync(to, from, bytes(op.rows * op.length), cudaMemcpyDefault, stream));
    return {};
  }
  if (std::max(from_pitch, to_pitch) <= kMostPitch) {
    TROUPE_CUDA_TRY(copy(to_pitch, from_pitch, width, op.rows, 0));
    return {};
  }
  for (std::int64_t i = 0; i < op.rows; ++i) TROUPE_CUDA_TRY(copy(width, width, width, 1, i));
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

TROUPE_MODULE_HALF(troupe::host::cuda::Memory, cuda)
