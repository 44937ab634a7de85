#include "lib/dnn/own/graph_cuda.hpp"
#include "lib/dnn/dropout/view.hpp"
#include "lib/dnn/graph/node_tensors.hpp"
#include "lib/dnn/own/graph_kernels.cuh"
#include "lib/dnn/own/numbers_cuda.hpp"
#include "lib/dnn/own/places.hpp"
#include "lib/dnn/own/spatial_cuda.hpp"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include <troupe/lib/dnn/rotary.hpp>

namespace troupe::host::cuda {
namespace {

using dnn::Graph;
using dnn::NodeKind;
using dnn::NodeView;
using dnn::TensorView;
using kernels::Elements;

bool moves(NodeKind kind) {
  return kind == NodeKind::reshape || kind == NodeKind::transpose || kind == NodeKind::slice ||
         kind == NodeKind::concatenate;
}

/// The tensors of a graph that is being run.
class Run {
 public:
  Run(const dnn::GraphView& graph, std::span<void* const> operands, Services& services, Queue queue)
      : graph_(graph), launch_(services.launch(queue)), tensors_(graph.tensors().size()) {
    std::size_t next = 0;
    for (const auto& tensor : graph.tensors()) {
      if (tensor.in_memory()) tensors_[tensor.number] = {operands[next++], tensor.dtype};
    }
  }

  Result<void> run(Services& services, Queue queue, Workspace& workspace) {
    TROUPE_CUDA_PROPAGATE(lay_out(services, queue, workspace));
    for (const auto& node : graph_.nodes()) TROUPE_CUDA_PROPAGATE(run(node));
    for (const auto& [tensor, memory] : rounded_)
      TROUPE_CUDA_PROPAGATE(copy(tensor->volume(), all_of(tensor), memory));
    return {};
  }

 private:
  struct Placed {
    void* first = nullptr;
    DType dtype = DType::f32;
  };

  /// What is between nodes: the results of what moves have the type of what is moved, others f32.
  /// So have outputs that other nodes read, if they have another type in memory: they are rounded
  /// to that in the end.
  Result<void> lay_out(Services& services, Queue queue, Workspace& workspace) {
    for (const auto& tensor : graph_.tensors()) {
      if (!stored_as(tensor.dtype)) {
        return Error{Errc::unsupported, 0,
                     std::string(dnn::GraphCall::kName) + ": the cuda engine has no tensors of " +
                         std::string(to_string(tensor.dtype))};
      }
    }
    std::vector<std::pair<std::uint32_t, std::size_t>> begins;
    std::size_t bytes = 0, scratch = 0;
    for (const auto& node : graph_.nodes()) {
      const auto dtype = dtype_between(node);
      for (const auto* const output : node.outputs) {
        if (output == nullptr) continue;
        auto& placed = tensors_[output->number];
        if (output->in_memory()) {
          if (output->dtype == dtype || !is_read(output)) continue;
          rounded_.emplace_back(output, all_of(output));
        }
        placed.dtype = dtype;
        begins.emplace_back(output->number, bytes);
        const auto size = static_cast<std::size_t>(output->span()) * size_of(dtype);
        bytes += (size + dnn::kAlignment - 1) / dnn::kAlignment * dnn::kAlignment;
      }
      scratch = std::max(scratch, scratch_of_number(node));
    }
    if (bytes + scratch == 0) return {};
    TROUPE_CUDA_PROPAGATE(workspace.reserve(services, queue, bytes + scratch));
    for (const auto& [number, begin] : begins)
      tensors_[number].first = static_cast<std::byte*>(workspace.get()) + begin;
    scratch_ = static_cast<std::byte*>(workspace.get()) + bytes;
    return {};
  }
  [[nodiscard]] DType dtype_between(const NodeView& node) const {
    if (!moves(node.kind)) return DType::f32;
    const auto dtype = tensors_[node.inputs[0]->number].dtype;
    const bool shared = std::ranges::all_of(node.inputs, [&](const TensorView* input) {
      return input == nullptr || tensors_[input->number].dtype == dtype;
    });
    return shared ? dtype : DType::f32;
  }
  [[nodiscard]] bool is_read(const TensorView* tensor) const {
    return std::ranges::any_of(graph_.nodes(), [&](const NodeView& node) {
      return std::ranges::find(node.inputs, tensor) != node.inputs.end();
    });
  }

  /// Where an element is whose places in the dimensions are `first`, and those after it by `steps`.
  [[nodiscard]] Dimensions from(const TensorView* tensor, std::int64_t first = 0) const {
    if (tensor->role == dnn::Role::constant) return Dimensions(tensor->value);
    const auto& placed = tensors_[tensor->number];
    return {static_cast<std::byte*>(placed.first) +
                first * static_cast<std::int64_t>(size_of(placed.dtype)),
            *stored_as(placed.dtype)};
  }
  [[nodiscard]] Elements all_of(const TensorView* tensor) const {
    if (tensor == nullptr) return {};
    auto dimensions = from(tensor);
    for (auto i = tensor->rank(); i-- > 0;) dimensions.add(tensor->extents[i], tensor->strides[i]);
    return dimensions.elements();
  }
  Result<void> copy(std::int64_t volume, const Elements& source, const Elements& target) {
    TROUPE_CUDA_TRY(
        kernels::copy_elements(launch_, static_cast<std::uint64_t>(volume), source, target));
    return {};
  }

