#include <troupe/lib/dnn/rotary.hpp>

#include "lib/dnn/graph/node_tensors.hpp"
#include "lib/dnn/graph/view.hpp"

namespace troupe::dnn {
namespace {

TensorId add_rotary(Graph& graph, TensorId x, TensorId cos, TensorId sin, RotaryPairs pairs,
                    bool backward) {
  const auto like = graph.layout(x);
  const auto result = graph.between(packed_like(like, like.extents));
  graph.add(NodeKind::rotary, {x, cos, sin}, {result},
            {static_cast<std::int64_t>(pairs), backward ? 1 : 0});
  return result;
}

}  // namespace

TensorId rotary(Graph& graph, TensorId x, TensorId cos, TensorId sin, RotaryPairs pairs) {
  return add_rotary(graph, x, cos, sin, pairs, false);
}
TensorId rotary_backward(Graph& graph, TensorId dy, TensorId cos, TensorId sin, RotaryPairs pairs) {
  return add_rotary(graph, dy, cos, sin, pairs, true);
}

std::string wrong_rotary(const NodeView& node) {
  const auto in = of_node::named<of_node::RotaryInputs>(node.inputs);
  const auto &x = *in.x, &cos = *in.cos, &sin = *in.sin;
  if (node.numbers[0] < 0 || node.numbers[0] > static_cast<std::int64_t>(RotaryPairs::neighbours))
    return "unknown pairs";
  if (node.numbers[1] < 0 || node.numbers[1] > 1) return "unknown direction";
  if (!same_extents(x, *node.outputs[0])) return "y has other extents than x";
  if (!same_extents(cos, sin)) return "cos and sin have different extents";
  if (cos.rank() != x.rank()) return "cos has not as many dimensions as x";
  const auto last = x.rank() - 1;
  for (std::size_t i = 0; i < last; ++i) {
    if (cos.extents[i] != 1 && cos.extents[i] != x.extents[i])
      return "cos has another extent than x, and not 1";
  }
  if (2 * cos.extents[last] > x.extents[last]) return "cos has more pairs than x";
  return {};
}

}  // namespace troupe::dnn
