#include <troupe/lib/dnn/norms.hpp>
#include <troupe/lib/dnn/pointwise.hpp>

#include <algorithm>
#include <string>

#include "lib/dnn/graph/node_tensors.hpp"
#include "lib/dnn/graph/view.hpp"
#include "lib/dnn/norms/statistics.hpp"

namespace troupe::dnn {
namespace {

using Extents = std::vector<std::int64_t>;

/// Those of scale and bias in a norm over channels: 1, channels, 1...
Extents of_channels(std::span<const std::int64_t> x) {
  Extents extents(x.size(), 1);
  if (extents.size() > 1) extents[1] = x[1];
  return extents;
}
bool over_channels(Norm which) {
  return which == Norm::instance || which == Norm::batch;
}

/// What must hold for x, scale and the statistics of both nodes.
std::string wrong_extents(Norm which, const TensorView& x, const TensorView& scale,
                          const std::vector<const TensorView*>& statistics) {
  if (x.rank() < 2) return "x has less than 2 dimensions";
  if (over_channels(which) && !std::ranges::equal(scale.extents, of_channels(x.extents)))
    return "scale does not have extents 1, channels, 1...";
  if (which == Norm::adaptive && scale.extents[0] != x.extents[0])
    return "scale does not have the first extent of x";
  if (!broadcasts(scale, x)) return "an extent of scale is neither that of x nor 1";
  const auto sets = statistics_extents(which, x.extents, scale.extents);
  for (const auto* const tensor : statistics) {
    if (tensor != nullptr && !std::ranges::equal(tensor->extents, sets))
      return "a statistic does not have one number for each set of elements";
  }
  return {};
}

}  // namespace

Extents statistics_extents(Norm which, std::span<const std::int64_t> x,
                           std::span<const std::int64_t> scale) {
  Extents extents(x.begin(), x.end());
  for (std::size_t i = 0; i < extents.size(); ++i) {
    const bool together = which == Norm::instance   ? i >= 2
                          : which == Norm::batch    ? i != 1
                          : which == Norm::adaptive ? i != 0 && scale[i] != 1
                                                    : scale[i] != 1;
    if (together) extents[i] = 1;
  }
  return extents;
}

Normalized norm(Graph& graph, Norm which, TensorId x, TensorId scale, TensorId bias, float epsilon,
                Phase phase, const Running& running) {
  const auto layout = graph.layout(x), weights = graph.layout(scale);
  const auto rank = layout.extents.size();
  if (weights.extents.size() != rank) {
    graph.refuse("norm: x and scale have different numbers of dimensions");
    return {};
  }
  const auto sets = packed_like(layout, statistics_extents(which, layout.extents, weights.extents));
  Normalized made;
  made.y = graph.between(packed_like(layout, layout.extents));
  if (phase == Phase::training || which == Norm::batch) {
    if (which != Norm::rms) made.mean = graph.between(sets);
    made.inverse_deviation = graph.between(sets);
  }
  const bool runs = running.mean.present() || running.variance.present();
  TensorId momentum;
  if (runs) {
    momentum = graph.constant(running.momentum, rank);
    made.next_mean = graph.between(packed_like(weights, weights.extents));
    made.next_variance = graph.between(packed_like(weights, weights.extents));
  }
  graph.add(
      NodeKind::norm,
      {x, scale, graph.constant(epsilon, rank), bias, running.mean, running.variance, momentum},
      {made.y, made.mean, made.inverse_deviation, made.next_mean, made.next_variance},
      {static_cast<std::int64_t>(which)});
  return made;
}

std::string wrong_norm(const NodeView& node) {
  if (node.numbers[0] < 0 || node.numbers[0] >= kNorms) return "unknown norm";
  const auto which = static_cast<Norm>(node.numbers[0]);
  const auto in = of_node::named<of_node::NormInputs>(node.inputs);
  const auto out = of_node::named<of_node::NormOutputs>(node.outputs);
  const auto &x = *in.x, &scale = *in.scale, &epsilon = *in.epsilon;
  const auto* const bias = in.bias;
  const auto *const mean = out.mean, *const inverse_deviation = out.inverse_deviation;
  if (auto wrong = wrong_extents(which, x, scale, {mean, inverse_deviation}); !wrong.empty())
    return wrong;
  if (!same_extents(*out.y, x)) return "y has other extents than x";
  if (epsilon.role != Role::constant || !(epsilon.value >= 0))
    return "epsilon is no constant, or negative";
  if (bias == nullptr && which != Norm::rms) return "only an rms norm may lack bias";
  if (bias != nullptr && !same_extents(*bias, scale)) return "bias has other extents than scale";
  if (which == Norm::rms ? mean != nullptr : (mean == nullptr) != (inverse_deviation == nullptr))
    return "it makes one statistic too few, or too many";
  if (which == Norm::batch) {
    if (mean == nullptr) return "a batch norm makes statistics";
    if (x.volume() == mean->volume()) return "a batch norm of one element for each channel";
  }
  const std::array running{in.running_mean, in.running_variance, out.next_mean, out.next_variance};
  const auto absent = std::count(running.begin(), running.end(), nullptr);
  if (absent == 4 && in.momentum == nullptr) return {};
  if (absent != 0 || in.momentum == nullptr || which != Norm::batch)
    return "running averages are not complete, or those of no batch norm";
  if (in.momentum->role != Role::constant) return "the momentum is no constant";
  for (const auto* const tensor : running) {
    if (!same_extents(*tensor, scale)) return "a running average has other extents than scale";
  }
  return {};
}

TensorId batch_norm_inference(Graph& graph, TensorId x, TensorId mean, TensorId variance,
                              TensorId scale, TensorId bias, float epsilon) {
  const auto rank = graph.layout(x).extents.size();
  const auto inverse = pointwise(
      graph, Mode::rsqrt, pointwise(graph, Mode::add, variance, graph.constant(epsilon, rank)));
  const auto centred = pointwise(graph, Mode::subtract, x, mean);
  const auto normalised = pointwise(graph, Mode::multiply, centred, inverse);
  return pointwise(graph, Mode::add, pointwise(graph, Mode::multiply, normalised, scale), bias);
}

NormGradients norm_backward(Graph& graph, Norm which, TensorId dy, TensorId x, TensorId scale,
                            TensorId mean, TensorId inverse_deviation, bool with_dbias) {
  const auto layout = graph.layout(x), weights = graph.layout(scale);
  if (weights.extents.size() != layout.extents.size()) {
    graph.refuse("norm_backward: x and scale have different numbers of dimensions");
    return {};
  }
  NormGradients made;
  made.dx = graph.between(packed_like(layout, layout.extents));
  made.dscale = graph.between(packed_like(weights, weights.extents));
  if (with_dbias) made.dbias = graph.between(packed_like(weights, weights.extents));
  graph.add(NodeKind::norm_backward, {dy, x, scale, inverse_deviation, mean},
            {made.dx, made.dscale, made.dbias}, {static_cast<std::int64_t>(which)});
  return made;
}

std::string wrong_norm_backward(const NodeView& node) {
  if (node.numbers[0] < 0 || node.numbers[0] >= kNorms) return "unknown norm";
  const auto which = static_cast<Norm>(node.numbers[0]);
  const auto in = of_node::named<of_node::NormBackwardInputs>(node.inputs);
  const auto out = of_node::named<of_node::NormBackwardOutputs>(node.outputs);
  const auto &x = *in.x, &scale = *in.scale;
  const auto *const mean = in.mean, *const dbias = out.dbias;
  if (auto wrong = wrong_extents(which, x, scale, {in.inverse_deviation, mean}); !wrong.empty())
    return wrong;
  if (!same_extents(*in.dy, x) || !same_extents(*out.dx, x))
    return "dy or dx has other extents than x";
  if ((which == Norm::rms) != (mean == nullptr))
    return "all but rms norms need the mean, which those do not have";
  if (dbias == nullptr && which != Norm::rms) return "only an rms norm may lack dbias";
  if (!same_extents(*out.dscale, scale) || (dbias != nullptr && !same_extents(*dbias, scale))) {
    return "dscale or dbias has other extents than scale";
  }
  return {};
}

Normalized group_norm(Graph& graph, TensorId x, TensorId scale, TensorId bias, float epsilon) {
  const auto layout = graph.layout(x);
  auto sets = layout.extents;
  std::fill(sets.begin() + std::min<std::ptrdiff_t>(2, std::ssize(sets)), sets.end(), 1);
  const auto rank = layout.extents.size();
  Normalized made;
  made.mean = reduce(graph, ReduceOp::avg, x, sets);
  const auto centred = pointwise(graph, Mode::subtract, x, made.mean);
  const auto variance =
      reduce(graph, ReduceOp::avg, pointwise(graph, Mode::multiply, centred, centred), sets);
  made.inverse_deviation = pointwise(
      graph, Mode::rsqrt, pointwise(graph, Mode::add, variance, graph.constant(epsilon, rank)));
  const auto normalised = pointwise(graph, Mode::multiply, centred, made.inverse_deviation);
  made.y = pointwise(graph, Mode::add, pointwise(graph, Mode::multiply, normalised, scale), bias);
  return made;
}

NormGradients group_norm_backward(Graph& graph, TensorId dy, TensorId x, TensorId scale,
                                  TensorId mean, TensorId inverse_deviation) {
  // As compute_norm_backward() has it.
  const auto sets = graph.layout(mean).extents, weights = graph.layout(scale).extents;
  const auto times = [&](TensorId a, TensorId b) { return pointwise(graph, Mode::multiply, a, b); };
  const auto less = [&](TensorId a, TensorId b) { return pointwise(graph, Mode::subtract, a, b); };
  const auto normalised = times(less(x, mean), inverse_deviation);
  const auto scaled = times(dy, scale);
  const auto of_scaled = reduce(graph, ReduceOp::avg, scaled, sets);
  const auto of_product = reduce(graph, ReduceOp::avg, times(scaled, normalised), sets);
  return {times(less(less(scaled, of_scaled), times(normalised, of_product)), inverse_deviation),
          reduce(graph, ReduceOp::sum, times(dy, normalised), weights),
          reduce(graph, ReduceOp::sum, dy, weights)};
}

ChannelSums channel_sums(Graph& graph, TensorId x) {
  const auto layout = graph.layout(x);
  const auto sums = packed_like(layout, of_channels(layout.extents));
  const ChannelSums made{graph.between(sums), graph.between(sums)};
  graph.add(NodeKind::channel_sums, {x}, {made.sum, made.squares}, {});
  return made;
}

std::string wrong_channel_sums(const NodeView& node) {
  const auto& x = *node.inputs[0];
  if (x.rank() < 2) return "x has less than 2 dimensions";
  for (const auto* const sums : node.outputs) {
    if (!std::ranges::equal(sums->extents, of_channels(x.extents)))
      return "the sums have not one number for each channel";
  }
  return {};
}

}  // namespace troupe::dnn