  Result<void> run(const NodeView& node) {
    switch (node.kind) {
      case NodeKind::transpose: return transpose(node);
      case NodeKind::slice: return slice(node);
      case NodeKind::concatenate: return concatenate(node);
      case NodeKind::dropout: return drop(dnn::DropoutView(node));
      case NodeKind::sink_backward: return sink_backward(node);
      case NodeKind::rotary: return rotate(node);
      case NodeKind::pointwise:
      case NodeKind::reduction:
      case NodeKind::norm_backward:
        return run_own_number(
            launch_, node, [this](const TensorView* tensor) { return from(tensor); }, scratch_);
      case NodeKind::pooling:
      case NodeKind::pooling_backward:
      case NodeKind::resize:
      case NodeKind::resize_backward:
        return run_own_spatial(
            launch_, node, [this](const TensorView* tensor) { return from(tensor).elements(); });
      default: {  // reshape
        const auto *const x = node.inputs[0], *const y = node.outputs[0];
        return copy(y->volume(), all_of(x), all_of(y));
      }
    }
  }

  Result<void> transpose(const NodeView& node) {
    const auto *const x = node.inputs[0], *const y = node.outputs[0];
    auto source = from(x);
    for (auto i = y->rank(); i-- > 0;)
      source.add(y->extents[i], x->strides[static_cast<std::size_t>(node.numbers[i])]);
    return copy(y->volume(), source.elements(), all_of(y));
  }

  Result<void> slice(const NodeView& node) {
    const auto *const x = node.inputs[0], *const y = node.outputs[0];
    std::int64_t first = 0;
    for (std::size_t i = 0; i < x->rank(); ++i) first += node.numbers[i] * x->strides[i];
    auto source = from(x, first);
    for (auto i = y->rank(); i-- > 0;)
      source.add(y->extents[i], x->strides[i] * node.numbers[Graph::kMaxRank + i]);
    return copy(y->volume(), source.elements(), all_of(y));
  }

  Result<void> concatenate(const NodeView& node) {
    const auto* const y = node.outputs[0];
    const auto along = static_cast<std::size_t>(node.numbers[0]);
    std::int64_t first = 0;
    for (const auto* const part : node.inputs) {
      if (part == nullptr) continue;
      auto target = from(y, first);
      for (auto i = part->rank(); i-- > 0;) target.add(part->extents[i], y->strides[i]);
      TROUPE_CUDA_PROPAGATE(copy(part->volume(), all_of(part), target.elements()));
      first += part->extents[along] * y->strides[along];
    }
    return {};
  }

  Result<void> drop(const dnn::DropoutView& view) {
    const auto* const moved = view.moved == nullptr ? nullptr : tensors_[view.moved->number].first;
    TROUPE_CUDA_TRY(kernels::drop_elements(
        launch_, static_cast<std::uint64_t>(view.volume()),
        {view.seed, view.offset, static_cast<const std::int64_t*>(moved), view.threshold()},
        view.scale(), all_of(view.x), all_of(view.y), all_of(view.mask)));
    return {};
  }

  Result<void> rotate(const NodeView& node) {
    const auto [x, cos, sin] = dnn::of_node::named<dnn::of_node::RotaryInputs>(node.inputs);
    const auto last = x->rank() - 1;
    // For each row of x, though it may stand for many.
    const auto of_each_row = [&, x = x](const TensorView* angles) {
      auto dimensions = from(angles);
      dimensions.add(angles->extents[last], angles->strides[last]);
      for (auto i = last; i-- > 0;)
        dimensions.add(x->extents[i], angles->extents[i] == 1 ? 0 : angles->strides[i]);
      return dimensions.elements();
    };
    const bool halves = static_cast<dnn::RotaryPairs>(node.numbers[0]) == dnn::RotaryPairs::halves;
    TROUPE_CUDA_TRY(kernels::rotate_pairs(
        launch_, static_cast<std::uint64_t>(x->volume()),
        {x->extents[last], cos->extents[last], halves, node.numbers[1] == 0 ? 1.0f : -1.0f},
        all_of(x), of_each_row(cos), of_each_row(sin), all_of(node.outputs[0])));
    return {};
  }

  Result<void> sink_backward(const NodeView& node) {
    const auto in = dnn::of_node::named<dnn::of_node::SinkBackwardInputs>(node.inputs);
    const auto extents = in.o->extents;
    TROUPE_CUDA_TRY(kernels::sink_backward(
        launch_, {extents[0], extents[1], extents[2], extents[3]}, all_of(in.sink), all_of(in.o),
        all_of(in.d_o), all_of(in.stats), all_of(node.outputs[0])));
    return {};
  }

  const dnn::GraphView& graph_;
  const kernels::Launch launch_;
  std::vector<Placed> tensors_;
  std::vector<std::pair<const TensorView*, Elements>> rounded_;  ///< and where, in memory
  void* scratch_ = nullptr;  ///< what a node needs while it is computed
};

}  // namespace

bool has_own_kernels(const dnn::GraphView& graph) {
  return std::ranges::all_of(graph.nodes(), [](const NodeView& node) {
    return moves(node.kind) || node.kind == NodeKind::dropout ||
           node.kind == NodeKind::sink_backward || node.kind == NodeKind::rotary ||
           is_own_number(node) || is_own_spatial(node.kind);
  });
}

bool is_own(const dnn::GraphView& graph) {
  const auto cudnn_lacks = [&](const NodeView& node) {
    if (is_own_spatial(node.kind)) return cudnn_lacks_spatial(node);
    return !is_own_number(node) || cudnn_lacks_number(node, graph);
  };
  return has_own_kernels(graph) && std::ranges::any_of(graph.nodes(), cudnn_lacks);
}

Result<void> run_own(const dnn::GraphView& graph, std::span<void* const> operands,
                     Services& services, Queue queue, Workspace& workspace) {
  return Run(graph, operands, services, queue).run(services, queue, workspace);
}

}  // namespace troupe::host::cuda
