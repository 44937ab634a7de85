#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "device_host/engine/collective_half.hpp"
#include "device_host/engine/cpu/cpu_memory.hpp"
#include "device_host/engine/cpu/library.hpp"
#include "device_host/engine/cpu/worker.hpp"
#include "device_host/engine/engine.hpp"
#include "device_host/engine/lane_libraries.hpp"
#include "device_host/engine/product_checks.hpp"

namespace troupe::host::cpu {

/// The engine for hosts without a GPU, and the reference for the other one. One thread executes all
/// queues but the collective one, which has a thread of its own, so that communication overlaps
/// computation and few threads compete where cores are few. All operations are for libraries.
class CpuEngine : public Engine, public Services {
 public:
  /// Throws troupe::Exception: io; what loading the collective library says.
  explicit CpuEngine(const EngineOptions& options);
  ~CpuEngine() override;

  [[nodiscard]] const DeviceInfo& description() const override { return description_; }

  [[nodiscard]] EngineMemory& memory() override { return memory_; }
  [[nodiscard]] EngineLibraries& libraries() override { return libraries_; }
  [[nodiscard]] EngineGraphs& graphs() override { return *graphs_; }
  [[nodiscard]] CollectiveHalf& collectives() override { return *collectives_; }

  Result<void> open_queue(Queue queue) override;
  Result<std::shared_ptr<std::byte>> scratch_memory(Queue queue, std::uint64_t bytes) override;
  [[nodiscard]] std::byte* scratch_cells() override { return scratch_cells_.data(); }
  Result<Mark> mark(Queue queue) override;
  Result<void> wait(Queue queue, Mark mark) override;
  Result<bool> reached(Mark mark) override;
  void release(Mark mark) override;
  Result<void> call_when_reached(Queue queue, void (*done)(void*), void* argument) override;
  Result<void> synchronize(Queue queue) override;
  [[nodiscard]] int completion_fd() const override { return signal_.fd(); }
  void arm() override { signal_.arm(); }

  Result<void> suffer(memory::FaultKind kind, Queue queue) override;
  Result<void> order_wrong_products(std::uint32_t count) override;

  bool blocks(const OperationInfo& info, const std::byte* op, const Call& call) override {
    return libraries_.blocks(info, op, call);
  }
  Result<void> run(const OperationInfo& info, const std::byte* op, const Call& call) override;

  Result<void> submit(const Call& call, std::function<void()> work,
                      std::shared_ptr<std::atomic<bool>> failure_over) override;
  [[nodiscard]] int threads() const noexcept override { return options_.threads; }
  [[nodiscard]] const std::string& network() const noexcept override { return options_.interface; }
  [[nodiscard]] bool records() const noexcept override;
  [[nodiscard]] ProductChecks& product_checks() noexcept override { return product_checks_; }

 private:
  [[nodiscard]] Worker& worker(Queue queue) {
    return queue.lane == Lane::collective ? collective_ : compute_;
  }
  [[nodiscard]] MarkState& state(Mark mark);
  /// The failure, if the queue's place that `reached` stands for has one.
  static Result<void> outcome(const MarkState& reached);

  struct QueueMark {
    std::shared_ptr<MarkState> state;  // empty: the id is free
    Queue queue;
  };

  EngineOptions options_;
  ProductChecks product_checks_{options_.check_products};
  DeviceInfo description_;
  CpuMemory memory_;
  LaneLibraries libraries_;
  std::unique_ptr<EngineGraphs> graphs_;
  alignas(256) std::array<std::byte, kScratchCellBytes> scratch_cells_{};
  std::unique_ptr<CollectiveHalf> collectives_;
  CompletionSignal signal_;
  std::vector<QueueMark> marks_;  // by id
  std::vector<std::uint32_t> free_marks_;

  Worker compute_;
  Worker collective_;
};

}  // namespace troupe::host::cpu
