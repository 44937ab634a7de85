#pragma once

#include <troupe/lib/dnn/graph.hpp>

/// Rotary position embedding (Su et al., RoFormer: Enhanced Transformer with Rotary Position
/// Embedding, 2021). See dnn/moving.hpp for what the cuda engine computes: cuDNN has such a node
/// from 9.24 on.
namespace troupe::dnn {

/// Which two elements are the coordinates of pair j of h.
enum class RotaryPairs : std::uint32_t {
  halves,     ///< elements j and j + h, as GPT-NeoX and Llama have it
  neighbours  ///< elements 2 j and 2 j + 1, as GPT-J has it
};

/// Adds a node that turns pairs of elements of x along its last dimension:
///
///     y[a] = x[a] * cos[j] - x[b] * sin[j],  y[b] = x[b] * cos[j] + x[a] * sin[j]
///
/// where a and b are the elements of pair j. cos and sin have as many dimensions as x; the last
/// extent is h, of which twice is at most that of x, and each other one is that of x or 1. Elements
/// behind the pairs stay as they are. Computed in f32.
TensorId rotary(Graph& graph, TensorId x, TensorId cos, TensorId sin,
                RotaryPairs pairs = RotaryPairs::halves);
/// Adds a node that computes the gradient with regard to x from that of y: it turns back.
TensorId rotary_backward(Graph& graph, TensorId dy, TensorId cos, TensorId sin,
                         RotaryPairs pairs = RotaryPairs::halves);

}  // namespace troupe::dnn

namespace troupe {

/// The shape of a rotary embedding.
struct RotaryOptions {
  std::int64_t batch = 1, sequence = 0, heads = 1;
  std::int64_t dim = 0;
  std::int64_t rotated = 0;  ///< of dim, an even number; 0: all
  dnn::RotaryPairs pairs = dnn::RotaryPairs::halves;
};

/// Rotary embeddings as calls of their own; see dnn::rotary(). All operands are row-major and
/// packed:
///   x, y      batch, sequence, heads, dim
///   cos, sin  sequence, rotated / 2
/// T is f16, bf16 or f32. Errors: invalid, unsupported (another type, or the library is not
/// installed).
class DnnRotary {
 public:
  explicit DnnRotary(detail::Submitter& submitter) : graphs_(submitter) {}

  template <Element T>
  Future<void> rotary(const GpuRef<T>& x, const GpuRef<float>& cos, const GpuRef<float>& sin,
                      const GpuRef<T>& y, const RotaryOptions& shape) const {
    return turn(&dnn::rotary, x, cos, sin, y, shape);
  }
  /// See dnn::rotary_backward().
  template <Element T>
  Future<void> rotary_backward(const GpuRef<T>& dy, const GpuRef<float>& cos,
                               const GpuRef<float>& sin, const GpuRef<T>& dx,
                               const RotaryOptions& shape) const {
    return turn(&dnn::rotary_backward, dy, cos, sin, dx, shape);
  }

 private:
  template <class T>
  Future<void> turn(decltype(&dnn::rotary) add, const GpuRef<T>& from, const GpuRef<float>& cos,
                    const GpuRef<float>& sin, const GpuRef<T>& to,
                    const RotaryOptions& shape) const {
    dnn::Graph graph;
    const auto pairs = (shape.rotated == 0 ? shape.dim : shape.rotated) / 2;
    const auto x = graph.input(dtype_of<T>, {shape.batch, shape.sequence, shape.heads, shape.dim});
    const auto of_cos = graph.input(DType::f32, {1, shape.sequence, 1, pairs});
    const auto of_sin = graph.input(DType::f32, {1, shape.sequence, 1, pairs});
    const auto y = add(graph, x, of_cos, of_sin, shape.pairs);
    graph.output(y, dtype_of<T>);
    return graphs_.run(graph, {{x, from}, {of_cos, cos}, {of_sin, sin}, {y, to}});
  }

  DnnGraphs graphs_;
};

}  // namespace troupe
