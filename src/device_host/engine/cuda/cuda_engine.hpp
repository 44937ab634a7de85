#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <thread>
#include <vector>

#include "device_host/engine/collective_half.hpp"
#include "device_host/engine/cuda/devices.hpp"
#include "device_host/engine/cuda/library.hpp"
#include "device_host/engine/cuda/marks.hpp"
#include "device_host/engine/cuda/memory_use.hpp"
#include "device_host/engine/engine.hpp"

namespace troupe::host::cuda {

/// What every queue has: a stream, and some device memory for scalars and for warming up.
struct QueueState {
  cudaStream_t stream = nullptr;  ///< nullptr: not open
  DeviceMemory scratch;
};

/// The engine on one CUDA device: the primary context, memory, a stream per queue, marks. All
/// operations are for libraries. See Engine for who may call what.
class CudaEngine final : public Engine, public Services {
 public:
  CudaEngine(const EngineOptions& options, const Driver& api, DeviceInfo description,
             const DeviceFacts& facts);
  ~CudaEngine() override;
  /// Makes the collective library's half, the context, and what all lanes share.
  Result<void> start();

  [[nodiscard]] const DeviceInfo& description() const override { return description_; }

  // memory.cpp
  std::uint64_t free_memory() override;
  std::vector<std::pair<std::string, std::uint64_t>> memory_use() override;
  Result<Slab> make_slab(std::uint64_t bytes) override;
  Result<std::byte*> map_slab(int fd, std::uint64_t bytes) override;
  void unmap_slab(std::byte* base, std::uint64_t bytes) override;
  Result<std::byte*> map_foreign(int fd, std::uint64_t bytes) override;
  void unmap_foreign(std::byte* base, std::uint64_t bytes) override;
  Result<std::byte*> map_pinned(int fd, std::uint64_t bytes) override;
  void unmap_pinned(std::byte* base, std::uint64_t bytes) override;

  // cuda_engine.cpp
  Result<void> open_queue(Queue queue) override;
  void discard_library(Lane lane) override;
  [[nodiscard]] std::vector<LoadedLibrary> stands_on(Lane lane) const override;
  [[nodiscard]] bool remembers_contents(Lane lane) const override;
  [[nodiscard]] bool overlaps(Lane lane) const override;
  void overwrites(Lane lane, const Operand& range) override;
  std::vector<std::vector<std::byte>> take_new_plans(Lane lane) override;
  void adopt_plan(Lane lane, std::span<const std::byte> plan) override;
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
  /// A copy of a few bytes to the device: kernels that fill the GPU do not delay it.
  Result<void> begin_probe() override;
  Result<bool> probe_ended() override;
  /// After an exception of a kernel: the driver has stopped the whole context.
  [[nodiscard]] bool is_still_after(const Error& error) const override;

  [[nodiscard]] CollectiveHalf& collectives() override { return *collectives_; }

  // graph.cpp
  Result<void> begin_graph(Queue origin) override;
  Result<std::unique_ptr<Graph>> end_graph(Queue origin) override;
  Result<void> begin_branch(Queue origin, const std::int32_t* flag, bool again) override;
  Result<void> end_branch(Queue origin) override;
  Result<void> finish_graph(Graph& graph) override;
  Result<bool> update_graph(Graph& graph, std::unique_ptr<Graph> changed) override;
  [[nodiscard]] bool is_current(const Graph& graph) const override;
  Result<void> launch_graph(Graph& graph, Queue queue) override;

  bool blocks(const OperationInfo& info, const std::byte* op, const Call& call) override;
  Result<void> run(const OperationInfo& info, const std::byte* op, const Call& call) override;

