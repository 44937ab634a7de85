#pragma once

#include <limits>

#include <troupe/lib/dnn/graph.hpp>
#include <troupe/lib/dnn/pointwise_types.hpp>

/// Functions of single elements, and reductions.
///
/// NaN is the largest and the smallest of numbers. gelu, swish and the like have their limits at
/// infinities, and so have their gradients. Several functions in one graph, or functions beside
/// products, convolutions and the like, cuDNN computes by formulas of its own: there a function may
/// be NaN at infinity, relu of infinity is the largest f32, and a maximum may leave out a NaN.
namespace troupe::dnn {

/// Constants of some modes.
struct PointwiseOptions {
  float slope = 0;                                       ///< relu
  float upper = std::numeric_limits<float>::infinity();  ///< relu
  float alpha = 1;                                       ///< elu
  float beta = 1;                                        ///< softplus, swish
};

/// Adds a node that computes a function of each element. Inputs have as many dimensions, and in
/// each the extent of the result or 1, which stands for all indices (broadcast).
TensorId pointwise(Graph& graph, Mode mode, TensorId a, const PointwiseOptions& options = {});
TensorId pointwise(Graph& graph, Mode mode, TensorId a, TensorId b,
                   const PointwiseOptions& options = {});
TensorId pointwise(Graph& graph, Mode mode, TensorId a, TensorId b, TensorId c);

/// Adds what reduces x to `extents`, each of which is that of x or 1: then what lies along that
/// dimension is reduced to one number.
TensorId reduce(Graph& graph, ReduceOp reduction, TensorId x, std::vector<std::int64_t> extents);

}  // namespace troupe::dnn

namespace troupe {

/// Functions of single elements and reductions as calls of their own. The tensors are packed.
class DnnPointwise {
 public:
  explicit DnnPointwise(detail::Submitter& submitter) : graphs_(submitter) {}

  /// y = f(a), f(a, b) for arrays of one length.
  template <Element T, Element Y>
  Future<void> pointwise(dnn::Mode mode, const GpuRef<T>& a, const GpuRef<Y>& y,
                         const dnn::PointwiseOptions& options = {}) const {
    dnn::Graph graph;
    const auto in = graph.input(dtype_of<T>, row(a.length()));
    const auto out = dnn::pointwise(graph, mode, in, options);
    graph.output(out, dtype_of<Y>);
    return graphs_.run(graph, {{in, a}, {out, y}});
  }
  template <Element T, Element Y>
  Future<void> pointwise(dnn::Mode mode, const GpuRef<T>& a, const GpuRef<T>& b, const GpuRef<Y>& y,
                         const dnn::PointwiseOptions& options = {}) const {
    dnn::Graph graph;
    const auto in_a = graph.input(dtype_of<T>, row(a.length()));
    const auto in_b = graph.input(dtype_of<T>, row(a.length()));
    const auto out = dnn::pointwise(graph, mode, in_a, in_b, options);
    graph.output(out, dtype_of<Y>);
    return graphs_.run(graph, {{in_a, a}, {in_b, b}, {out, y}});
  }
  /// y = what the reduction makes of x, a row-major tensor of these extents; see dnn::reduce().
  template <Element T, Element Y>
  Future<void> reduce(dnn::ReduceOp reduction, const GpuRef<T>& x, const GpuRef<Y>& y,
                      const std::vector<std::int64_t>& extents,
                      const std::vector<std::int64_t>& reduced) const {
    dnn::Graph graph;
    const auto in = graph.input(dtype_of<T>, dnn::Layout(extents));
    const auto out = dnn::reduce(graph, reduction, in, reduced);
    graph.output(out, dtype_of<Y>);
    return graphs_.run(graph, {{in, x}, {out, y}});
  }

 private:
  /// cuDNN has no tensors of one dimension.
  static dnn::Layout row(std::int64_t length) { return {1, 1, length}; }

  DnnGraphs graphs_;
};

}  // namespace troupe
