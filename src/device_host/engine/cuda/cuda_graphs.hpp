#pragma once

#include <cstdint>
#include <vector>

#include "device_host/engine/cuda/cuda_services.hpp"
#include "device_host/engine/engine_graphs.hpp"

namespace troupe::host::cuda {

/// Sequences of operations as CUDA graphs: what would be queued on streams is captured instead.
class CudaGraphs final : public EngineGraphs {
 public:
  explicit CudaGraphs(CudaServices& services) : services_(services) {}
  /// Sees what the driver can do, once there is a context.
  void start();

  Result<void> begin(Queue origin) override;
  Result<std::unique_ptr<Graph>> end(Queue origin) override;
  Result<void> begin_branch(Queue origin, const std::int32_t* flag, bool again) override;
  Result<void> end_branch(Queue origin) override;
  Result<void> finish(Graph& graph) override;
  Result<bool> update(Graph& graph, std::unique_ptr<Graph> changed) override;
  [[nodiscard]] bool is_current(const Graph& graph) const override;
  Result<void> launch(Graph& graph, Queue queue) override;

 private:
  /// A part of the graph that is being recorded which is carried out or not.
  struct Branch {
    cudaGraph_t graph = nullptr;  ///< that it is in
    cudaGraphNode_t node = nullptr;
    cudaGraphConditionalHandle handle{};
    const std::int32_t* flag = nullptr;
    bool again = false;
  };

  CudaServices& services_;
  bool has_conditions_ = false;   ///< else no graph has branches
  std::vector<Branch> branches_;  ///< those that are open, one within another
};

}  // namespace troupe::host::cuda
