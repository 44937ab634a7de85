#pragma once

#include <cudnn.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include <troupe/lib/dnn.hpp>

namespace cudnn_frontend::graph {
class Graph;
}

namespace troupe::host::cuda {

/// Everything that a plan depends on beside the GPU and the version of cuDNN: the fields of the
/// operation before its operands, and which of these are present.
struct PlanKey {
  std::uint32_t opcode = 0;
  std::uint32_t optional_operand = 0;  ///< 1: bias or stats is present
  std::array<std::byte, offsetof(dnn::Convolution, x)> shape{};

  bool operator==(const PlanKey& other) const noexcept {
    return std::memcmp(this, &other, sizeof *this) == 0;
  }
};
static_assert(std::has_unique_object_representations_v<PlanKey>);

inline PlanKey key_of(const dnn::Convolution& op) {
  PlanKey key{opcode_of<dnn::Convolution>, op.bias.present() ? 1u : 0u, {}};
  std::memcpy(key.shape.data(), &op, offsetof(dnn::Convolution, x));
  return key;
}
inline PlanKey key_of(const dnn::Attention& op) {
  static_assert(offsetof(dnn::Attention, q) <= sizeof(PlanKey::shape));
  PlanKey key{opcode_of<dnn::Attention>, op.stats.present() ? 1u : 0u, {}};
  std::memcpy(key.shape.data(), &op, offsetof(dnn::Attention, q));
  return key;
}

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
  static Result<Plan> make(cudnnHandle_t handle, const dnn::Attention& op);

  /// Bytes of a plan, for restore() in another process; empty where cuDNN cannot serialise it.
  [[nodiscard]] std::vector<std::byte> serialized(const PlanKey& key, int multiprocessors) const;
  /// The key of such bytes; nothing if they are of another version of cuDNN or another model of GPU
  /// than the current device.
  static std::optional<PlanKey> key_in(std::span<const std::byte> bytes, int multiprocessors);
  /// The plan of bytes that have a key; nothing if cuDNN does not take them.
  static std::optional<Plan> restored(cudnnHandle_t handle, std::span<const std::byte> bytes);

  [[nodiscard]] std::size_t workspace_bytes() const noexcept { return workspace_bytes_; }
  /// No algorithm adds the bias: it is no operand of the plan, and is to be added to y afterwards.
  [[nodiscard]] bool bias_apart() const noexcept { return bias_apart_; }
  /// Queues it on the handle's stream. `operands`: the addresses of those that are present, in the
  /// operation's order. Errors: library.
  Result<void> execute(cudnnHandle_t handle, std::span<void*> operands, void* workspace) const;

 private:
  explicit Plan(std::unique_ptr<cudnn_frontend::graph::Graph> graph, bool bias_apart);
  Result<void> measure();

  std::unique_ptr<cudnn_frontend::graph::Graph> graph_;
  std::size_t workspace_bytes_ = 0;
  bool bias_apart_ = false;
};

}  // namespace troupe::host::cuda
