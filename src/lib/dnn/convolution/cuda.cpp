#include "lib/dnn/common/frontend_cuda.hpp"

/// Convolutions as graphs of cuDNN.
namespace troupe::host::cuda {
namespace {

/// What cuDNN calls the operands. Addresses are given in this order.
namespace of_convolution {
enum : std::int64_t { x = 1, w, bias, y };
}  // namespace of_convolution

/// Names the extents as cuDNN orders them, the channels second, where these vary fastest.
template <class Attributes>
void set_channels_last(Attributes& tensor, std::int64_t batch, std::int64_t channels,
                       const Numbers& extents) {
  Numbers dims{batch, channels}, strides(extents.size() + 2);
  dims.insert(dims.end(), extents.begin(), extents.end());
  strides[1] = 1;
  auto stride = channels;
  for (auto i = dims.size(); i-- > 2;) {
    strides[i] = stride;
    stride *= dims[i];
  }
  strides[0] = stride;
  tensor.set_dim(dims).set_stride(strides);
}

}  // namespace

Described describe(const dnn::Convolution& op, bool with_bias) {
  auto graph = graph_of(op.dtype);
  const auto spatial = [&](const dnn::PerDimension& numbers, std::int64_t of_missing) {
    return spatial_numbers(numbers, op.rank, of_missing);
  };
  const auto input = [&](std::int64_t id, std::int64_t batch, std::int64_t channels,
                         const Numbers& extents) {
    fe::graph::Tensor_attributes tensor;
    set_channels_last(tensor, batch, channels, extents);
    return graph->tensor(tensor.set_uid(id));
  };
  const auto x = input(of_convolution::x, op.batch, op.input_channels, spatial(op.extents, 1));
  const auto w = input(of_convolution::w, op.output_channels, op.input_channels / op.groups,
                       spatial(op.filter, 1));
  auto y = graph->conv_fprop(x, w,
                             fe::graph::Conv_fprop_attributes()
                                 .set_pre_padding(spatial(op.padding_before, 0))
                                 .set_post_padding(spatial(op.padding_after, 0))
                                 .set_stride(spatial(op.strides, 1))
                                 .set_dilation(spatial(op.dilations, 1)));
  const auto output = spatial(op.output_extents(), 1);
  if (with_bias) {
    set_channels_last(*y, op.batch, op.output_channels, output);
    const auto bias = input(of_convolution::bias, 1, op.output_channels, Numbers(output.size(), 1));
    y = graph->pointwise(y, bias,
                         fe::graph::Pointwise_attributes().set_mode(fe::PointwiseMode_t::ADD));
  }
  set_channels_last(*y, op.batch, op.output_channels, output);
  y->set_output(true).set_data_type(type_of(op.dtype)).set_uid(of_convolution::y);
  return {std::move(graph), barred_notes(op.dtype)};
}

std::vector<Note> barred_notes(DType dtype) {
  std::vector<Note> notes{Note::DOWN_CONVERT_INPUTS,
                          Note::REDUCED_PRECISION_REDUCTION,
                          Note::FFT,
                          Note::NONDETERMINISTIC,
                          Note::WINOGRAD,
                          Note::WINOGRAD_TILE_4x4,
                          Note::WINOGRAD_TILE_6x6,
                          Note::WINOGRAD_TILE_13x13};
  if (dtype == DType::f32) notes.push_back(Note::TENSOR_CORE);  // that would be tf32
  return notes;
}

}  // namespace troupe::host::cuda
