#pragma once

#include <vector>

#include <troupe/lib/dnn_graph.hpp>
#include <troupe/lib/dnn_sizes.hpp>

namespace troupe {

/// The shape of a convolution. Lists have as many numbers as `extents`, or none.
struct ConvolutionOptions {
  std::int64_t batch = 1;
  std::int64_t input_channels = 0, output_channels = 0;
  std::int64_t groups = 1;
  dnn::Sizes extents = {};         ///< of x, without batch and channels
  dnn::Sizes filter = {};          ///< extents of w
  dnn::Sizes padding_before = {};  ///< none: 0
  dnn::Sizes padding_after = {};   ///< none: as before
  dnn::Sizes strides = {};         ///< none: 1
  dnn::Sizes dilations = {};       ///< none: 1
};

}  // namespace troupe

/// Convolutions and their gradients in graphs. With 1 to 3 spatial dimensions, the extents are
///
///     x  batch, channels, spatial...
///     w  filters, channels / groups, spatial...
///     y  batch, filters, spatial...
///
/// and the strides of each tensor say how it lies in memory: as channels_last(), which is the
/// fastest, or with the channels before the spatial dimensions, as a packed Layout. The number of
/// groups is that of the channels of x divided by that of w. dnn::Convolution has the formula.
/// Pointwise nodes behind a convolution are computed with it: a bias is an input of extents 1,
/// filters, 1...
namespace troupe::dnn {

/// How filters move over x. Lists have one number for each spatial dimension, or none.
struct ConvolutionSteps {
  Sizes padding_before = {};  ///< zeros around x; none: 0
  Sizes padding_after = {};   ///< none: as before
  Sizes strides = {};         ///< none: 1
  Sizes dilations = {};       ///< 1 is dense; none: 1
};

/// Adds a node that convolves x with w.
TensorId convolution(Graph& graph, TensorId x, TensorId w, const ConvolutionSteps& steps = {});
/// Adds a node that computes dx, the gradient with regard to x, of these extents:
///
///     dx[n, c, q] = sum over k, p, r with p * stride + r * dilation - before = q
///                   of dy[n, k, p] w[k, c, r]
TensorId convolution_data(Graph& graph, TensorId dy, TensorId w, std::vector<std::int64_t> extents,
                          const ConvolutionSteps& steps = {});
/// Adds a node that computes dw, the gradient with regard to w, of these extents:
///
///     dw[k, c, r] = sum over n, p of dy[n, k, p] x[n, c, p * stride + r * dilation - before]
TensorId convolution_filter(Graph& graph, TensorId dy, TensorId x,
                            std::vector<std::int64_t> extents, const ConvolutionSteps& steps = {});

/// A gradient of a convolution as a graph, of operands as dnn::Convolution has them.
struct ConvolutionGradient {
  Graph graph;
  TensorId dy, other, result;
};
/// `kind`: convolution_data, where w is the other operand, or convolution_filter, where x is.
ConvolutionGradient gradient_of(const ConvolutionOptions& shape, NodeKind kind, DType dtype);

}  // namespace troupe::dnn

namespace troupe {

/// Gradients of convolutions as calls of their own. The operands lie as those of dnn::Convolution.
/// T is f16, bf16 or f32; the batch is not empty.
class DnnConvolutions {
 public:
  explicit DnnConvolutions(detail::Submitter& submitter) : graphs_(submitter) {}

  /// dx, the gradient with regard to x; see dnn::convolution_data().
  template <Element T>
  Future<void> convolution_backward_data(const GpuRef<T>& dy, const GpuRef<T>& w,
                                         const GpuRef<T>& dx,
                                         const ConvolutionOptions& shape) const {
    const auto of = dnn::gradient_of(shape, dnn::NodeKind::convolution_data, dtype_of<T>);
    return graphs_.run(of.graph, {{of.dy, dy}, {of.other, w}, {of.result, dx}});
  }
  /// dw, the gradient with regard to w; see dnn::convolution_filter().
  template <Element T>
  Future<void> convolution_backward_filter(const GpuRef<T>& dy, const GpuRef<T>& x,
                                           const GpuRef<T>& dw,
                                           const ConvolutionOptions& shape) const {
    const auto of = dnn::gradient_of(shape, dnn::NodeKind::convolution_filter, dtype_of<T>);
    return graphs_.run(of.graph, {{of.dy, dy}, {of.other, x}, {of.result, dw}});
  }

 private:
  DnnGraphs graphs_;
};

}  // namespace troupe
