#pragma once

#include <cudnn.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include <troupe/lib/dnn.hpp>

#include "lib/dnn/graph/view.hpp"

namespace cudnn_frontend::graph {
class Graph;
}

namespace troupe::host::cuda {

/// Everything that a plan depends on beside the GPU and the version of cuDNN. Refers to the
/// operation.
struct Shape {
  std::uint32_t opcode = 0;
  std::uint32_t optional_operand = 0;  ///< 1: bias is present
  /// The fields of the operation before its operands, or a graph's words.
  std::span<const std::byte> bytes;
};
/// The same, kept.
struct PlanKey {
  std::uint32_t opcode = 0, optional_operand = 0;
  std::vector<std::byte> bytes;

  explicit PlanKey(const Shape& shape)
      : opcode(shape.opcode),
        optional_operand(shape.optional_operand),
        bytes(shape.bytes.begin(), shape.bytes.end()) {}
  bool operator==(const Shape& shape) const noexcept {
    return opcode == shape.opcode && optional_operand == shape.optional_operand &&
           bytes.size() == shape.bytes.size() &&
           std::memcmp(bytes.data(), shape.bytes.data(), bytes.size()) == 0;
  }
};

inline Shape shape_of(const dnn::Convolution& op) {
  return {opcode_of<dnn::Convolution>, op.bias.present() ? 1u : 0u,
          std::as_bytes(std::span(&op, 1)).first(offsetof(dnn::Convolution, x))};
}
inline Shape shape_of(std::span<const std::byte> words) {
  return {opcode_of<dnn::GraphCall>, 0, words};
}

/// An output that is filled before a plan runs, because cuDNN leaves a part of it out.
struct Fill {
  std::size_t operand = 0;    ///< its place among the graph's operands
  std::uint64_t bytes = 0;    ///< of it
  std::uint32_t pattern = 0;  ///< that is repeated
};
/// What is to be filled before a graph runs: cuDNN's attention writes nothing of a sequence without
/// queries, but adds up what its workspace has of it for the gradients.
struct Fills {
  std::vector<Fill> outputs;
  bool workspace = false;  ///< with zeros
};
/// Errors: unsupported (an output that is to be filled has gaps).
Result<Fills> fills_of(const dnn::GraphView& view);

/// How cuDNN carries out one shape of an operation: a graph and the algorithm chosen for it, which
/// always gives the same bits. It is good for operands at any address.
class Plan {
 public:
  Plan(Plan&& other) noexcept;
  Plan& operator=(Plan&& other) noexcept;
  ~Plan();  ///< nothing queued may use it any more

  /// Looks for the fastest algorithm and compiles it: milliseconds to seconds. Errors: unsupported
  /// (cuDNN has none), library.
  static Result<Plan> make(cudnnHandle_t handle, const dnn::Convolution& op);
  /// Of a graph's words.
  static Result<Plan> make(cudnnHandle_t handle, std::span<const std::byte> words);

  /// Bytes of a plan, for restored() in another process; empty where cuDNN cannot serialise it.
  [[nodiscard]] std::vector<std::byte> serialized(const PlanKey& key, int multiprocessors) const;
  /// The shape in such bytes; nothing if they are of another version of cuDNN or another model of
  /// GPU than the current device.
  static std::optional<Shape> shape_in(std::span<const std::byte> bytes, int multiprocessors);
  /// The plan of bytes that have a shape; nothing if cuDNN does not take them.
  static std::optional<Plan> restored(cudnnHandle_t handle, std::span<const std::byte> bytes);

  [[nodiscard]] std::size_t workspace_bytes() const noexcept { return workspace_bytes_; }
  /// No algorithm adds the bias: it is no operand of the plan, and is to be added to y afterwards.
  [[nodiscard]] bool bias_apart() const noexcept { return bias_apart_; }
  /// Queues it on the handle's stream. `operands`: the addresses of those that are present, in the
  /// operation's order, or that of a graph's tensors. Errors: library.
  Result<void> execute(cudnnHandle_t handle, std::span<void*> operands, void* workspace) const;

 private:
  explicit Plan(std::unique_ptr<cudnn_frontend::graph::Graph> graph, bool bias_apart);
  Result<void> measure();

  std::unique_ptr<cudnn_frontend::graph::Graph> graph_;
  std::size_t workspace_bytes_ = 0;
  bool bias_apart_ = false;
};

}  // namespace troupe::host::cuda
