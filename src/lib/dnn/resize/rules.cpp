#include <troupe/lib/dnn/resize.hpp>

#include "lib/dnn/common/spatial.hpp"

namespace troupe::dnn {
namespace {

constexpr std::string_view kSame =
    "the tensors have not batch, channels and the same number of spatial dimensions, 1 to 3";

TensorId add_resize(Graph& graph, NodeKind kind, TensorId from,
                    const std::vector<std::int64_t>& spatial, const ResizeMode& mode) {
  const auto like = graph.layout(from);
  if (!is_image(like.extents.size()) || spatial.size() + 2 != like.extents.size()) {
    graph.refuse("resize: " + std::string(kSame));
    return {};
  }
  std::vector<std::int64_t> extents{like.extents[0], like.extents[1]};
  extents.insert(extents.end(), spatial.begin(), spatial.end());
  const auto result = graph.between(image_like(like, std::move(extents)));
  graph.add(
      kind, {from}, {result},
      {static_cast<std::int64_t>(mode.interpolation), static_cast<std::int64_t>(mode.coordinates)});
  return result;
}

}  // namespace

TensorId resize(Graph& graph, TensorId x, const std::vector<std::int64_t>& spatial,
                const ResizeMode& mode) {
  return add_resize(graph, NodeKind::resize, x, spatial, mode);
}
TensorId resize_backward(Graph& graph, TensorId dy, const std::vector<std::int64_t>& spatial,
                         const ResizeMode& mode) {
  return add_resize(graph, NodeKind::resize_backward, dy, spatial, mode);
}

std::string wrong_resize(const NodeView& node) {
  if (node.numbers[0] < 0 || node.numbers[0] > static_cast<std::int64_t>(Interpolation::linear))
    return "unknown interpolation";
  if (node.numbers[1] < 0 || node.numbers[1] > static_cast<std::int64_t>(Coordinates::ends))
    return "unknown coordinates";
  const auto from = node.inputs[0]->extents, to = node.outputs[0]->extents;
  if (!is_image(from.size()) || from.size() != to.size()) return std::string(kSame);
  if (from[0] != to[0] || from[1] != to[1]) return "x and y have not the same batch and channels";
  return {};
}

}  // namespace troupe::dnn
