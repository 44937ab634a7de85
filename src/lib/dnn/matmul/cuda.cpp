#include "lib/dnn/common/frontend_cuda.hpp"
#include "lib/dnn/graph/node_tensors.hpp"

namespace troupe::host::cuda {
namespace {

/// Whether one matrix serves a whole batch, and does not lie by rows.
bool shared_by_columns(const dnn::TensorView& matrices, const dnn::TensorView& product) {
  const auto rank = product.rank();
  for (std::size_t i = 0; i + 2 < rank; ++i) {
    if (matrices.extents[i] != product.extents[i])
      return matrices.extents[rank - 1] > 1 && matrices.strides[rank - 1] != 1;
  }
  return false;
}

}  // namespace

/// Nothing where cuDNN 9.14 makes other numbers than it should: it multiplies f32 in tf32 though
/// such engines are barred, and takes wrong elements of a shared matrix that lies by columns.
Nodes add_matmul(Graph& graph, const dnn::NodeView& node, const Nodes& inputs) {
  for (const auto* const input : node.inputs) {
    if (input->dtype == DType::f32 || shared_by_columns(*input, *node.outputs[0])) return {};
  }
  const auto in = dnn::of_node::named<dnn::of_node::MatmulInputs>(inputs);
  return {graph.matmul(in.a, in.b, fe::graph::Matmul_attributes())};
}

}  // namespace troupe::host::cuda
