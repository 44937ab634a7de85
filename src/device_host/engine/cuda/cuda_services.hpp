#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <thread>

#include "device_host/engine/cuda/devices.hpp"
#include "device_host/engine/cuda/library.hpp"
#include "device_host/engine/cuda/memory_use.hpp"
#include "device_host/engine/product_checks.hpp"

namespace troupe::host::cuda {

/// The queues of a CUDA device: streams, and scratch memory of each, as libraries and the engine
/// use them. See Services for who may call what.
class CudaServices final : public Services {
 public:
  CudaServices(const EngineOptions& options, const DeviceFacts& facts);
  /// Makes the streams that lanes share, once there is a context.
  Result<void> start();
  /// Makes the queue's stream and scratch memory, where it has none, and clears that. On a helper
  /// thread.
  Result<void> open(Queue queue);

  [[nodiscard]] int device() const noexcept override { return device_; }
  [[nodiscard]] bool other_hosts() const noexcept override { return other_hosts_; }
  [[nodiscard]] bool reproducible() const noexcept override { return reproducible_; }
  [[nodiscard]] bool in_process() const noexcept override { return in_process_; }
  void enter() const override;
  Result<void> count_memory(const std::string& cause,
                            const std::function<Result<void>()>& work) override;
  [[nodiscard]] cudaStream_t stream(Queue queue) const override;
  [[nodiscard]] int multiprocessors() const noexcept override { return multiprocessors_; }
  [[nodiscard]] std::byte* scratch(Queue queue) const override {
    return static_cast<std::byte*>(queues_[queue.index()].scratch.get());
  }
  [[nodiscard]] bool records() const noexcept override {
    return recorder_.load(std::memory_order_relaxed) == std::this_thread::get_id();
  }
  [[nodiscard]] ProductChecks& product_checks() noexcept override { return product_checks_; }
  void note_given_back() noexcept override { given_back_.fetch_add(1, std::memory_order_relaxed); }
  Result<void> fill(Queue queue, void* destination, const std::array<std::uint8_t, 16>& pattern,
                    std::size_t size, std::uint64_t count) const override;
  Result<void> write_addresses(Queue queue, void** destination,
                               std::span<void* const> addresses) const override;
  Result<void> write_addresses(Queue queue, void** destination, const kernels::Places& places,
                               std::int64_t count, std::int64_t* outside) const override;

  /// A stream of graphs' uploads and of probes: never of what takes long.
  [[nodiscard]] cudaStream_t aside() const { return aside_.get(); }
  /// Counts who has taken how much of the device's memory, but for slabs.
  [[nodiscard]] MemoryUse& memory_use() noexcept { return memory_use_; }
  /// This thread records a graph from now on; or no thread does.
  void begin_recording() noexcept {
    recorder_.store(std::this_thread::get_id(), std::memory_order_relaxed);
  }
  void end_recording() noexcept { recorder_.store(std::thread::id(), std::memory_order_relaxed); }
  /// How often something was given back, see note_given_back().
  [[nodiscard]] std::uint64_t given_back() const noexcept {
    return given_back_.load(std::memory_order_relaxed);
  }

 private:
  /// Every queue has these.
  struct QueueState {
    cudaStream_t stream = nullptr;  ///< nullptr: not open
    DeviceMemory scratch;
  };
  [[nodiscard]] Stream& stream_of(Queue queue);

  const int device_;
  const bool other_hosts_, reproducible_, in_process_;
  const int multiprocessors_;
  ProductChecks product_checks_;
  MemoryUse memory_use_;
  std::atomic<std::thread::id> recorder_{};   ///< the thread that records a graph
  std::atomic<std::uint64_t> given_back_{0};  ///< times
  Stream aside_;
  /// All detours share one: what takes a detour waits for nobody for long.
  Stream detour_;
  std::array<Stream, kLaneCount> streams_;   ///< the lanes' own
  std::array<Stream, Queue::kSides> sides_;  ///< of side queues
  std::array<QueueState, kQueueCount> queues_;
};

}  // namespace troupe::host::cuda
