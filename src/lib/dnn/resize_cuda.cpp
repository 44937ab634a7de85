#include <troupe/lib/dnn_resize.hpp>

#include "lib/dnn/frontend_cuda.hpp"

namespace troupe::host::cuda {
namespace {

/// Whether it is the one case that cuDNN computes: see dnn::resize().
bool doubles(const dnn::NodeView& node) {
  const auto &x = *node.inputs[0], &y = *node.outputs[0];
  const auto channels_last = [](const dnn::TensorView& tensor) {
    return tensor.strides[1] <= tensor.strides[2] && tensor.strides[1] <= tensor.strides[3];
  };
  return static_cast<dnn::Interpolation>(node.numbers[0]) == dnn::Interpolation::linear &&
         static_cast<dnn::Coordinates>(node.numbers[1]) == dnn::Coordinates::corners &&
         x.rank() == 4 && y.extents[2] == 2 * x.extents[2] && y.extents[3] == 2 * x.extents[3] &&
         x.dtype == DType::f32 && y.dtype == DType::f32 && channels_last(x) && channels_last(y);
}

}  // namespace

Nodes add_resize(Graph& graph, const dnn::NodeView& node, const Nodes& inputs) {
  if (!doubles(node)) return {};
  using Fractions = std::vector<cudnnFraction_t>;
  const Fractions halves(2, {1, 2}), ones(2, {1, 1}), twos(2, {2, 1});
  const auto made = graph.resample(inputs[0], fe::graph::Resample_attributes()
                                                  .set_resampling_mode(fe::ResampleMode_t::BILINEAR)
                                                  .set_padding_mode(fe::PaddingMode_t::EDGE_VAL_PAD)
                                                  .set_generate_index(false)
                                                  .set_window(twos)
                                                  .set_stride(halves)
                                                  .set_pre_padding(halves)
                                                  .set_post_padding(ones));
  return {made[0]};
}

}  // namespace troupe::host::cuda
