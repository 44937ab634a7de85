#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "lib/dnn/graph/view.hpp"

/// Graphs on the cpu engine: node by node, in f32, each tensor a row-major array.
namespace troupe::dnn {

/// The numbers of a tensor, the last index fastest, wherever they lie in memory.
struct Content {
  std::vector<float> reals;
  std::vector<std::int64_t> integers;  ///< the same, of tensors of an integer type
};

/// The contents of all tensors of a graph.
class Contents {
 public:
  Contents(std::size_t tensors, int its_threads) : threads(its_threads), contents_(tensors) {}
  [[nodiscard]] Content& operator[](const TensorView* tensor) { return contents_[tensor->number]; }
  /// The numbers of an input of a node.
  [[nodiscard]] const std::vector<float>& of(const TensorView* tensor) {
    return contents_[tensor->number].reals;
  }
  /// Those of an output, as many as the tensor has elements, all 0.
  [[nodiscard]] std::vector<float>& make(const TensorView* tensor) {
    auto& reals = contents_[tensor->number].reals;
    reals.assign(static_cast<std::size_t>(tensor->volume()), 0);
    return reals;
  }

  const int threads;  ///< how many to compute with

 private:
  std::vector<Content> contents_;
};

/// Steps, in elements, of the dimensions of an array.
using Steps = std::array<std::int64_t, Graph::kMaxRank>;
/// Those of a row-major array of these extents; 0 where the extent is 1, so that it stands for all
/// indices of a larger one.
Steps row_major_steps(std::span<const std::int64_t> extents);

/// Calls visit(places) for each index of these extents, the last fastest. `places`: where it is in
/// each of N arrays with these steps.
template <std::size_t N, class Visit>
void for_each_place(std::span<const std::int64_t> extents, const std::array<Steps, N>& steps,
                    const Visit& visit) {
  Steps index{};
  std::array<std::int64_t, N> places{};
  const auto rank = extents.size();
  for (;;) {
    visit(places);
    auto dimension = rank;
    for (;;) {
      if (dimension == 0) return;
      --dimension;
      for (std::size_t i = 0; i < N; ++i) places[i] += steps[i][dimension];
      if (++index[dimension] < extents[dimension]) break;
      for (std::size_t i = 0; i < N; ++i) places[i] -= steps[i][dimension] * index[dimension];
      index[dimension] = 0;
    }
  }
}

/// The work of a graph, to be done on the engine's thread. `memory`: the addresses of its inputs
/// and outputs, in the order of their numbers. `threads`: how many to compute with. Errors:
/// unsupported (this engine has no such node, or does not compute in a type).
Result<std::function<void()>> work_of(std::span<const std::byte> words,
                                      std::vector<std::byte*> memory, int threads);

// Families of nodes. Each computes the contents of a node's outputs from those of its inputs.
void compute_pointwise(const NodeView& node, Contents& contents);
void compute_reduction(const NodeView& node, Contents& contents);
void compute_convolution(const NodeView& node, Contents& contents);  // and its gradients
void compute_matmul(const NodeView& node, Contents& contents);
void compute_pooling(const NodeView& node, Contents& contents);
void compute_pooling_backward(const NodeView& node, Contents& contents);
void compute_resize(const NodeView& node, Contents& contents);  // and its gradient
/// Whether the library that convolves is installed.
bool convolves() noexcept;
void compute_attention(const NodeView& node, Contents& contents);
void compute_attention_backward(const NodeView& node, Contents& contents);
void compute_norm(const NodeView& node, Contents& contents);
void compute_norm_backward(const NodeView& node, Contents& contents);
void compute_reshape(const NodeView& node, Contents& contents);
void compute_transpose(const NodeView& node, Contents& contents);
void compute_slice(const NodeView& node, Contents& contents);
void compute_concatenate(const NodeView& node, Contents& contents);
void compute_dropout(const NodeView& node, Contents& contents);
void compute_sink_backward(const NodeView& node, Contents& contents);
void compute_rotary(const NodeView& node, Contents& contents);
void compute_channel_sums(const NodeView& node, Contents& contents);

}  // namespace troupe::dnn
