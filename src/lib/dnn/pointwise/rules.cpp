#include <troupe/lib/dnn/pointwise.hpp>

#include <algorithm>

#include "lib/dnn/graph/view.hpp"

namespace troupe::dnn {
namespace {

TensorId add_pointwise(Graph& graph, Mode mode, const std::vector<TensorId>& inputs,
                       const PointwiseOptions& options) {
  auto layout = graph.layout(inputs[0]);
  for (const auto input : inputs) {
    if (!input.present()) continue;
    const auto other = graph.layout(input);
    if (other.extents.size() != layout.extents.size()) {
      graph.refuse("pointwise: inputs have different numbers of dimensions");
      return {};
    }
    auto extents = layout.extents;
    for (std::size_t i = 0; i < extents.size(); ++i)
      extents[i] = std::max(extents[i], other.extents[i]);
    // The first input that has the extents of the result says how it lies.
    layout = packed_like(layout.extents == extents ? layout : other, extents);
  }
  const auto result = graph.between(layout);
  graph.add(NodeKind::pointwise, inputs, {result},
            {static_cast<std::int64_t>(mode), word_of(options.slope), word_of(options.upper),
             word_of(options.alpha), word_of(options.beta)});
  return result;
}

}  // namespace

TensorId pointwise(Graph& graph, Mode mode, TensorId a, const PointwiseOptions& options) {
  return add_pointwise(graph, mode, {a, {}, {}}, options);
}
TensorId pointwise(Graph& graph, Mode mode, TensorId a, TensorId b,
                   const PointwiseOptions& options) {
  return add_pointwise(graph, mode, {a, b, {}}, options);
}
TensorId pointwise(Graph& graph, Mode mode, TensorId a, TensorId b, TensorId c) {
  return add_pointwise(graph, mode, {a, b, c}, {});
}

std::string wrong_pointwise(const NodeView& node) {
  if (node.numbers[0] < 0 || node.numbers[0] >= kModes) return "unknown mode";
  const auto needed = inputs_of(static_cast<Mode>(node.numbers[0]));
  const auto& result = *node.outputs[0];
  for (std::size_t i = 0; i < node.inputs.size(); ++i) {
    const auto* const input = node.inputs[i];
    if ((input != nullptr) != (i < needed))
      return "the mode takes " + std::to_string(needed) + " inputs";
    if (input != nullptr && !broadcasts(*input, result))
      return "an input has another extent than the result, and not 1";
  }
  return {};
}

TensorId reduce(Graph& graph, ReduceOp reduction, TensorId x, std::vector<std::int64_t> extents) {
  // Averages and norms are sums with something before or behind: cuDNN lists them as well, and has
  // no engine for them.
  switch (reduction) {
    case ReduceOp::avg: {
      double count = 1;
      for (const auto extent : graph.layout(x).extents) count *= static_cast<double>(extent);
      for (const auto extent : extents) count /= static_cast<double>(extent);
      const auto one = graph.constant(static_cast<float>(1 / count), extents.size());
      return pointwise(graph, Mode::multiply, reduce(graph, ReduceOp::sum, x, std::move(extents)),
                       one);
    }
    case ReduceOp::norm1:
      return reduce(graph, ReduceOp::sum, pointwise(graph, Mode::abs, x), std::move(extents));
    case ReduceOp::norm2:
      return pointwise(
          graph, Mode::sqrt,
          reduce(graph, ReduceOp::sum, pointwise(graph, Mode::multiply, x, x), std::move(extents)));
    default: break;
  }
  const auto result = graph.between(packed_like(graph.layout(x), std::move(extents)));
  graph.add(NodeKind::reduction, {x}, {result}, {static_cast<std::int64_t>(reduction)});
  return result;
}

std::string wrong_reduction(const NodeView& node) {
  const auto number = node.numbers[0];
  const auto reduction = static_cast<ReduceOp>(number);
  if (number < 0 || number >= kReductions || reduction == ReduceOp::avg ||
      reduction == ReduceOp::norm1 || reduction == ReduceOp::norm2) {
    return "unknown reduction";
  }
  if (!broadcasts(*node.outputs[0], *node.inputs[0]))
    return "the result has an extent that is neither that of x nor 1";
  return {};
}

}  // namespace troupe::dnn
