#include "lib/dnn/common/frontend_cuda.hpp"
#include "lib/dnn/own/spatial_cuda.hpp"

namespace troupe::host::cuda {

Nodes add_resize(Graph& graph, const dnn::NodeView& node, const Nodes& inputs) {
  if (cudnn_lacks_spatial(node)) return {};
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
