#include "lib/dnn/own/numbers_cuda.hpp"
#include "lib/dnn/graph/node_tensors.hpp"
#include "lib/dnn/own/numbers_kernels.cuh"

#include <algorithm>
#include <limits>
#include <numeric>
#include <span>
#include <utility>
#include <vector>

#include <troupe/lib/dnn/norms.hpp>
#include <troupe/lib/dnn/pointwise.hpp>

namespace troupe::host::cuda {
namespace {

using dnn::NodeKind;
using dnn::NodeView;
using dnn::ReduceOp;
using dnn::TensorView;
using kernels::Elements;
using kernels::Shares;

bool is_instance_gradient(const NodeView& node) {
  return node.kind == NodeKind::norm_backward &&
         static_cast<dnn::Norm>(node.numbers[0]) == dnn::Norm::instance;
}

/// True if cuDNN computes a function otherwise where numbers are not finite or very large: its relu
/// makes the largest f32 of infinity, say.
bool differs_at_limits(const NodeView& node) {
  using dnn::Mode;
  switch (static_cast<Mode>(node.numbers[0])) {
    case Mode::relu:
    case Mode::gelu:
    case Mode::gelu_tanh:
    case Mode::softplus:
    case Mode::swish:
    case Mode::maximum:
    case Mode::minimum:
    case Mode::relu_backward:
    case Mode::gelu_backward:
    case Mode::gelu_tanh_backward:
    case Mode::softplus_backward:
    case Mode::swish_backward: break;
    default: return false;
  }
  const auto known = [](const TensorView* tensor) {
    return tensor == nullptr || stored_as(tensor->dtype).has_value();
  };
  return std::ranges::all_of(node.inputs, known) && std::ranges::all_of(node.outputs, known);
}

/// The dimensions of a tensor, the one that varies fastest in memory first.
std::vector<std::size_t> fastest_first(const TensorView& tensor) {
  std::vector<std::size_t> order(tensor.rank());
  std::iota(order.rbegin(), order.rend(), std::size_t{0});
  std::ranges::stable_sort(order, {}, [&](std::size_t i) { return tensor.strides[i]; });
  return order;
}

/// A tensor whose extents of 1 stand for all indices of a tensor of these extents, in this order of
/// its dimensions.
Elements spread(const TensorView* tensor, std::span<const std::int64_t> extents,
                const std::vector<std::size_t>& order, const PlaceOf& from) {
  if (tensor == nullptr) return {};
  auto dimensions = from(tensor);
  for (const auto i : order)
    dimensions.add(extents[i], tensor->extents[i] == 1 ? 0 : tensor->strides[i]);
  return dimensions.elements();
}

/// Dimensions of a tensor whose elements are reduced to results: those along which they are, and
/// the others, by which results are numbered.
struct Axes {
  std::vector<std::size_t> results, each;  ///< the fastest first
};

kernels::Reduced reduced(const TensorView& x, const Axes& axes, const PlaceOf& from) {
  auto results = from(&x), each = from(&x);
  for (const auto i : axes.results) results.add(x.extents[i], x.strides[i]);
  for (const auto i : axes.each) each.add(x.extents[i], x.strides[i]);
  return {results.elements(), each.elements()};
}
/// What has one element for each result.
Elements of_results(const TensorView& tensor, const Axes& axes, const PlaceOf& from) {
  auto dimensions = from(&tensor);
  for (const auto i : axes.results) dimensions.add(tensor.extents[i], tensor.strides[i]);
  return dimensions.elements();
}

std::int64_t volume_of(const TensorView& x, const std::vector<std::size_t>& axes) {
  std::int64_t volume = 1;
  for (const auto i : axes) volume *= x.extents[i];
  return volume;
}

/// A power of 2 that is not less, but at most `limit`, which is one.
std::int64_t power_of_two(std::int64_t least, std::int64_t limit) {
  std::int64_t power = 1;
  while (power < least && power < limit) power *= 2;
  return power;
}

/// In one part.
Shares shares_of(std::int64_t results, std::int64_t each, bool results_adjoin) {
  constexpr std::int64_t kThreads = 256, kNeighbours = 32;  // threads of a block, of a warp
  const auto lanes = results_adjoin ? kThreads / power_of_two(results, kNeighbours) : kThreads;
  return {.results = results,
          .each = each,
          .lanes = static_cast<std::int32_t>(power_of_two(each, lanes)),
          .results_adjoin = results_adjoin};
}

Shares shares_of(const TensorView& x, const Axes& axes) {
  const auto fastest = [&](const std::vector<std::size_t>& list) {
    const auto found = std::ranges::find_if(list, [&](std::size_t i) { return x.extents[i] != 1; });
    return found == list.end() ? std::numeric_limits<std::int64_t>::max() : x.strides[*found];
  };
  const auto results = volume_of(x, axes.results), each = volume_of(x, axes.each);
  auto shares = shares_of(results, each, fastest(axes.results) < fastest(axes.each));
  // So many blocks keep any device busy; each thread adds up as many elements before.
  constexpr std::int64_t kBlocks = 1024, kElements = 64;
  const auto width = 256 / shares.lanes;
  const auto blocks = (results + width - 1) / width, part = shares.lanes * kElements;
  shares.parts = std::max(std::int64_t{1}, std::min((each + part - 1) / part, kBlocks / blocks));
  return shares;
}

std::size_t bytes_of(std::int64_t sums) {
  return static_cast<std::size_t>(sums) * sizeof(double);
}
/// Of the parts of results, if there are several of each.
std::size_t bytes_of_parts(const Shares& shares) {
  return shares.parts == 1 ? 0 : bytes_of(shares.parts * shares.results);
}

/// Calls queue(where the sums go), and adds up the parts, if there are several of each.
template <class Queue>
Result<void> in_parts(const kernels::Launch& launch, ReduceOp reduction, const Shares& shares,
                      double* parts, const kernels::Sums& to, const Queue& queue) {
  if (shares.parts == 1) {
    TROUPE_CUDA_TRY(queue(to));
    return {};
  }
  TROUPE_CUDA_TRY(queue(kernels::Sums{parts, {}}));
  // A product that has become 0 is one.
  const auto of_parts = reduction == ReduceOp::prod_without_zeros ? ReduceOp::prod : reduction;
  TROUPE_CUDA_TRY(kernels::reduce_sums(launch, of_parts,
                                       shares_of(shares.results, shares.parts, true), parts, to));
  return {};
}

Result<void> run_function(const kernels::Launch& launch, const NodeView& node,
                          const PlaceOf& from) {
  const auto& y = *node.outputs[0];
  const auto in = dnn::of_node::named<dnn::of_node::PointwiseInputs>(node.inputs);
  const auto order = fastest_first(y);
  const auto of = [&](const TensorView* tensor) { return spread(tensor, y.extents, order, from); };
  TROUPE_CUDA_TRY(
      kernels::compute_elements(launch, static_cast<std::uint64_t>(y.volume()),
                                {static_cast<dnn::Mode>(node.numbers[0]),
                                 {node.real(1), node.real(2), node.real(3), node.real(4)},
                                 of(in.a),
                                 of(in.b),
                                 of(in.c),
                                 of(&y)}));
  return {};
}

Axes axes_of_reduction(const NodeView& node) {
  const auto &x = *node.inputs[0], &y = *node.outputs[0];
  Axes axes;
  for (const auto i : fastest_first(x))
    (y.extents[i] == x.extents[i] ? axes.results : axes.each).push_back(i);
  return axes;
}

Result<void> run_reduction(const kernels::Launch& launch, const NodeView& node, const PlaceOf& from,
                           double* scratch) {
  const auto reduction = static_cast<ReduceOp>(node.numbers[0]);
  const auto &x = *node.inputs[0], &y = *node.outputs[0];
  const auto axes = axes_of_reduction(node);
  const auto shares = shares_of(x, axes);
  const auto of_x = reduced(x, axes, from);
  return in_parts(launch, reduction, shares, scratch, {nullptr, of_results(y, axes, from)},
                  [&](const kernels::Sums& to) {
                    return kernels::reduce_elements(launch, reduction, shares, of_x, to);
                  });
}

/// Sets are numbered with channels the fastest: what stands for each is a row of them for each
/// element of the batch.
Axes axes_of_sets(const TensorView& x) {
  Axes axes{{1, 0}, {}};
  for (const auto i : fastest_first(x)) {
    if (i > 1) axes.each.push_back(i);
  }
  return axes;
}

Result<void> run_instance_gradient(const kernels::Launch& launch, const NodeView& node,
                                   const PlaceOf& from, double* scratch) {
  const auto in = dnn::of_node::named<dnn::of_node::NormBackwardInputs>(node.inputs);
  const auto out = dnn::of_node::named<dnn::of_node::NormBackwardOutputs>(node.outputs);
  const auto &dy = *in.dy, &x = *in.x, &scale = *in.scale, &inverse = *in.inverse_deviation,
             &mean = *in.mean;
  const auto axes = axes_of_sets(x);
  const auto shares = shares_of(x, axes);
  double *const sums = scratch, *const products = sums + shares.results,
                *const parts = products + shares.results;
  const auto of_dy = reduced(dy, axes, from);
  TROUPE_CUDA_PROPAGATE(
      in_parts(launch, ReduceOp::sum, shares, parts, {sums, {}}, [&](const kernels::Sums& to) {
        return kernels::reduce_elements(launch, ReduceOp::sum, shares, of_dy, to);
      }));
  const kernels::Products of_both{of_dy, reduced(x, axes, from), of_results(mean, axes, from),
                                  of_results(inverse, axes, from)};
  TROUPE_CUDA_PROPAGATE(in_parts(
      launch, ReduceOp::sum, shares, parts, {products, {}},
      [&](const kernels::Sums& to) { return kernels::add_products(launch, shares, of_both, to); }));

  // Of a channel, over the batch.
  const auto over_batch = shares_of(x.extents[1], x.extents[0], true);
  for (const auto& [output, from_sums] :
       {std::pair(out.dscale, products), std::pair(out.dbias, sums)}) {
    auto weights = from(output);
    weights.add(x.extents[1], output->strides[1]);
    TROUPE_CUDA_TRY(kernels::reduce_sums(launch, ReduceOp::sum, over_batch, from_sums,
                                         {nullptr, weights.elements()}));
  }

  const auto& dx = *out.dx;
  const auto order = fastest_first(dx);
  const auto of = [&](const TensorView& tensor) { return spread(&tensor, x.extents, order, from); };
  Dimensions set(nullptr, {});
  for (const auto i : order) set.add(x.extents[i], i == 0 ? x.extents[1] : i == 1 ? 1 : 0);
  TROUPE_CUDA_TRY(
      kernels::norm_gradient(launch, static_cast<std::uint64_t>(x.volume()),
                             {of(dy), of(x), of(scale), of(mean), of(inverse), of(dx),
                              set.elements(), sums, products, static_cast<double>(shares.each)}));
  return {};
}

}  // namespace

bool is_own_number(const NodeView& node) {
  return node.kind == NodeKind::pointwise || node.kind == NodeKind::reduction ||
         is_instance_gradient(node);
}

bool cudnn_lacks_number(const NodeView& node, const dnn::GraphView& graph) {
  if (node.kind != NodeKind::pointwise) return true;
  if (graph.nodes().size() == 1 && differs_at_limits(node)) return true;
  const bool as_pixels = std::ranges::all_of(graph.tensors(), dnn::is_row_major);
  return node.outputs[0]->rank() <= 3 && dnn::spreads_twice(node) && !as_pixels;
}

std::size_t scratch_of_number(const NodeView& node) {
  if (node.kind == NodeKind::reduction)
    return bytes_of_parts(shares_of(*node.inputs[0], axes_of_reduction(node)));
  if (!is_instance_gradient(node)) return 0;
  const auto& x = *dnn::of_node::named<dnn::of_node::NormBackwardInputs>(node.inputs).x;
  const auto shares = shares_of(x, axes_of_sets(x));
  return bytes_of(2 * shares.results) + bytes_of_parts(shares);
}

Result<void> run_own_number(const kernels::Launch& launch, const NodeView& node,
                            const PlaceOf& from, void* scratch) {
  auto* const sums = static_cast<double*>(scratch);
  if (node.kind == NodeKind::pointwise) return run_function(launch, node, from);
  if (node.kind == NodeKind::reduction) return run_reduction(launch, node, from, sums);
  return run_instance_gradient(launch, node, from, sums);
}

}  // namespace troupe::host::cuda
