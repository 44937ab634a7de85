#include "device_host/engine/cuda/cuda_engine.hpp"

// Sequences of operations as CUDA graphs: what would be queued on streams is captured instead.

namespace troupe::host::cuda {
namespace {

class CapturedGraph final : public Graph {
 public:
  Handle<GraphTraits> graph;
  Handle<GraphExecTraits> ready;
  std::uint64_t given_back = 0;  ///< see Services::note_given_back(): when it was captured
};

CapturedGraph& captured(Graph& graph) {
  return static_cast<CapturedGraph&>(graph);
}

}  // namespace

/// Relaxed: other threads may open libraries meanwhile, and make plans.
Result<void> CudaEngine::begin_graph(Queue origin) {
  TROUPE_CUDA_TRY(cudaStreamBeginCapture(stream(origin), cudaStreamCaptureModeRelaxed));
  recorder_.store(std::this_thread::get_id(), std::memory_order_relaxed);
  return {};
}

Result<std::unique_ptr<Graph>> CudaEngine::end_graph(Queue origin) {
  recorder_.store(std::thread::id(), std::memory_order_relaxed);
  auto made = std::make_unique<CapturedGraph>();
  made->given_back = given_back_.load(std::memory_order_relaxed);
  const auto status = cudaStreamEndCapture(stream(origin), made->graph.out());
  (void)cudaGetLastError();  // else a later call trips over what a call did not let be captured
  if (status == cudaSuccess && made->graph) return std::unique_ptr<Graph>(std::move(made));
  auto error = failure(status, "cudaStreamEndCapture");
  if (error.code != Errc::device_lost && error.code != Errc::device_failed)
    error.code = Errc::unsupported;
  return error;
}

Result<void> CudaEngine::finish_graph(Graph& graph) {
  enter();
  auto& made = captured(graph);
  TROUPE_CUDA_TRY(cudaGraphInstantiateWithFlags(made.ready.out(), made.graph.get(), 0));
  TROUPE_CUDA_TRY(cudaGraphUpload(made.ready.get(), upload_.get()));
  TROUPE_CUDA_TRY(cudaStreamSynchronize(upload_.get()));
  return {};
}

Result<bool> CudaEngine::update_graph(Graph& graph, std::unique_ptr<Graph> changed) {
  enter();
  auto& old = captured(graph);
  auto& fresh = captured(*changed);
  cudaGraphExecUpdateResultInfo info{};
  const auto status = cudaGraphExecUpdate(old.ready.get(), fresh.graph.get(), &info);
  if (status == cudaErrorGraphExecUpdateFailure) {
    (void)cudaGetLastError();
    return false;
  }
  if (status != cudaSuccess) return failure(status, "cudaGraphExecUpdate");
  old.graph = std::move(fresh.graph);
  old.given_back = fresh.given_back;
  return true;
}

bool CudaEngine::is_current(const Graph& graph) const {
  return static_cast<const CapturedGraph&>(graph).given_back ==
         given_back_.load(std::memory_order_relaxed);
}

Result<void> CudaEngine::launch_graph(Graph& graph, Queue queue) {
  TROUPE_CUDA_TRY(cudaGraphLaunch(captured(graph).ready.get(), stream(queue)));
  return {};
}

}  // namespace troupe::host::cuda
