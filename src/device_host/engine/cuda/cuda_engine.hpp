#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "device_host/engine/collective_half.hpp"
#include "device_host/engine/cuda/cuda_graphs.hpp"
#include "device_host/engine/cuda/cuda_memory.hpp"
#include "device_host/engine/cuda/cuda_services.hpp"
#include "device_host/engine/cuda/marks.hpp"
#include "device_host/engine/engine.hpp"
#include "device_host/engine/lane_libraries.hpp"

namespace troupe::host::cuda {

/// The engine on one CUDA device: the primary context, and what stands on it: memory, queues with
/// their marks, libraries, graphs. All operations are for libraries. See Engine for who may call
/// what.
class CudaEngine final : public Engine {
 public:
  CudaEngine(const EngineOptions& options, const Driver& api, DeviceInfo description,
             const DeviceFacts& facts);
  ~CudaEngine() override;
  /// Makes the collective library's half, the context, and what all lanes share.
  Result<void> start();

  [[nodiscard]] const DeviceInfo& description() const override { return description_; }
  [[nodiscard]] EngineMemory& memory() override { return memory_; }
  [[nodiscard]] EngineLibraries& libraries() override { return libraries_; }
  [[nodiscard]] EngineGraphs& graphs() override { return graphs_; }
  [[nodiscard]] CollectiveHalf& collectives() override { return *collectives_; }

  Result<void> open_queue(Queue queue) override;
  Result<std::shared_ptr<std::byte>> scratch_memory(Queue queue, std::uint64_t bytes) override;
  [[nodiscard]] std::byte* scratch_cells() override {
    return static_cast<std::byte*>(scratch_cells_.get());
  }
  Result<Mark> mark(Queue queue) override;
  Result<void> wait(Queue queue, Mark mark) override;
  Result<bool> reached(Mark mark) override;
  void release(Mark mark) override;
  Result<void> call_when_reached(Queue queue, void (*done)(void*), void* argument) override;
  Result<void> synchronize(Queue queue) override;
  [[nodiscard]] int completion_fd() const override { return -1; }
  void arm() override {}
  Result<void> suffer(memory::FaultKind kind, Queue queue) override;
  Result<void> order_wrong_products(std::uint32_t count) override;
  /// A copy of a few bytes to the device: kernels that fill the GPU do not delay it.
  Result<void> begin_probe() override;
  Result<bool> probe_ended() override;
  /// After an exception of a kernel: the driver has stopped the whole context.
  [[nodiscard]] bool is_still_after(const Error& error) const override;

  bool blocks(const OperationInfo& info, const std::byte* op, const Call& call) override {
    return libraries_.blocks(info, op, call);
  }
  Result<void> run(const OperationInfo& info, const std::byte* op, const Call& call) override;

 private:
  Result<void> open_measured(Queue queue);

  const bool register_buffers_;
  const Driver& api_;
  DeviceInfo description_;
  HostMemory scratch_cells_;
  Event probed_;  ///< see begin_probe()
  DeviceMemory probe_memory_;
  CudaServices services_;
  CudaMemory memory_;
  CudaGraphs graphs_;
  MarkPool marks_;
  /// Behind the streams and the scratch memory, which they use to their end.
  LaneLibraries libraries_;
  /// Last: it ends first, and with it what streams may wait for.
  std::unique_ptr<CollectiveHalf> collectives_;
};

}  // namespace troupe::host::cuda
