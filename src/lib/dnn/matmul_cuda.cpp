#include "lib/dnn/frontend_cuda.hpp"

namespace troupe::host::cuda {

Nodes add_matmul(Graph& graph, const dnn::NodeView&, const Nodes& inputs) {
  return {graph.matmul(inputs[0], inputs[1], fe::graph::Matmul_attributes())};
}

}  // namespace troupe::host::cuda
