#pragma once

#include "lib/dnn/graph/node_tensors.hpp"
#include "lib/dnn/graph/view.hpp"

namespace troupe::dnn {

/// A node dropout by the names of its parts. Numbers: probability, seed, offset.
struct DropoutView {
  const TensorView *x, *moved, *y, *mask;
  float probability;
  std::uint64_t seed, offset;

  explicit DropoutView(const NodeView& node)
      : probability(node.real(0)),
        seed(static_cast<std::uint64_t>(node.numbers[1])),
        offset(static_cast<std::uint64_t>(node.numbers[2])) {
    const auto in = of_node::named<of_node::DropoutInputs>(node.inputs);
    const auto out = of_node::named<of_node::DropoutOutputs>(node.outputs);
    x = in.x, moved = in.moved, y = out.y, mask = out.mask;
  }

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
