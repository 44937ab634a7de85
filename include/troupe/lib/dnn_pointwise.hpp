#pragma once

#include <limits>

#include <troupe/lib/dnn_graph.hpp>

/// Functions of single elements, and reductions.
namespace troupe::dnn {

/// What a pointwise node computes of an element a and those of further inputs, b and c, at the same
/// place. Of the gradients a is dy and b is x, the input of the function.
enum class Mode : std::uint32_t {
  // of a
  identity,
  abs,
  negate,
  reciprocal,
  sqrt,
  rsqrt,
  exp,
  log,
  erf,
  sin,
  cos,
  tan,
  ceil,
  floor,
  relu,     ///< a > 0 ? a : slope * a, at most `upper`
  sigmoid,  ///< 1 / (1 + exp(-a))
  tanh,
  elu,          ///< a > 0 ? a : alpha * (exp(a) - 1)
  gelu,         ///< a * (1 + erf(a / sqrt(2))) / 2
  gelu_tanh,    ///< a * (1 + tanh(sqrt(2 / pi) * (a + 0.044715 a^3))) / 2
  softplus,     ///< log(1 + exp(beta * a)) / beta
  swish,        ///< a / (1 + exp(-beta * a))
  logical_not,  ///< a == 0, as 0 and 1; so are those below
  // of a and b
  add,
  add_square,  ///< a + b * b
  subtract,
  multiply,
  divide,
  maximum,
  minimum,
  modulo,  ///< as C's fmod
  power,
  equal,
  not_equal,
  greater,
  greater_equal,
  less,
  less_equal,
  logical_and,
  logical_or,
  relu_backward,  ///< a * (x > 0 ? 1 : slope), 0 from `upper` on
  sigmoid_backward,
  tanh_backward,
  elu_backward,
  gelu_backward,
  gelu_tanh_backward,
  softplus_backward,
  swish_backward,
  // of a, b and c
  select  ///< c != 0 ? a : b
};
inline constexpr std::uint32_t kModes = static_cast<std::uint32_t>(Mode::select) + 1;
/// How many inputs it has: 1 to 3.
constexpr std::size_t inputs_of(Mode mode) noexcept {
  return mode <= Mode::logical_not ? 1 : mode < Mode::select ? 2 : 3;
}

/// Constants of some modes.
struct PointwiseOptions {
  float slope = 0;                                  ///< relu
  float upper = std::numeric_limits<float>::max();  ///< relu
  float alpha = 1;                                  ///< elu
  float beta = 1;                                   ///< softplus, swish
};

/// Adds a node that computes a function of each element. Inputs have as many dimensions, and in
/// each the extent of the result or 1, which stands for all indices (broadcast).
TensorId pointwise(Graph& graph, Mode mode, TensorId a, const PointwiseOptions& options = {});
TensorId pointwise(Graph& graph, Mode mode, TensorId a, TensorId b,
                   const PointwiseOptions& options = {});
TensorId pointwise(Graph& graph, Mode mode, TensorId a, TensorId b, TensorId c);

/// What a reduction makes of many numbers.
enum class Reduction : std::uint32_t {
  add,
  multiply,
  minimum,
  maximum,
  max_abs,  ///< the largest absolute value
  average,
  norm1,  ///< sum of absolute values
  norm2,  ///< square root of the sum of squares
  multiply_without_zeros
};
inline constexpr std::uint32_t kReductions =
    static_cast<std::uint32_t>(Reduction::multiply_without_zeros) + 1;

/// Adds what reduces x to `extents`, each of which is that of x or 1: then what lies along that
/// dimension is reduced to one number. On the cuda engine the channels may be reduced, or all but
/// the channels, or all; the others and the products are unsupported.
TensorId reduce(Graph& graph, Reduction reduction, TensorId x, std::vector<std::int64_t> extents);

}  // namespace troupe::dnn

namespace troupe {

/// Functions of single elements and reductions as calls of their own. The tensors are packed.
class DnnPointwise {
 public:
  explicit DnnPointwise(detail::Submitter& submitter) : graphs_(submitter) {}

  /// y = f(a), f(a, b) for arrays of one length.
  template <Element T, Element Y>
  Future<void> pointwise(dnn::Mode mode, const GpuRef<T>& a, const GpuRef<Y>& y,
                         const dnn::PointwiseOptions& options = {}) {
    dnn::Graph graph;
    const auto in = graph.input(dtype_of<T>, row(a.length()));
    const auto out = dnn::pointwise(graph, mode, in, options);
    graph.output(out, dtype_of<Y>);
    return graphs_.run(graph, {{in, a}, {out, y}});
  }
  template <Element T, Element Y>
  Future<void> pointwise(dnn::Mode mode, const GpuRef<T>& a, const GpuRef<T>& b, const GpuRef<Y>& y,
                         const dnn::PointwiseOptions& options = {}) {
    dnn::Graph graph;
    const auto in_a = graph.input(dtype_of<T>, row(a.length()));
    const auto in_b = graph.input(dtype_of<T>, row(a.length()));
    const auto out = dnn::pointwise(graph, mode, in_a, in_b, options);
    graph.output(out, dtype_of<Y>);
    return graphs_.run(graph, {{in_a, a}, {in_b, b}, {out, y}});
  }
  /// y = what the reduction makes of x, a row-major tensor of these extents; see dnn::reduce().
  template <Element T, Element Y>
  Future<void> reduce(dnn::Reduction reduction, const GpuRef<T>& x, const GpuRef<Y>& y,
                      const std::vector<std::int64_t>& extents,
                      const std::vector<std::int64_t>& reduced) {
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
