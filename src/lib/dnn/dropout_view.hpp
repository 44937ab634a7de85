#pragma once

#include "lib/dnn/graph_view.hpp"

namespace troupe::dnn {

/// A node dropout by the names of its parts: inputs x, moved; outputs y, mask. Numbers:
/// probability, seed, offset.
struct DropoutView {
  const TensorView *x, *moved, *y, *mask;
  float probability;
  std::uint64_t seed, offset;

  explicit DropoutView(const NodeView& node)
      : x(node.inputs[0]),
        moved(node.inputs[1]),
        y(node.outputs[0]),
        mask(node.outputs[1]),
        probability(node.real(0)),
        seed(static_cast<std::uint64_t>(node.numbers[1])),
        offset(static_cast<std::uint64_t>(node.numbers[2])) {}

  /// An element is kept whose word is not below this.
  [[nodiscard]] std::uint64_t threshold() const {
    return static_cast<std::uint64_t>(static_cast<double>(probability) * 0x1p32);
  }
  [[nodiscard]] float scale() const {
    return static_cast<float>(1 / (1 - static_cast<double>(probability)));
  }
  [[nodiscard]] std::int64_t volume() const { return (y != nullptr ? y : mask)->volume(); }
};

}  // namespace troupe::dnn
