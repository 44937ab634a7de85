#include "lib/dnn/common/frontend_cuda.hpp"
#include "lib/dnn/own/spatial_cuda.hpp"

namespace troupe::host::cuda {
namespace {

fe::ResampleMode_t mode_of(dnn::Pooling mode) {
  switch (mode) {
    case dnn::Pooling::maximum: return fe::ResampleMode_t::MAXPOOL;
    case dnn::Pooling::average: return fe::ResampleMode_t::AVGPOOL_INCLUDE_PADDING;
    case dnn::Pooling::average_inside: return fe::ResampleMode_t::AVGPOOL_EXCLUDE_PADDING;
  }
  return fe::ResampleMode_t::NOT_SET;
}

}  // namespace

Nodes add_pooling(Graph& graph, const dnn::NodeView& node, const Nodes& inputs) {
  if (cudnn_lacks_spatial(node)) return {};
  const auto view = dnn::PoolingView::of(node);
  const auto& windows = view.windows;
  const bool maxima = view.mode == dnn::Pooling::maximum;
  const auto made = graph.resample(
      inputs[0],
      fe::graph::Resample_attributes()
          .set_resampling_mode(mode_of(view.mode))
          .set_padding_mode(maxima ? fe::PaddingMode_t::NEG_INF_PAD : fe::PaddingMode_t::ZERO_PAD)
          .set_generate_index(view.index != nullptr)
          .set_window(spatial_numbers(windows.size, windows.rank, 1))
          .set_stride(spatial_numbers(windows.strides, windows.rank, 1))
          .set_pre_padding(spatial_numbers(windows.before, windows.rank, 0))
          .set_post_padding(spatial_numbers(windows.after, windows.rank, 0)));
  return {made[0], made[1]};
}

}  // namespace troupe::host::cuda
