#include "lib/dnn/common/frontend_cuda.hpp"
#include "lib/dnn/graph/node_tensors.hpp"
#include "lib/dnn/norms/statistics.hpp"

namespace troupe::host::cuda {

Nodes add_norm(Graph& graph, const dnn::NodeView& node, const Nodes& inputs) {
  auto [x, scale, epsilon, bias, mean, variance, momentum] =  // the frontend takes variables
      dnn::of_node::named<dnn::of_node::NormInputs>(inputs);
  const auto out = dnn::of_node::named<dnn::of_node::NormOutputs>(node.outputs);
  const auto phase = out.inverse_deviation == nullptr ? fe::NormFwdPhase_t::INFERENCE
                                                      : fe::NormFwdPhase_t::TRAINING;
  const auto made = [](const auto& tensors) { return Nodes(tensors.begin(), tensors.end()); };
  switch (static_cast<dnn::Norm>(node.numbers[0])) {
    case dnn::Norm::layer:
      return made(graph.layernorm(
          x, scale, bias,
          fe::graph::Layernorm_attributes().set_forward_phase(phase).set_epsilon(epsilon)));
    case dnn::Norm::rms: {
      auto attributes =
          fe::graph::Rmsnorm_attributes().set_forward_phase(phase).set_epsilon(epsilon);
      if (bias != nullptr) attributes.set_bias(bias);
      const auto [y, inverse_deviation] = graph.rmsnorm(x, scale, attributes);
      return {y, nullptr, inverse_deviation};
    }
    case dnn::Norm::instance:
      return made(graph.instancenorm(
          x, scale, bias,
          fe::graph::Instancenorm_attributes().set_forward_phase(phase).set_epsilon(epsilon)));
    case dnn::Norm::batch: {
      auto attributes = fe::graph::Batchnorm_attributes().set_epsilon(epsilon);
      if (mean != nullptr) attributes.set_previous_running_stats(mean, variance, momentum);
      return made(graph.batchnorm(x, scale, bias, attributes));
    }
    case dnn::Norm::adaptive:
      return made(graph.adalayernorm(
          x, scale, bias,
          fe::graph::AdaLayernorm_attributes().set_forward_phase(phase).set_epsilon(epsilon)));
  }
  return {};
}

Nodes add_norm_backward(Graph& graph, const dnn::NodeView& node, const Nodes& inputs) {
  const auto [dy, x, scale, inverse_deviation, mean] =
      dnn::of_node::named<dnn::of_node::NormBackwardInputs>(inputs);
  const auto out = dnn::of_node::named<dnn::of_node::NormBackwardOutputs>(node.outputs);
  const auto made = [](const auto& tensors) { return Nodes(tensors.begin(), tensors.end()); };
  switch (static_cast<dnn::Norm>(node.numbers[0])) {
    case dnn::Norm::layer:
      return made(graph.layernorm_backward(
          dy, x, scale,
          fe::graph::Layernorm_backward_attributes().set_saved_mean_and_inv_variance(
              mean, inverse_deviation)));
    case dnn::Norm::rms:
      return made(graph.rmsnorm_backward(
          dy, x, scale, inverse_deviation,
          fe::graph::Rmsnorm_backward_attributes().has_dbias(out.dbias != nullptr)));
    // cuDNN 9.14 has a node, whose sums over a batch came out wrong from time to time.
    case dnn::Norm::instance: return {};
    case dnn::Norm::batch:
      return made(graph.batchnorm_backward(
          dy, x, scale,
          fe::graph::Batchnorm_backward_attributes().set_saved_mean_and_inv_variance(
              mean, inverse_deviation)));
    case dnn::Norm::adaptive:
      return made(graph.adalayernorm_backward(
          dy, x, scale,
          fe::graph::AdaLayernorm_backward_attributes().set_saved_mean_and_inv_variance(
              mean, inverse_deviation)));
  }
  return {};
}

Nodes add_channel_sums(Graph& graph, const Nodes& inputs) {
  const auto made = graph.genstats(inputs[0], fe::graph::Genstats_attributes());
  return {made[0], made[1]};
}

}  // namespace troupe::host::cuda
