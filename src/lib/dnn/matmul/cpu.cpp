#include <cblas.h>

#include "lib/dnn/graph/cpu.hpp"
#include "lib/dnn/graph/node_tensors.hpp"

namespace troupe::dnn {

void compute_matmul(const NodeView& node, Contents& contents) {
  const auto in = of_node::named<of_node::MatmulInputs>(node.inputs);
  const auto &left = *in.a, &right = *in.b, &result = *node.outputs[0];
  const auto rank = result.rank();
  const auto rows = static_cast<int>(result.extents[rank - 2]);  // extents are below 2^31
  const auto columns = static_cast<int>(result.extents[rank - 1]);
  const auto inner = static_cast<int>(left.extents[rank - 1]);
  const auto &a = contents.of(&left), &b = contents.of(&right);
  auto* c = contents.make(&result).data();
  for_each_place<2>(
      result.extents.first(rank - 2),
      {row_major_steps(left.extents), row_major_steps(right.extents)}, [&](const auto& places) {
        cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, rows, columns, inner, 1,
                    a.data() + places[0], inner, b.data() + places[1], columns, 0, c, columns);
        c += std::int64_t{rows} * columns;
      });
}

}  // namespace troupe::dnn
