#include "device_host/engine/cuda/cuda_graphs.hpp"

#include "device_host/engine/cuda/kernels.hpp"

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

void CudaGraphs::start() {
  has_conditions_ = kernels::preload_condition() == cudaSuccess;
  (void)cudaGetLastError();
}

/// Relaxed: other threads may allocate memory meanwhile. They must not wait for the device.
Result<void> CudaGraphs::begin(Queue origin) {
  TROUPE_CUDA_TRY(cudaStreamBeginCapture(services_.stream(origin), cudaStreamCaptureModeRelaxed));
  services_.begin_recording();
  return {};
}

Result<std::unique_ptr<Graph>> CudaGraphs::end(Queue origin) {
  services_.end_recording();
  auto made = std::make_unique<CapturedGraph>();
  made->given_back = services_.given_back();
  const bool whole = branches_.empty();
  branches_.clear();
  const auto status = cudaStreamEndCapture(services_.stream(origin), made->graph.out());
  (void)cudaGetLastError();  // else a later call trips over what a call did not
                             // let be captured
  // What has ended is part of a graph, whose other parts CUDA may have destroyed or not.
  if (!whole) (void)made->graph.release();
  if (status == cudaSuccess && made->graph) return std::unique_ptr<Graph>(std::move(made));
  auto error = failure(status, "cudaStreamEndCapture");
  if (error.code != Errc::device_lost && error.code != Errc::device_failed)
    error.code = Errc::unsupported;
  return error;
}

/// A stream captures into one graph at a time: the capture of the graph around the branch ends
/// here, and goes on behind its node.
Result<void> CudaGraphs::begin_branch(Queue origin, const std::int32_t* flag, bool again) {
  if (!has_conditions_) return Error{Errc::unsupported, 0, "the driver has no conditional nodes"};
  const auto its_stream = services_.stream(origin);
  Branch branch{.flag = flag, .again = again};
  cudaStreamCaptureStatus capturing{};
  TROUPE_CUDA_TRY(cudaStreamGetCaptureInfo(its_stream, &capturing, nullptr, &branch.graph));
  if (capturing != cudaStreamCaptureStatusActive)
    return Error{Errc::unsupported, 0, "what stands before a branch cannot be part of a graph"};
  TROUPE_CUDA_TRY(cudaGraphConditionalHandleCreate(&branch.handle, branch.graph, 0, 0));
  TROUPE_CUDA_TRY(kernels::set_condition(services_.launch(origin), branch.handle, flag));
  const cudaGraphNode_t* last = nullptr;  // the launch
  std::size_t count = 0;
  TROUPE_CUDA_TRY(
      cudaStreamGetCaptureInfo(its_stream, &capturing, nullptr, nullptr, &last, nullptr, &count));
  const std::vector<cudaGraphNode_t> before(last, last + count);
  TROUPE_CUDA_TRY(cudaStreamEndCapture(its_stream, &branch.graph));
  cudaGraphNodeParams node{};
  node.type = cudaGraphNodeTypeConditional;
  node.conditional.handle = branch.handle;
  node.conditional.type = again ? cudaGraphCondTypeWhile : cudaGraphCondTypeIf;
  node.conditional.size = 1;
  TROUPE_CUDA_TRY(
      cudaGraphAddNode(&branch.node, branch.graph, before.data(), nullptr, before.size(), &node));
  branches_.push_back(branch);
  TROUPE_CUDA_TRY(cudaStreamBeginCaptureToGraph(its_stream, node.conditional.phGraph_out[0],
                                                nullptr, nullptr, 0, cudaStreamCaptureModeRelaxed));
  return {};
}

Result<void> CudaGraphs::end_branch(Queue origin) {
  const auto its_stream = services_.stream(origin);
  check(!branches_.empty(), "no branch of a graph is open");
  const auto branch = branches_.back();
  if (branch.again)
    TROUPE_CUDA_TRY(kernels::set_condition(services_.launch(origin), branch.handle, branch.flag));
  cudaGraph_t body = nullptr;  // the node's
  TROUPE_CUDA_TRY(cudaStreamEndCapture(its_stream, &body));
  branches_.pop_back();
  TROUPE_CUDA_TRY(cudaStreamBeginCaptureToGraph(its_stream, branch.graph, &branch.node, nullptr, 1,
                                                cudaStreamCaptureModeRelaxed));
  return {};
}

Result<void> CudaGraphs::finish(Graph& graph) {
  services_.enter();
  auto& made = captured(graph);
  TROUPE_CUDA_TRY(cudaGraphInstantiateWithFlags(made.ready.out(), made.graph.get(), 0));
  TROUPE_CUDA_TRY(cudaGraphUpload(made.ready.get(), services_.aside()));
  TROUPE_CUDA_TRY(cudaStreamSynchronize(services_.aside()));
  return {};
}

Result<bool> CudaGraphs::update(Graph& graph, std::unique_ptr<Graph> changed) {
  services_.enter();
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

bool CudaGraphs::is_current(const Graph& graph) const {
  return static_cast<const CapturedGraph&>(graph).given_back == services_.given_back();
}

Result<void> CudaGraphs::launch(Graph& graph, Queue queue) {
  TROUPE_CUDA_TRY(cudaGraphLaunch(captured(graph).ready.get(), services_.stream(queue)));
  return {};
}

}  // namespace troupe::host::cuda
