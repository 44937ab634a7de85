#include <troupe/lib/dnn/pooling.hpp>

#include <algorithm>

#include "lib/dnn/common/spatial.hpp"
#include "lib/dnn/graph/node_tensors.hpp"

namespace troupe::dnn {
namespace {

constexpr std::int64_t kMaxIndexed = 127;  // an index is of type i8
constexpr std::string_view kImages =
    "a tensor has not batch, channels and 1 to 3 spatial dimensions";

std::string wrong(const Windows& windows, std::span<const std::int64_t> extents, bool indexed) {
  if (auto why = windows.wrong(extents); !why.empty()) return why;
  std::int64_t elements = 1;
  for (std::size_t i = 0; i < windows.rank; ++i) {
    // Else a window could have no element of x.
    if (windows.before[i] >= windows.size[i] || windows.after[i] >= windows.size[i])
      return "a padding is not smaller than the window";
    elements = std::min(elements * windows.size[i], kMaxIndexed + 1);
  }
  if (indexed && elements > kMaxIndexed)
    return "an index is of windows of at most " + std::to_string(kMaxIndexed) + " elements";
  return {};
}

/// nullopt: a list has not as many numbers as there are spatial dimensions.
std::optional<Windows> windows_of(const PoolingSteps& steps, std::size_t rank) {
  if (steps.window.rank != rank || rank > kMaxSpatial) return std::nullopt;
  const auto before = numbers_of(steps.padding_before, 0, rank);
  const auto& last = steps.padding_after.rank == 0 ? steps.padding_before : steps.padding_after;
  const auto after = numbers_of(last, 0, rank);
  const auto strides = steps.strides.rank == 0 ? numbers_of(steps.window, 0, rank)
                                               : numbers_of(steps.strides, 0, rank);
  if (!before || !after || !strides) return std::nullopt;
  Windows windows{rank, steps.window.size, *before, *after, *strides, {}};
  std::fill_n(windows.dilations.begin(), rank, 1);
  return windows;
}

/// The windows on images of these extents; refuses the graph if they are wrong.
std::optional<Windows> checked_windows(Graph& graph, const PoolingSteps& steps,
                                       const std::vector<std::int64_t>& extents, bool indexed) {
  const auto refuse = [&](std::string_view why) {
    graph.refuse("pooling: " + std::string(why));
    return std::nullopt;
  };
  if (!is_image(extents.size())) return refuse(kImages);
  auto windows = windows_of(steps, extents.size() - 2);
  if (!windows) return refuse("a list has not as many numbers as there are spatial dimensions");
  if (const auto why = wrong(*windows, spatial(extents), indexed); !why.empty()) return refuse(why);
  return windows;
}

std::vector<std::int64_t> numbers_of(Pooling mode, const Windows& windows) {
  std::vector<std::int64_t> numbers{static_cast<std::int64_t>(mode)};
  for (const auto* const list : {&windows.size, &windows.before, &windows.after, &windows.strides})
    numbers.insert(numbers.end(), list->begin(), list->end());
  return numbers;
}

Pooled add_pooling(Graph& graph, Pooling mode, TensorId x, const PoolingSteps& steps,
                   bool indexed) {
  const auto images = graph.layout(x);
  const auto windows = checked_windows(graph, steps, images.extents, indexed);
  if (!windows) return {};
  std::vector<std::int64_t> extents{images.extents[0], images.extents[1]};
  for (std::size_t i = 0; i < windows->rank; ++i)
    extents.push_back(windows->count(images.extents[2 + i], i));
  Pooled result;
  result.y = graph.between(image_like(images, extents));
  if (indexed) result.index = graph.between(image_like(images, extents));
  graph.add(NodeKind::pooling, {x}, {result.y, result.index}, numbers_of(mode, *windows));
  return result;
}

}  // namespace

TensorId pooling(Graph& graph, Pooling mode, TensorId x, const PoolingSteps& steps) {
  return add_pooling(graph, mode, x, steps, false).y;
}
Pooled max_pooling(Graph& graph, TensorId x, const PoolingSteps& steps) {
  return add_pooling(graph, Pooling::maximum, x, steps, true);
}

TensorId pooling_backward(Graph& graph, Pooling mode, TensorId dy, TensorId index,
                          std::vector<std::int64_t> extents, const PoolingSteps& steps) {
  const auto windows = checked_windows(graph, steps, extents, index.present());
  if (!windows) return {};
  const auto result = graph.between(image_like(graph.layout(dy), std::move(extents)));
  graph.add(NodeKind::pooling_backward, {dy, index}, {result}, numbers_of(mode, *windows));
  return result;
}

std::vector<std::int64_t> pooled_extents(const Sizes& extents, const PoolingSteps& steps) {
  const auto windows = windows_of(steps, extents.rank);
  if (!windows || !windows->wrong(extents.size).empty()) return {};
  std::vector<std::int64_t> result;
  for (std::size_t i = 0; i < windows->rank; ++i)
    result.push_back(windows->count(extents.size[i], i));
  return result;
}

PoolingView PoolingView::of(const NodeView& node) {
  PoolingView view;
  const bool backward = node.kind == NodeKind::pooling_backward;
  view.mode = static_cast<Pooling>(node.numbers[0]);
  if (backward) {
    const auto in = of_node::named<of_node::PoolingBackwardInputs>(node.inputs);
    view.x = node.outputs[0], view.y = in.dy, view.index = in.index;
  } else {
    const auto out = of_node::named<of_node::PoolingOutputs>(node.outputs);
    view.x = node.inputs[0], view.y = out.y, view.index = out.index;
  }
  auto& windows = view.windows;
  windows.rank = view.x->rank() - 2;
  std::size_t next = 1;
  for (auto* const list : {&windows.size, &windows.before, &windows.after, &windows.strides}) {
    for (auto& number : *list) number = node.numbers[next++];
  }
  std::fill_n(windows.dilations.begin(), std::min(windows.rank, kMaxSpatial), 1);
  return view;
}

std::string wrong_pooling(const NodeView& node) {
  if (node.numbers[0] < 0 || node.numbers[0] > static_cast<std::int64_t>(Pooling::average_inside)) {
    return "unknown mode";
  }
  const auto view = PoolingView::of(node);
  const auto x = view.x->extents, y = view.y->extents;
  if (!is_image(x.size()) || y.size() != x.size()) return std::string(kImages);
  if (x[0] != y[0] || x[1] != y[1]) return "x and y have not the same batch and channels";
  if (auto why = wrong(view.windows, spatial(x), view.index != nullptr); !why.empty()) return why;
  for (std::size_t i = 0; i < view.windows.rank; ++i) {
    if (view.windows.count(x[2 + i], i) != y[2 + i])
      return "y has not as many elements along a dimension as there are windows";
  }
  if (view.index != nullptr) {
    if (view.mode != Pooling::maximum) return "a mean has no index";
    if (!same_extents(*view.index, *view.y)) return "the index has not the extents of y";
    if (view.index->in_memory() && view.index->dtype != DType::i8)
      return "the index is not of type i8";
  } else if (node.kind == NodeKind::pooling_backward && view.mode == Pooling::maximum) {
    return "the gradient of maxima needs their index";
  }
  return {};
}

}  // namespace troupe::dnn
