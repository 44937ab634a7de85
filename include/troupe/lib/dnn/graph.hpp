#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <vector>

#include <troupe/lib/submit.hpp>

/// Graphs of layers: what cuDNN computes in one go, without writing what lies between to memory.
namespace troupe::dnn {

/// Every operand begins at a multiple of so many bytes, as every buffer does.
inline constexpr std::uint64_t kAlignment = 16;

/// How a tensor lies in memory. Element (i0, i1, ...) is strides[0] * i0 + strides[1] * i1 + ...
/// elements from its first one.
struct Layout {
  std::vector<std::int64_t> extents;  ///< 1 to 8 of them, each positive and below 2^31
  std::vector<std::int64_t> strides;  ///< as many

  /// Packed and row-major: the last index varies fastest.
  Layout(std::initializer_list<std::int64_t> row_major)
      : Layout(std::vector<std::int64_t>(row_major)) {}
  explicit Layout(std::vector<std::int64_t> row_major);
  Layout(std::vector<std::int64_t> its_extents, std::vector<std::int64_t> its_strides)
      : extents(std::move(its_extents)), strides(std::move(its_strides)) {}
};
/// Extents batch, channels, spatial...; packed, and the channels vary fastest (NHWC).
Layout channels_last(std::int64_t batch, std::int64_t channels,
                     const std::vector<std::int64_t>& spatial);
/// Packed, the dimensions ordered in memory as those of `like`, which has as many.
Layout packed_like(const Layout& like, std::vector<std::int64_t> extents);

/// What a node computes. Each is described at the function that adds it to a graph: see the other
/// headers dnn_*.hpp.
enum class NodeKind : std::uint32_t {
  pointwise,
  reduction,
  convolution,
  convolution_data,
  convolution_filter,
  matmul,
  pooling,
  pooling_backward,
  resize,
  resize_backward,
  attention,
  attention_backward,
  norm,
  norm_backward,
  reshape,
  transpose,
  slice,
  concatenate,
  dropout,
  sink_backward,
  rotary,
  channel_sums
};

/// A tensor of a graph, by its number; from the graph's functions, and good for that graph alone.
struct TensorId {
  std::int32_t number = -1;
  [[nodiscard]] bool present() const noexcept { return number >= 0; }
};

/// What a tensor is to its graph.
enum class Role : std::uint8_t {
  input,    ///< memory that is read
  output,   ///< memory that is written, all of it
  between,  ///< made by one node and read by others; has no memory
  constant  ///< one number
};

/// A graph of nodes and tensors. It is a description, made once and run any number of times, on any
/// device:
///
///     dnn::Graph graph;
///     const auto x = graph.input(DType::f16, {rows, columns});
///     const auto bias = graph.input(DType::f16, {1, columns});
///     const auto y = dnn::pointwise(graph, Mode::gelu, dnn::pointwise(graph, Mode::add, x, bias));
///     graph.output(y, DType::f16);
///     dnn::on(device).run(graph, {{x, x_ref}, {bias, bias_ref}, {y, y_ref}});
///
/// What is wrong with it is told when it is run: each function keeps the first error and goes on.
/// Numbers between nodes are f32 and sums are made in f32 or f64, never in tf32. An engine may
/// refuse a graph that it can compute neither in one go nor node by node: Errc::unsupported, with
/// the library's reason.
/// One thread at a time; once it is complete, any number.
class Graph {
 public:
  static constexpr std::size_t kMaxTensors = 64, kMaxNodes = 64, kMaxRank = 8;

  /// A tensor that is read from memory, at a multiple of 16 bytes.
  TensorId input(DType dtype, const Layout& layout);
  /// One number of type f32 that goes with the graph; it stands for a tensor of `rank` extents 1.
  TensorId constant(float value, std::size_t rank);
  /// Has a tensor that a node made written to memory, packed in the order of dimensions that it
  /// has, or by `strides`, in elements, which give each element a place of its own.
  void output(TensorId tensor, DType dtype, std::vector<std::int64_t> strides = {});

  // For functions that add nodes.

  /// A tensor that a node makes, packed.
  TensorId between(const Layout& layout);
  /// Absent inputs and outputs are TensorId().
  void add(NodeKind kind, const std::vector<TensorId>& inputs, const std::vector<TensorId>& outputs,
           const std::vector<std::int64_t>& numbers);
  /// The layout of a tensor; of what is no tensor of this graph one of rank 1.
  [[nodiscard]] Layout layout(TensorId tensor) const;
  /// Keeps the first of these messages as the graph's error.
  void refuse(const std::string& why);

  /// The graph as it stands in a record. Errors: invalid, what a function has refused.
  [[nodiscard]] Result<std::vector<std::int64_t>> words() const;

 private:
  struct Tensor {
    DType dtype{};
    Role role{};
    Layout layout;
    float value = 0;
  };
  struct Node {
    NodeKind kind{};
    std::vector<TensorId> inputs, outputs;
    std::vector<std::int64_t> numbers;
  };
  TensorId add(Tensor tensor);
  [[nodiscard]] bool has(TensorId tensor) const noexcept;

  std::vector<Tensor> tensors_;
  std::vector<Node> nodes_;
  std::string error_;
};

/// Memory for a tensor of a graph.
struct Bound {
  TensorId tensor;
  Operand range;
  DType dtype{};

  template <Element T>
  Bound(TensorId its_tensor, const GpuRef<T>& memory)
      : tensor(its_tensor), range(memory.operand()), dtype(dtype_of<T>) {}
};

/// A graph and the memory of its tensors. The inline bytes are Graph::words(); the tail has one
/// operand for each input and output, in the order of their numbers. The tag of each is the number
/// of its tensor, plus kWhole if the tensor is packed and as large as the operand.
struct GraphCall {
  static constexpr std::string_view kName = "dnn.graph";
  static constexpr DTypes kDTypes = DTypes::of({DType::f32});  ///< what is between
  static constexpr Traits kTraits = kComputesRecorded;
  static constexpr std::string_view kTail = "tensor";
  static constexpr std::uint32_t kData = 12288;
  static constexpr std::uint32_t kWhole = 0x8000'0000u;

  OpDType dtype = DType::f32;

  static constexpr std::array<DeclaredOperand<GraphCall>, 0> kOperands{};
  Result<void> check() const;
  Result<void> check_parts(const Parts& parts) const;
  [[nodiscard]] std::uint64_t tail_written(const TailOperand& operand) const noexcept {
    return operand.written() && (operand.tag & kWhole) != 0 ? operand.range.bytes : 0;
  }
};

}  // namespace troupe::dnn

namespace troupe {

/// Runs graphs on one device; see dnn::Graph.
class DnnGraphs : public detail::Calls {
 public:
  using Calls::Calls;

  /// Computes the outputs of a graph from its inputs. Each of them has memory of its type, at a
  /// multiple of 16 bytes; outputs overlap nothing else. Errors: invalid (the graph, or a tensor
  /// without memory, with too little or of another type), unsupported (the library is not
  /// installed, or cannot compute the graph), out_of_memory.
  Future<void> run(const dnn::Graph& graph, std::initializer_list<dnn::Bound> memory) const {
    return run(graph, std::span(memory.begin(), memory.size()));
  }
  Future<void> run(const dnn::Graph& graph, std::span<const dnn::Bound> memory) const;
};

}  // namespace troupe
