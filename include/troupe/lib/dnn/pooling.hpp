#pragma once

#include <vector>

#include <troupe/lib/dnn/graph.hpp>
#include <troupe/lib/dnn/sizes.hpp>

/// Pooling: what windows that move over images make of the elements in them, channel by channel.
/// With 1 to 3 spatial dimensions, the extents of x and y are batch, channels, spatial...; along a
/// spatial dimension y has (extent + padding - window) / stride + 1 elements, rounded down.
///
/// On the cuda engine cuDNN pools what it can, but bf16, which it would pool wrongly. The rest, and
/// gradients, are computed by kernels of troupe's own: see dnn/moving.hpp for what else may be in
/// such a graph.
namespace troupe::dnn {

enum class Pooling : std::uint32_t {
  maximum,        ///< the largest element, NaN if one is; the padding is never taken. cuDNN, which
                  ///< pools f16 and f32 on GPUs, may leave out a NaN, and makes the least finite
                  ///< number of minus infinities
  average,        ///< the mean; the padding counts as zeros
  average_inside  ///< the mean of those elements that are no padding
};

/// How windows move over x. Lists have one number for each spatial dimension; all but `window` may
/// be empty.
struct PoolingSteps {
  Sizes window = {};
  Sizes padding_before = {};  ///< less than the window; none: 0
  Sizes padding_after = {};   ///< less than the window; none: as before
  Sizes strides = {};         ///< none: the window
};

/// Adds a node that pools x.
TensorId pooling(Graph& graph, Pooling mode, TensorId x, const PoolingSteps& steps);

/// What the pooling of maxima makes.
struct Pooled {
  TensorId y;
  /// The place in its window, row-major, of the element that y took; an output of type i8. Of
  /// equal elements, and of several NaNs, the cpu engine takes the first; another engine may take
  /// another one.
  TensorId index;
};
/// Adds a node that computes maxima and where they were. Windows have at most 127 elements.
Pooled max_pooling(Graph& graph, TensorId x, const PoolingSteps& steps);

/// Adds a node that computes dx, the gradient with regard to x, of these extents: each element of
/// dy goes to the element that was taken, or in equal parts to those that the mean is of. `index`:
/// the one of max_pooling(), of type i8 if it is an input; absent for the means. What it names
/// outside of x gets nothing.
TensorId pooling_backward(Graph& graph, Pooling mode, TensorId dy, TensorId index,
                          std::vector<std::int64_t> extents, const PoolingSteps& steps);

/// How many windows there are along each of these spatial extents; empty: none, they are wrong.
std::vector<std::int64_t> pooled_extents(const Sizes& extents, const PoolingSteps& steps);

}  // namespace troupe::dnn

namespace troupe {

/// The shape of a pooling.
struct PoolingOptions {
  std::int64_t batch = 1;
  std::int64_t channels = 0;
  dnn::Sizes extents = {};  ///< of x, without batch and channels
  dnn::PoolingSteps steps = {};
};

/// Pooling as calls of their own. All operands are packed and the channels vary fastest: batch,
/// spatial..., channels. T is f16, bf16 or f32.
class DnnPooling {
 public:
  explicit DnnPooling(detail::Submitter& submitter) : graphs_(submitter) {}

  /// See dnn::pooling().
  template <Element T>
  Future<void> pooling(dnn::Pooling mode, const GpuRef<T>& x, const GpuRef<T>& y,
                       const PoolingOptions& shape) const {
    dnn::Graph graph;
    const auto in = graph.input(dtype_of<T>, images_of(shape));
    const auto out = dnn::pooling(graph, mode, in, shape.steps);
    graph.output(out, dtype_of<T>);
    return graphs_.run(graph, {{in, x}, {out, y}});
  }
  /// See dnn::max_pooling(); index lies as y.
  template <Element T>
  Future<void> max_pooling(const GpuRef<T>& x, const GpuRef<T>& y, const GpuRef<std::int8_t>& index,
                           const PoolingOptions& shape) const {
    dnn::Graph graph;
    const auto in = graph.input(dtype_of<T>, images_of(shape));
    const auto out = dnn::max_pooling(graph, in, shape.steps);
    graph.output(out.y, dtype_of<T>);
    graph.output(out.index, DType::i8);
    return graphs_.run(graph, {{in, x}, {out.y, y}, {out.index, index}});
  }
  /// Of means; see dnn::pooling_backward().
  template <Element T>
  Future<void> pooling_backward(dnn::Pooling mode, const GpuRef<T>& dy, const GpuRef<T>& dx,
                                const PoolingOptions& shape) const {
    dnn::Graph graph;
    const auto in = graph.input(dtype_of<T>, windows_of(shape));
    const auto out =
        dnn::pooling_backward(graph, mode, in, {}, images_of(shape).extents, shape.steps);
    graph.output(out, dtype_of<T>);
    return graphs_.run(graph, {{in, dy}, {out, dx}});
  }
  /// Of maxima; see dnn::pooling_backward().
  template <Element T>
  Future<void> max_pooling_backward(const GpuRef<T>& dy, const GpuRef<std::int8_t>& index,
                                    const GpuRef<T>& dx, const PoolingOptions& shape) const {
    dnn::Graph graph;
    const auto in = graph.input(dtype_of<T>, windows_of(shape));
    const auto where = graph.input(DType::i8, windows_of(shape));
    const auto out = dnn::pooling_backward(graph, dnn::Pooling::maximum, in, where,
                                           images_of(shape).extents, shape.steps);
    graph.output(out, dtype_of<T>);
    return graphs_.run(graph, {{in, dy}, {where, index}, {out, dx}});
  }

 private:
  static dnn::Layout images_of(const PoolingOptions& shape) {
    const auto& extents = shape.extents;
    return dnn::channels_last(
        shape.batch, shape.channels,
        {extents.size.begin(),
         extents.size.begin() + std::min<std::size_t>(extents.rank, dnn::kMaxSpatial)});
  }
  static dnn::Layout windows_of(const PoolingOptions& shape) {
    return dnn::channels_last(shape.batch, shape.channels,
                              dnn::pooled_extents(shape.extents, shape.steps));
  }

  DnnGraphs graphs_;
};

}  // namespace troupe
