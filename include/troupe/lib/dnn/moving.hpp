#pragma once

#include <initializer_list>
#include <vector>

#include <troupe/lib/dnn/graph.hpp>

/// Nodes that only move elements: other extents, another order of dimensions, parts, and several
/// tensors as one. Integers stay exact where they are written to memory of their type.
///
/// The cuda engine computes graphs of such nodes, and of those in dnn/pointwise.hpp,
/// dnn/dropout.hpp, dnn/rotary.hpp, dnn/pooling.hpp, dnn/resize.hpp and attention_sink_backward(),
/// by kernels of troupe's own, one node after another: cuDNN 9.14 has no node for most of them. It
/// has no graph in which they stand beside other nodes: Errc::unsupported.
namespace troupe::dnn {

/// Adds a node whose result has the elements of x in the same row-major order, and other extents of
/// the same product.
TensorId reshape(Graph& graph, TensorId x, std::vector<std::int64_t> extents);

/// Adds a node that puts dimensions into another order: dimension i of the result is dimension
/// order[i] of x.
TensorId transpose(Graph& graph, TensorId x, const std::vector<std::int64_t>& order);

/// A part of a tensor: in dimension i the elements first[i], first[i] + steps[i]..., extents[i] of
/// them. Each list has a number for each dimension.
struct Part {
  std::vector<std::int64_t> first;
  std::vector<std::int64_t> extents;
  std::vector<std::int64_t> steps = {};  ///< positive; none: 1 each
};
/// Adds a node that takes a part of x.
TensorId slice(Graph& graph, TensorId x, const Part& part);

/// How many tensors a node makes one of.
inline constexpr std::size_t kMaxParts = 8;
/// Adds a node that puts 1 to kMaxParts tensors behind one another along a dimension; in all others
/// they have the same extents.
TensorId concatenate(Graph& graph, const std::vector<TensorId>& parts, std::int64_t dimension);

}  // namespace troupe::dnn

namespace troupe {

/// Movements of elements as calls of their own. All operands are packed and row-major. T is f16,
/// bf16, f32, i8, u8, i32 or i64. Errors: invalid, unsupported (another type, or the library is not
/// installed).
class DnnMoving {
 public:
  explicit DnnMoving(detail::Submitter& submitter) : graphs_(submitter) {}

  /// See dnn::transpose(). x has these extents.
  template <Element T>
  Future<void> transpose(const GpuRef<T>& x, const GpuRef<T>& y,
                         const std::vector<std::int64_t>& extents,
                         const std::vector<std::int64_t>& order) const {
    dnn::Graph graph;
    const auto in = graph.input(dtype_of<T>, dnn::Layout(extents));
    const auto out = dnn::transpose(graph, in, order);
    graph.output(out, dtype_of<T>);
    return graphs_.run(graph, {{in, x}, {out, y}});
  }
  /// See dnn::slice(). x has these extents.
  template <Element T>
  Future<void> slice(const GpuRef<T>& x, const GpuRef<T>& y,
                     const std::vector<std::int64_t>& extents, const dnn::Part& part) const {
    dnn::Graph graph;
    const auto in = graph.input(dtype_of<T>, dnn::Layout(extents));
    const auto out = dnn::slice(graph, in, part);
    graph.output(out, dtype_of<T>);
    return graphs_.run(graph, {{in, x}, {out, y}});
  }
  /// See dnn::concatenate(). Each part has outer by any number by inner elements, and stands behind
  /// the one before it in the middle dimension.
  template <Element T>
  Future<void> concatenate(std::initializer_list<GpuRef<T>> parts, const GpuRef<T>& y,
                           std::int64_t outer, std::int64_t inner = 1) const {
    dnn::Graph graph;
    std::vector<dnn::Bound> memory;
    std::vector<dnn::TensorId> in;
    const auto each = outer > 0 && inner > 0 && inner < (std::int64_t{1} << 31) / outer + 1
                          ? outer * inner
                          : std::int64_t{1};
    for (const auto& part : parts) {
      // Rounded up: then a length that is no multiple is refused as too short.
      in.push_back(graph.input(dtype_of<T>, {outer, (part.length() + each - 1) / each, inner}));
      memory.emplace_back(in.back(), part);
    }
    const auto out = dnn::concatenate(graph, in, 1);
    graph.output(out, dtype_of<T>);
    memory.emplace_back(out, y);
    return graphs_.run(graph, memory);
  }

 private:
  DnnGraphs graphs_;
};

}  // namespace troupe
