#include "lib/dnn/common/frontend_cuda.hpp"
#include "lib/dnn/common/spatial.hpp"
#include "lib/dnn/graph/node_tensors.hpp"

namespace troupe::host::cuda {
namespace {

template <class Attributes>
Attributes attributes_of(const dnn::Windows& windows) {
  return Attributes()
      .set_pre_padding(spatial_numbers(windows.before, windows.rank, 0))
      .set_post_padding(spatial_numbers(windows.after, windows.rank, 0))
      .set_stride(spatial_numbers(windows.strides, windows.rank, 1))
      .set_dilation(spatial_numbers(windows.dilations, windows.rank, 1));
}

}  // namespace

Nodes add_convolution(Graph& graph, const dnn::NodeView& node, const Nodes& inputs) {
  const auto windows = dnn::ConvolutionView::of(node).windows;
  switch (node.kind) {
    case dnn::NodeKind::convolution_data: {
      const auto in = dnn::of_node::named<dnn::of_node::ConvolutionDataInputs>(inputs);
      return {
          graph.conv_dgrad(in.dy, in.w, attributes_of<fe::graph::Conv_dgrad_attributes>(windows))};
    }
    case dnn::NodeKind::convolution_filter: {
      const auto in = dnn::of_node::named<dnn::of_node::ConvolutionFilterInputs>(inputs);
      return {
          graph.conv_wgrad(in.dy, in.x, attributes_of<fe::graph::Conv_wgrad_attributes>(windows))};
    }
    default: {
      const auto in = dnn::of_node::named<dnn::of_node::ConvolutionInputs>(inputs);
      return {
          graph.conv_fprop(in.x, in.w, attributes_of<fe::graph::Conv_fprop_attributes>(windows))};
    }
  }
}

}  // namespace troupe::host::cuda