  // Services; stream() makes the device current on the calling thread.
  [[nodiscard]] int device() const noexcept override { return device_; }
  [[nodiscard]] bool other_hosts() const noexcept override { return other_hosts_; }
  [[nodiscard]] bool reproducible() const noexcept override { return reproducible_; }
  [[nodiscard]] bool in_process() const noexcept override { return in_process_; }
  void enter() const override;
  [[nodiscard]] bool records() const noexcept override {
    return recorder_.load(std::memory_order_relaxed) == std::this_thread::get_id();
  }
  void note_given_back() noexcept override { given_back_.fetch_add(1, std::memory_order_relaxed); }
  Result<void> count_memory(const std::string& cause,
                            const std::function<Result<void>()>& work) override;
  [[nodiscard]] cudaStream_t stream(Queue queue) const override;
  [[nodiscard]] int multiprocessors() const noexcept override { return facts_.multiprocessors; }
  [[nodiscard]] std::byte* scratch(Queue queue) const override {
    return static_cast<std::byte*>(queues_[queue.index()].scratch.get());
  }
  Result<void> fill(Queue queue, void* destination, const std::array<std::uint8_t, 16>& pattern,
                    std::size_t size, std::uint64_t count) const override;
  Result<void> write_addresses(Queue queue, void** destination,
                               std::span<void* const> addresses) const override;
  Result<void> write_addresses(Queue queue, void** destination, const kernels::Places& places,
                               std::int64_t count, std::int64_t* outside) const override;

 private:
  /// The library of a lane, open or not; loads and makes it where that has not been done.
  Result<LibraryHalf*> library(Lane lane);
  Result<void> open_measured(Queue queue);

  /// Maps `handle` into new address space, readable and writable by the device.
  Result<std::byte*> map(CUmemGenericAllocationHandle handle, std::uint64_t bytes);
  Result<CUmemGenericAllocationHandle> allocate(std::uint64_t bytes);
  Result<void> reserve_budget(std::uint64_t bytes);

  const int device_;
  const bool other_hosts_;
  const bool reproducible_, register_buffers_, in_process_;
  const std::uint64_t memory_limit_;
  const Driver& api_;
  DeviceInfo description_;
  const DeviceFacts facts_;

  std::atomic<std::uint64_t> slab_bytes_{0};
  MemoryUse memory_use_;
  std::atomic<bool> rdma_;  ///< cleared if slabs cannot be made for GPUDirect RDMA after all

  /// A part of the graph that is being recorded which is carried out or not.
  struct Branch {
    cudaGraph_t graph = nullptr;  ///< that it is in
    cudaGraphNode_t node = nullptr;
    cudaGraphConditionalHandle handle{};
    const std::int32_t* flag = nullptr;
    bool again = false;
  };

  bool has_conditions_ = false;               ///< else no graph has branches
  std::vector<Branch> branches_;              ///< those that are open, one within another
  std::atomic<std::thread::id> recorder_{};   ///< the thread that records a graph
  std::atomic<std::uint64_t> given_back_{0};  ///< times; see note_given_back()
  HostMemory scratch_cells_;
  Stream upload_;  ///< of graphs, and for probes: never of what takes long
  Event probed_;   ///< see begin_probe()
  DeviceMemory probe_memory_;
  /// All detours share one: what takes a detour waits for nobody for long.
  Stream detour_;
  std::array<Stream, kLaneCount> streams_;   ///< the lanes' own
  std::array<Stream, Queue::kSides> sides_;  ///< of side queues
  std::array<QueueState, kQueueCount> queues_;
  MarkPool marks_;
  /// The lanes' libraries, once these are open.
  std::array<std::atomic<LibraryHalf*>, kLaneCount> libraries_{};
  /// Behind the streams and the scratch memory, which they use to their end.
  std::array<std::unique_ptr<LibraryHalf>, kLaneCount> loaded_;
  /// What has failed stays until the end: to destroy a handle waits for all that runs.
  std::vector<std::unique_ptr<LibraryHalf>> discarded_;
  /// Last: it ends first, and with it what streams may wait for.
  std::unique_ptr<CollectiveHalf> collectives_;
};

}  // namespace troupe::host::cuda
