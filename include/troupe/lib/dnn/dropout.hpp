#pragma once

#include <troupe/lib/dnn/graph.hpp>

/// Dropout (Srivastava et al., Dropout: A Simple Way to Prevent Neural Networks from Overfitting,
/// 2014). Its random numbers have places of their own, which stand in the record: a command that
/// runs again after a fault drops the same elements.
///
/// See dnn/moving.hpp for what the cuda engine computes. cuDNN's own random numbers are not used:
/// NVIDIA documents no sequence of them.
namespace troupe::dnn {

/// Which elements are dropped.
struct DropoutRule {
  float probability = 0.5f;  ///< of each element; at least 0, below 1
  std::uint64_t seed = 0;
  std::uint64_t offset = 0;  ///< the place of the first element's number
};

/// What dropout makes, of the extents of x.
struct Dropped {
  TensorId y;
  TensorId mask;  ///< 1 where an element is kept, otherwise 0
};

/// Adds a node that drops elements:
///
///     mask[i] = word[offset + i] >= probability * 2^32 ? 1 : 0
///     y[i] = mask[i] ? x[i] / (1 - probability) : 0
///
/// where i counts the elements row-major, however they lie, and word are those of
/// rng::on(device).bits() in u32 with the same seed; 2^40 of them are a subsequence. The gradient
/// with regard to x is the same node of that with regard to y. `moved`: one i64 in memory, not
/// negative, that is added to the offset when it runs, for sequences that are replayed.
Dropped dropout(Graph& graph, TensorId x, const DropoutRule& rule, TensorId moved = {},
                bool with_mask = false);
/// Adds a node that makes such a mask alone, of these extents.
TensorId dropout_mask(Graph& graph, const Layout& layout, const DropoutRule& rule,
                      TensorId moved = {});

}  // namespace troupe::dnn

namespace troupe {

/// Dropout as calls of their own: of arrays of one length. T is f16, bf16 or f32. Errors: invalid,
/// unsupported (another type, or the library is not installed).
class DnnDropout {
 public:
  explicit DnnDropout(detail::Submitter& submitter) : graphs_(submitter) {}

  /// See dnn::dropout(). Of dy and with the same rule it gives dx.
  template <Element T>
  Future<void> dropout(const GpuRef<T>& x, const GpuRef<T>& y, const dnn::DropoutRule& rule) const {
    dnn::Graph graph;
    const auto in = graph.input(dtype_of<T>, {x.length()});
    const auto made = dnn::dropout(graph, in, rule);
    graph.output(made.y, dtype_of<T>);
    return graphs_.run(graph, {{in, x}, {made.y, y}});
  }
  /// See dnn::dropout_mask().
  template <Element T>
  Future<void> dropout_mask(const GpuRef<T>& mask, const dnn::DropoutRule& rule) const {
    dnn::Graph graph;
    const auto made = dnn::dropout_mask(graph, {mask.length()}, rule);
    graph.output(made, dtype_of<T>);
    return graphs_.run(graph, {{made, mask}});
  }

 private:
  DnnGraphs graphs_;
};

}  // namespace troupe
