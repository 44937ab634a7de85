#include "device_host/engine/cuda/cuda_services.hpp"

#include <algorithm>

#include "device_host/engine/cuda/kernels.hpp"

namespace troupe::host::cuda {
namespace {

cudaError_t make_stream(Stream& stream, bool urgent) {
  int least = 0, greatest = 0;
  const auto known = cudaDeviceGetStreamPriorityRange(&least, &greatest);
  return known == cudaSuccess ? cudaStreamCreateWithPriority(stream.out(), cudaStreamNonBlocking,
                                                             urgent ? greatest : least)
                              : known;
}

}  // namespace

CudaServices::CudaServices(const EngineOptions& options, const DeviceFacts& facts)
    : device_(options.device),
      other_hosts_(options.other_hosts),
      reproducible_(options.reproducible),
      in_process_(options.in_process),
      multiprocessors_(facts.multiprocessors),
      product_checks_(options.check_products) {}

Result<void> CudaServices::start() {
  TROUPE_CUDA_TRY(make_stream(detour_, false));
  TROUPE_CUDA_TRY(make_stream(aside_, false));
  if (!product_checks_.on()) return {};
  // Looks at products take memory and give it back; to map 256 MiB anew takes milliseconds.
  cudaMemPool_t pool = nullptr;
  TROUPE_CUDA_TRY(cudaDeviceGetDefaultMemPool(&pool, device_));
  std::uint64_t kept = std::uint64_t{2} << 30;
  TROUPE_CUDA_TRY(cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &kept));
  return {};
}

Stream& CudaServices::stream_of(Queue queue) {
  if (queue.side != 0) return sides_[queue.side - 1u];
  return queue.detour ? detour_ : streams_[queue.index()];
}

Result<void> CudaServices::open(Queue queue) {
  auto& state = queues_[queue.index()];
  auto& stream = stream_of(queue);
  if (!stream) TROUPE_CUDA_TRY(make_stream(stream, queue.lane == Lane::collective));
  state.stream = stream.get();
  if (!state.scratch) {
    auto reserved = reserve(queue, kScratchBytes);
    if (!reserved) return reserved.error();
    state.scratch = std::move(*reserved);
  }
  TROUPE_CUDA_TRY(cudaMemsetAsync(state.scratch.get(), 0, kScratchBytes, state.stream));
  return {};
}

void CudaServices::enter() const {
  thread_local int current = -1;
  if (current == device_) return;
  (void)cudaSetDevice(device_);  // what goes wrong here goes wrong in the call that follows
  current = device_;
}

cudaStream_t CudaServices::stream(Queue queue) const {
  enter();
  const auto& state = queues_[queue.index()];
  check(state.stream != nullptr, "the queue is not open");
  return state.stream;
}

Result<void> CudaServices::count_memory(const std::string& cause,
                                        const std::function<Result<void>()>& work) {
  enter();
  memory_use_.forget(cause);
  return memory_use_.measured(cause, work);
}

Result<void> CudaServices::fill(Queue queue, void* destination,
                                const std::array<std::uint8_t, 16>& pattern, std::size_t size,
                                std::uint64_t count) const {
  TROUPE_CUDA_TRY(kernels::fill(launch(queue), destination, pattern, size, count));
  return {};
}

Result<void> CudaServices::write_addresses(Queue queue, void** destination,
                                           std::span<void* const> addresses) const {
  for (std::size_t at = 0; at < addresses.size(); at += kernels::kAddresses) {
    kernels::Addresses some{};
    const auto count = std::min(kernels::kAddresses, addresses.size() - at);
    std::copy_n(addresses.begin() + static_cast<std::ptrdiff_t>(at), count, some.address);
    TROUPE_CUDA_TRY(kernels::write_addresses(launch(queue), destination + at, some, count));
  }
  return {};
}

Result<void> CudaServices::write_addresses(Queue queue, void** destination,
                                           const kernels::Places& places, std::int64_t count,
                                           std::int64_t* outside) const {
  TROUPE_CUDA_TRY(kernels::write_addresses(launch(queue), destination, places,
                                           static_cast<std::uint64_t>(count),
                                           reinterpret_cast<unsigned long long*>(outside)));
  return {};
}

}  // namespace troupe::host::cuda
