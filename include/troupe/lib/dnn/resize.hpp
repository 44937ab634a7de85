#pragma once

#include <vector>

#include <troupe/lib/dnn/graph.hpp>
#include <troupe/lib/dnn/sizes.hpp>

/// Images of another size. With 1 to 3 spatial dimensions, the extents are batch, channels,
/// spatial...
///
/// On the cuda engine cuDNN has one case: linear by corners, two spatial dimensions that both
/// become twice as large, channels that vary fastest, f32. All others, and gradients, are computed
/// by kernels of troupe's own: see dnn/moving.hpp for what else may be in such a graph.
namespace troupe::dnn {

/// What an element of the result is, which lies at coordinate c between elements of x.
enum class Interpolation : std::uint32_t {
  nearest,  ///< the element at floor(c + 1/2), of Coordinates::corners that at floor(c)
  linear    ///< of the two beside c in each dimension, weighted by their distance (bilinear)
};
/// Where element i of `out` lies along a dimension of x with `in` elements, before what lies
/// outside is moved to the first or last element.
enum class Coordinates : std::uint32_t {
  centres,  ///< (i + 1/2) * in / out - 1/2, as PyTorch's nearest-exact, and linear by default
  corners,  ///< i * in / out, as PyTorch's nearest
  ends      ///< i * (in - 1) / (out - 1); 0 if out is 1; as PyTorch's linear with align_corners
};
/// How an image is resized.
struct ResizeMode {
  Interpolation interpolation = Interpolation::linear;
  Coordinates coordinates = Coordinates::centres;
};

/// Adds a node that resizes x to these spatial extents.
TensorId resize(Graph& graph, TensorId x, const std::vector<std::int64_t>& spatial,
                const ResizeMode& mode = {});
/// Adds a node that computes the gradient with regard to x, which has these spatial extents: each
/// element of dy goes to the elements that it was made of, by their weights.
TensorId resize_backward(Graph& graph, TensorId dy, const std::vector<std::int64_t>& spatial,
                         const ResizeMode& mode = {});

}  // namespace troupe::dnn

namespace troupe {

/// The shape of a change of size.
struct ResizeOptions {
  std::int64_t batch = 1;
  std::int64_t channels = 0;
  dnn::Sizes extents = {};  ///< of x, without batch and channels
  dnn::Sizes resized = {};  ///< of y
  dnn::ResizeMode mode = {};
};

/// Changes of size as calls of their own. All operands are packed and the channels vary fastest:
/// batch, spatial..., channels. T is f16, bf16 or f32.
class DnnResize {
 public:
  explicit DnnResize(detail::Submitter& submitter) : graphs_(submitter) {}

  /// See dnn::resize().
  template <Element T>
  Future<void> resize(const GpuRef<T>& x, const GpuRef<T>& y, const ResizeOptions& shape) const {
    dnn::Graph graph;
    const auto in = graph.input(dtype_of<T>, images(shape, shape.extents));
    const auto out = dnn::resize(graph, in, list_of(shape.resized), shape.mode);
    graph.output(out, dtype_of<T>);
    return graphs_.run(graph, {{in, x}, {out, y}});
  }
  /// See dnn::resize_backward().
  template <Element T>
  Future<void> resize_backward(const GpuRef<T>& dy, const GpuRef<T>& dx,
                               const ResizeOptions& shape) const {
    dnn::Graph graph;
    const auto in = graph.input(dtype_of<T>, images(shape, shape.resized));
    const auto out = dnn::resize_backward(graph, in, list_of(shape.extents), shape.mode);
    graph.output(out, dtype_of<T>);
    return graphs_.run(graph, {{in, dy}, {out, dx}});
  }

 private:
  static std::vector<std::int64_t> list_of(const dnn::Sizes& sizes) {
    return {sizes.size.begin(),
            sizes.size.begin() + std::min<std::size_t>(sizes.rank, dnn::kMaxSpatial)};
  }
  static dnn::Layout images(const ResizeOptions& shape, const dnn::Sizes& extents) {
    return dnn::channels_last(shape.batch, shape.channels, list_of(extents));
  }

  DnnGraphs graphs_;
};

}  // namespace troupe
