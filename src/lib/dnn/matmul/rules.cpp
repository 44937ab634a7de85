#include <troupe/lib/dnn/matmul.hpp>

#include <algorithm>

#include "lib/dnn/graph/node_tensors.hpp"
#include "lib/dnn/graph/view.hpp"

namespace troupe::dnn {

TensorId matmul(Graph& graph, TensorId a, TensorId b) {
  const auto left = graph.layout(a).extents, right = graph.layout(b).extents;
  const auto rank = left.size();
  if (rank < 3 || right.size() != rank) {
    graph.refuse("matmul: a and b have not the same number of dimensions, at least 3");
    return {};
  }
  auto extents = left;
  for (std::size_t i = 0; i + 2 < rank; ++i) extents[i] = std::max(left[i], right[i]);
  extents[rank - 1] = right[rank - 1];
  const auto result = graph.between(Layout(extents));
  graph.add(NodeKind::matmul, {a, b}, {result}, {});
  return result;
}

std::string wrong_matmul(const NodeView& node) {
  const auto in = of_node::named<of_node::MatmulInputs>(node.inputs);
  const auto &a = *in.a, &b = *in.b, &c = *node.outputs[0];
  const auto rank = c.rank();
  if (rank < 3 || a.rank() != rank || b.rank() != rank)
    return "a, b and c have not the same number of dimensions, at least 3";
  if (a.extents[rank - 1] != b.extents[rank - 2]) return "a has not as many columns as b has rows";
  if (c.extents[rank - 2] != a.extents[rank - 2] || c.extents[rank - 1] != b.extents[rank - 1])
    return "c has not the rows of a and the columns of b";
  for (std::size_t i = 0; i + 2 < rank; ++i) {
    const auto batch = c.extents[i];
    for (const auto* const input : {&a, &b}) {
      if (input->extents[i] != batch && input->extents[i] != 1)
        return "a batch has another extent than the result, and not 1";
    }
  }
  return {};
}

}  // namespace troupe::dnn
