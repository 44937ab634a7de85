#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include <troupe/lib/dnn/graph.hpp>

/// Reading the words of a graph, and what is known of each kind of node.
namespace troupe::dnn {

/// A tensor as it stands in a graph's words.
struct TensorView {
  std::uint32_t number = 0;
  DType dtype{};
  Role role{};
  std::span<const std::int64_t> extents, strides;
  float value = 0;  ///< of a constant

  [[nodiscard]] std::size_t rank() const noexcept { return extents.size(); }
  /// Its elements; more than wire::Checker::kMaxCount if there are more than that.
  [[nodiscard]] std::int64_t volume() const noexcept;
  /// Elements from its first one to behind its last one; the same of more than kMaxCount.
  [[nodiscard]] std::int64_t span() const noexcept;
  [[nodiscard]] bool in_memory() const noexcept {
    return role == Role::input || role == Role::output;
  }
};

/// A node as it stands there.
struct NodeView {
  NodeKind kind{};
  std::vector<const TensorView*> inputs, outputs;  ///< nullptr: absent
  std::span<const std::int64_t> numbers;

  [[nodiscard]] float real(std::size_t i) const noexcept;
};
/// The word of a number that is not an integer.
std::int64_t word_of(float number) noexcept;

/// A graph whose words are sound: each tensor has its extents and strides, each node its tensors
/// and numbers, and what a node reads is an input, a constant or made by an earlier node. Refers to
/// the words.
class GraphView {
 public:
  /// Errors: invalid.
  static Result<GraphView> of(std::span<const std::byte> words);

  [[nodiscard]] std::span<const TensorView> tensors() const noexcept { return tensors_; }
  [[nodiscard]] std::span<const NodeView> nodes() const noexcept { return nodes_; }

 private:
  Result<void> read(std::span<const std::int64_t> words);

  std::vector<TensorView> tensors_;
  std::vector<NodeView> nodes_;
};

/// The graph of these words, which is kept: a program calls the same layers again and again, and to
/// read the words of one takes longer than all else that is done with a small call. Each thread
/// keeps some of those that it has met. Errors: as GraphView::of(), and kept nowhere.
Result<std::shared_ptr<const GraphView>> known_graph(std::span<const std::byte> words);

/// What must hold for nodes of a kind. Inputs and outputs from the `required` ones on may be
/// absent.
struct NodeDefinition {
  std::string_view name;
  std::size_t inputs = 0, required_inputs = 0;
  std::size_t outputs = 0, required_outputs = 0;
  std::size_t numbers = 0;
  /// Extents and numbers against one another; the counts above have been looked at. The message of
  /// what is wrong; empty: nothing.
  std::string (*wrong)(const NodeView& node) = nullptr;
};
/// nullptr: there is no such kind.
const NodeDefinition* definition_of(NodeKind kind) noexcept;

/// Whether extents are the same.
bool same_extents(const TensorView& a, const TensorView& b) noexcept;
/// Whether `from` stands for a tensor of the extents of `to`: has as many, each the same or 1.
bool broadcasts(const TensorView& from, const TensorView& to) noexcept;
/// Whether it has three dimensions or fewer, packed, the last one fastest.
bool is_row_major(const TensorView& tensor) noexcept;
/// Whether a node reads an input of which two extents or more are 1 and stand for all indices.
bool spreads_twice(const NodeView& node) noexcept;

// Families of nodes: what must hold for each.
std::string wrong_pointwise(const NodeView& node);
std::string wrong_reduction(const NodeView& node);
std::string wrong_convolution(const NodeView& node);  // and its gradients
std::string wrong_matmul(const NodeView& node);
std::string wrong_pooling(const NodeView& node);  // and its gradient
std::string wrong_resize(const NodeView& node);   // and its gradient
std::string wrong_attention(const NodeView& node);
std::string wrong_attention_backward(const NodeView& node);
std::string wrong_norm(const NodeView& node);
std::string wrong_norm_backward(const NodeView& node);
std::string wrong_reshape(const NodeView& node);
std::string wrong_transpose(const NodeView& node);
std::string wrong_slice(const NodeView& node);
std::string wrong_concatenate(const NodeView& node);
std::string wrong_dropout(const NodeView& node);
std::string wrong_sink_backward(const NodeView& node);
std::string wrong_rotary(const NodeView& node);
std::string wrong_channel_sums(const NodeView& node);

}  // namespace troupe::dnn
