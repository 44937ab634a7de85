#include <troupe/lib/dnn/convolution.hpp>

#include <algorithm>

#include "lib/dnn/common/spatial.hpp"
#include "lib/dnn/graph/node_tensors.hpp"

namespace troupe::dnn {
namespace {

constexpr std::string_view kList = "a list has not as many numbers as there are spatial dimensions";

/// The windows of filters of these extents; refuses the graph where there are none.
std::optional<Windows> windows_of(Graph& graph, std::span<const std::int64_t> filter,
                                  const ConvolutionSteps& steps) {
  const auto rank = filter.size();
  const auto before = numbers_of(steps.padding_before, 0, rank);
  const auto& last = steps.padding_after.rank == 0 ? steps.padding_before : steps.padding_after;
  const auto after = numbers_of(last, 0, rank);
  const auto strides = numbers_of(steps.strides, 1, rank);
  const auto dilations = numbers_of(steps.dilations, 1, rank);
  if (!before || !after || !strides || !dilations) {
    graph.refuse("convolution: " + std::string(kList));
    return std::nullopt;
  }
  Windows windows{rank, {}, *before, *after, *strides, *dilations};
  std::copy(filter.begin(), filter.end(), windows.size.begin());
  return windows;
}

void add_node(Graph& graph, NodeKind kind, const std::vector<TensorId>& inputs, TensorId result,
              const Windows& windows) {
  std::vector<std::int64_t> numbers;
  for (const auto* const list :
       {&windows.before, &windows.after, &windows.strides, &windows.dilations})
    numbers.insert(numbers.end(), list->begin(), list->end());
  graph.add(kind, inputs, {result}, numbers);
}

TensorId refused(Graph& graph, const std::string& why) {
  graph.refuse("convolution: " + why);
  return {};
}
constexpr std::string_view kRanks =
    "a tensor has not batch, channels and 1 to 3 spatial dimensions, or not as many as the others";

/// A gradient of these extents.
TensorId add_gradient(Graph& graph, NodeKind kind, TensorId dy, TensorId other,
                      std::vector<std::int64_t> extents, const ConvolutionSteps& steps) {
  const auto like = graph.layout(other);
  if (!is_image(extents.size()) || like.extents.size() != extents.size())
    return refused(graph, std::string(kRanks));
  const auto filter = kind == NodeKind::convolution_data ? like.extents : extents;
  const auto windows = windows_of(graph, spatial(filter), steps);
  if (!windows) return {};
  const auto result = graph.between(image_like(like, std::move(extents)));
  add_node(graph, kind, {dy, other}, result, *windows);
  return result;
}

}  // namespace

TensorId convolution(Graph& graph, TensorId x, TensorId w, const ConvolutionSteps& steps) {
  const auto images = graph.layout(x), filters = graph.layout(w);
  if (!is_image(images.extents.size()) || images.extents.size() != filters.extents.size())
    return refused(graph, std::string(kRanks));
  const auto windows = windows_of(graph, spatial(filters.extents), steps);
  if (!windows) return {};
  if (const auto why = windows->wrong(spatial(images.extents)); !why.empty())
    return refused(graph, why);
  std::vector<std::int64_t> extents{images.extents[0], filters.extents[0]};
  for (std::size_t i = 0; i < windows->rank; ++i)
    extents.push_back(windows->count(images.extents[2 + i], i));
  const auto result = graph.between(image_like(images, std::move(extents)));
  add_node(graph, NodeKind::convolution, {x, w}, result, *windows);
  return result;
}

TensorId convolution_data(Graph& graph, TensorId dy, TensorId w, std::vector<std::int64_t> extents,
                          const ConvolutionSteps& steps) {
  return add_gradient(graph, NodeKind::convolution_data, dy, w, std::move(extents), steps);
}
TensorId convolution_filter(Graph& graph, TensorId dy, TensorId x,
                            std::vector<std::int64_t> extents, const ConvolutionSteps& steps) {
  return add_gradient(graph, NodeKind::convolution_filter, dy, x, std::move(extents), steps);
}

ConvolutionView ConvolutionView::of(const NodeView& node) {
  const auto* const result = node.outputs[0];
  ConvolutionView view;
  switch (node.kind) {
    case NodeKind::convolution_data: {
      const auto in = of_node::named<of_node::ConvolutionDataInputs>(node.inputs);
      view = {result, in.w, in.dy, 0, {}};
      break;
    }
    case NodeKind::convolution_filter: {
      const auto in = of_node::named<of_node::ConvolutionFilterInputs>(node.inputs);
      view = {in.x, result, in.dy, 0, {}};
      break;
    }
    default: {
      const auto in = of_node::named<of_node::ConvolutionInputs>(node.inputs);
      view = {in.x, in.w, result, 0, {}};
    }
  }
  auto& windows = view.windows;
  windows.rank = view.w->rank() - 2;
  std::copy_n(view.w->extents.begin() + 2, windows.rank, windows.size.begin());
  std::size_t next = 0;
  for (auto* const list : {&windows.before, &windows.after, &windows.strides, &windows.dilations}) {
    for (auto& number : *list) number = node.numbers[next++];
  }
  view.groups = view.x->extents[1] / view.w->extents[1];
  return view;
}

std::string wrong_convolution(const NodeView& node) {
  const auto rank = node.outputs[0]->rank();
  if (!is_image(rank) || node.inputs[0]->rank() != rank || node.inputs[1]->rank() != rank)
    return std::string(kRanks);
  const auto view = ConvolutionView::of(node);
  const auto x = view.x->extents, w = view.w->extents, y = view.y->extents;
  if (x[1] % w[1] != 0 || w[0] % view.groups != 0)
    return "the groups do not divide both numbers of channels";
  if (y[0] != x[0] || y[1] != w[0]) return "y has not the batch of x and a channel for each filter";
  if (auto why = view.windows.wrong(spatial(x)); !why.empty()) return why;
  for (std::size_t i = 0; i < view.windows.rank; ++i) {
    if (view.windows.count(x[2 + i], i) != y[2 + i])
      return "y has not as many elements along a dimension as the filters have places on x";
  }
  return {};
}

ConvolutionGradient gradient_of(const ConvolutionOptions& shape, NodeKind kind, DType dtype) {
  ConvolutionGradient made;
  auto& graph = made.graph;
  const auto rank = shape.extents.rank;
  const auto refuse = [&](std::string_view why) {
    graph.refuse("convolution: " + std::string(why));
    return made;
  };
  if (rank < 1 || rank > kMaxSpatial) return refuse("it has 1 to 3 spatial dimensions");
  if (shape.filter.rank != rank) return refuse(kList);
  if (shape.groups < 1 || shape.input_channels % shape.groups != 0 ||
      shape.output_channels % shape.groups != 0)
    return refuse("the groups do not divide both numbers of channels");
  const ConvolutionSteps steps{shape.padding_before, shape.padding_after, shape.strides,
                               shape.dilations};
  const auto list = [&](const PerDimension& sizes) {
    return std::vector<std::int64_t>(sizes.begin(), sizes.begin() + rank);
  };
  const auto filter = list(shape.filter.size);
  const auto windows = windows_of(graph, filter, steps);
  if (!windows) return made;
  if (const auto why = windows->wrong(shape.extents.size); !why.empty()) return refuse(why);
  std::vector<std::int64_t> places;
  for (std::size_t i = 0; i < rank; ++i) places.push_back(windows->count(shape.extents.size[i], i));
  const auto x = channels_last(shape.batch, shape.input_channels, list(shape.extents.size));
  const auto w = channels_last(shape.output_channels, shape.input_channels / shape.groups, filter);
  made.dy = graph.input(dtype, channels_last(shape.batch, shape.output_channels, places));
  const bool of_data = kind == NodeKind::convolution_data;
  made.other = graph.input(dtype, of_data ? w : x);
  made.result =
      add_gradient(graph, kind, made.dy, made.other, of_data ? x.extents : w.extents, steps);
  graph.output(made.result, dtype);
  return made;
}

}  // namespace troupe::dnn