namespace troupe {

dnn::Layout DnnNorms::rows_of(Call& call, std::int64_t elements, std::int64_t columns) {
  if (columns < 1 || elements < columns || elements % columns != 0) {
    call.graph.refuse("norm: x does not have as many elements as some rows of scale");
    return {1, 1, 1, 1};
  }
  return dnn::channels_last(elements / columns, columns, {1, 1});
}

dnn::Layout DnnNorms::layout_of(Call& call, const dnn::ChannelsShape& shape) {
  if (shape.spatial.size() > 3) {
    call.graph.refuse("norm: there are more than 3 spatial dimensions");
    return {1, 1, 1, 1};
  }
  auto spatial = shape.spatial;
  while (spatial.size() < 2) spatial.push_back(1);  // cuDNN has 4 dimensions or 5
  return dnn::channels_last(shape.batch, shape.channels, spatial);
}

dnn::Layout DnnNorms::weights_like(const dnn::Layout& x, std::int64_t channels) {
  return dnn::channels_last(1, channels, std::vector<std::int64_t>(x.extents.size() - 2, 1));
}

dnn::Layout DnnNorms::statistics_like(dnn::Norm which, const dnn::Layout& x) {
  const auto scale = weights_like(x, x.extents[1]);
  return dnn::packed_like(x, dnn::statistics_extents(which, x.extents, scale.extents));
}

DnnNorms::GroupLayouts DnnNorms::groups_of(Call& call, const dnn::ChannelsShape& shape,
                                           std::int64_t groups) {
  const auto layout = layout_of(call, shape);
  if (groups < 1 || shape.channels % groups != 0) {
    call.graph.refuse("group_norm: the groups do not divide the channels");
    groups = 1;
  }
  // Channels vary fastest: so do those of a group, and then the groups.
  const auto channels = shape.channels, each = channels / groups;
  std::int64_t places = 1;
  for (std::size_t i = 2; i < layout.extents.size(); ++i) {
    if (__builtin_mul_overflow(places, layout.extents[i], &places)) places = 0;  // refused
  }
  const auto batch_stride = static_cast<std::int64_t>(static_cast<std::uint64_t>(channels) *
                                                      static_cast<std::uint64_t>(places));
  return {dnn::Layout({shape.batch, groups, each, places}, {batch_stride, each, 1, channels}),
          dnn::Layout({1, groups, each, 1}), dnn::Layout({shape.batch, groups, 1, 1})};
}

}  // namespace troupe
