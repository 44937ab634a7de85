#include <cmath>

#include "lib/dnn/graph/cpu.hpp"
#include "lib/dnn/graph/node_tensors.hpp"
#include "lib/dnn/norms/statistics.hpp"

/// Sums are made in f64, and each result is rounded to f32 once.
namespace troupe::dnn {
namespace {

/// An array of f64 with one number for each set of elements.
using PerSet = std::vector<double>;

/// Where each element of x has its numbers: in x, scale and the statistics.
std::array<Steps, 3> steps_of(const TensorView& x, const TensorView& scale,
                              std::span<const std::int64_t> sets) {
  return {row_major_steps(x.extents), row_major_steps(scale.extents), row_major_steps(sets)};
}
std::size_t at(std::int64_t place) {
  return static_cast<std::size_t>(place);
}
void round_into(std::vector<float>& to, const PerSet& from) {
  for (std::size_t i = 0; i < to.size(); ++i) to[i] = static_cast<float>(from[i]);
}

}  // namespace

void compute_norm(const NodeView& node, Contents& contents) {
  const auto which = static_cast<Norm>(node.numbers[0]);
  const auto in = of_node::named<of_node::NormInputs>(node.inputs);
  const auto out = of_node::named<of_node::NormOutputs>(node.outputs);
  const auto *const x = in.x, *const scale = in.scale, *const bias = in.bias;
  const auto sets = statistics_extents(which, x->extents, scale->extents);
  const auto steps = steps_of(*x, *scale, sets);
  std::size_t count = 1;
  for (const auto extent : sets) count *= at(extent);
  const auto& from = contents.of(x);
  const double elements = static_cast<double>(from.size()) / static_cast<double>(count);
  PerSet mean(count, 0.0), variance(count, 0.0), inverse(count);
  if (which != Norm::rms) {
    for_each_place(x->extents, steps, [&](const auto& i) { mean[at(i[2])] += from[at(i[0])]; });
    for (auto& sum : mean) sum /= elements;
  }
  for_each_place(x->extents, steps, [&](const auto& i) {
    const double apart = from[at(i[0])] - mean[at(i[2])];
    variance[at(i[2])] += apart * apart;
  });
  const double epsilon = in.epsilon->value;
  for (std::size_t i = 0; i < count; ++i) {
    variance[i] /= elements;
    inverse[i] = 1 / std::sqrt(variance[i] + epsilon);
  }
  const auto& scales = contents.of(scale);
  const auto* const biases = bias == nullptr ? nullptr : contents.of(bias).data();
  auto& y = contents.make(out.y);
  for_each_place(x->extents, steps, [&](const auto& i) {
    const double normalised = (from[at(i[0])] - mean[at(i[2])]) * inverse[at(i[2])];
    y[at(i[0])] = static_cast<float>(normalised * scales[at(i[1])] +
                                     (biases == nullptr ? 0.0 : biases[at(i[1])]));
  });
  if (out.mean != nullptr) round_into(contents.make(out.mean), mean);
  if (out.inverse_deviation != nullptr) round_into(contents.make(out.inverse_deviation), inverse);
  if (out.next_mean == nullptr) return;
  const double momentum = in.momentum->value;
  const auto &running_mean = contents.of(in.running_mean),
             &running = contents.of(in.running_variance);
  for (std::size_t i = 0; i < count; ++i) {
    mean[i] = (1 - momentum) * running_mean[i] + momentum * mean[i];
    variance[i] = (1 - momentum) * running[i] + momentum * variance[i] * elements / (elements - 1);
  }
  round_into(contents.make(out.next_mean), mean);
  round_into(contents.make(out.next_variance), variance);
}

/// With n = (x - mean) * inverse_deviation and g = dy * scale:
/// dx = inverse_deviation * (g - average of g - n * average of g * n), averages over each set; the
/// second is absent of rms norms. dscale and dbias are sums of dy * n and dy.
void compute_norm_backward(const NodeView& node, Contents& contents) {
  const auto which = static_cast<Norm>(node.numbers[0]);
  const auto in = of_node::named<of_node::NormBackwardInputs>(node.inputs);
  const auto out = of_node::named<of_node::NormBackwardOutputs>(node.outputs);
  const auto *const x = in.x, *const scale = in.scale;
  const auto sets = statistics_extents(which, x->extents, scale->extents);
  const auto steps = steps_of(*x, *scale, sets);
  const auto &dy = contents.of(in.dy), &from = contents.of(x), &scales = contents.of(scale),
             &inverse = contents.of(in.inverse_deviation);
  const auto* const mean = in.mean == nullptr ? nullptr : contents.of(in.mean).data();
  const auto normalised = [&](const auto& i) {
    return (from[at(i[0])] - (mean == nullptr ? 0.0 : mean[at(i[2])])) * inverse[at(i[2])];
  };
  PerSet dscale(scales.size(), 0.0), dbias(scales.size(), 0.0);
  PerSet of_g(inverse.size(), 0.0), of_g_n(inverse.size(), 0.0);
  for_each_place(x->extents, steps, [&](const auto& i) {
    const double gradient = dy[at(i[0])], n = normalised(i), g = gradient * scales[at(i[1])];
    dscale[at(i[1])] += gradient * n;
    dbias[at(i[1])] += gradient;
    of_g[at(i[2])] += g;
    of_g_n[at(i[2])] += g * n;
  });
  const double elements = static_cast<double>(from.size()) / static_cast<double>(inverse.size());
  auto& dx = contents.make(out.dx);
  for_each_place(x->extents, steps, [&](const auto& i) {
    const double g = static_cast<double>(dy[at(i[0])]) * scales[at(i[1])];
    const double average = mean == nullptr ? 0.0 : of_g[at(i[2])] / elements;
    dx[at(i[0])] = static_cast<float>(inverse[at(i[2])] *
                                      (g - average - normalised(i) * of_g_n[at(i[2])] / elements));
  });
  round_into(contents.make(out.dscale), dscale);
  if (out.dbias != nullptr) round_into(contents.make(out.dbias), dbias);
}

void compute_channel_sums(const NodeView& node, Contents& contents) {
  const auto out = of_node::named<of_node::ChannelSumsOutputs>(node.outputs);
  const auto *const x = node.inputs[0], *const sum = out.sum;
  const auto& from = contents.of(x);
  PerSet sums(at(sum->volume()), 0.0), squares(sums);
  std::size_t next = 0;
  for_each_place<1>(x->extents, {row_major_steps(sum->extents)}, [&](const auto& places) {
    const double value = from[next++];
    sums[at(places[0])] += value;
    squares[at(places[0])] += value * value;
  });
  round_into(contents.make(sum), sums);
  round_into(contents.make(out.squares), squares);
}

}  // namespace troupe::dnn
