#include <algorithm>

#include "lib/dnn/graph/cpu.hpp"
#include "lib/dnn/pointwise/numbers.hpp"

namespace troupe::dnn {

void compute_pointwise(const NodeView& node, Contents& contents) {
  const auto mode = static_cast<Mode>(node.numbers[0]);
  const numbers::Constants with{node.real(1), node.real(2), node.real(3), node.real(4)};
  const auto* const result = node.outputs[0];
  auto& y = contents.make(result);
  std::array<Steps, 3> steps{};
  std::array<const float*, 3> from{};
  for (std::size_t i = 0; i < 3; ++i) {
    if (node.inputs[i] == nullptr) continue;
    steps[i] = row_major_steps(node.inputs[i]->extents);
    from[i] = contents.of(node.inputs[i]).data();
  }
  std::size_t next = 0;
  for_each_place(result->extents, steps, [&](const auto& places) {
    const double a = from[0][places[0]];
    switch (inputs_of(mode)) {
      case 1: y[next++] = static_cast<float>(numbers::of_one(mode, a, with)); break;
      case 2:
        y[next++] = static_cast<float>(numbers::of_two(mode, a, from[1][places[1]], with));
        break;
      default: y[next++] = from[2][places[2]] != 0 ? from[0][places[0]] : from[1][places[1]];
    }
  });
}

void compute_reduction(const NodeView& node, Contents& contents) {
  const auto reduction = static_cast<ReduceOp>(node.numbers[0]);
  const auto *const x = node.inputs[0], *const result = node.outputs[0];
  auto& y = contents.make(result);
  const auto& from = contents.of(x);
  std::vector<double> sums(y.size(), numbers::first_of(reduction));
  std::size_t next = 0;
  for_each_place<1>(x->extents, {row_major_steps(result->extents)}, [&](const auto& places) {
    auto& sum = sums[static_cast<std::size_t>(places[0])];
    sum = numbers::joined(reduction, sum, from[next++]);
  });
  std::transform(sums.begin(), sums.end(), y.begin(),
                 [](double sum) { return static_cast<float>(sum); });
}

}  // namespace troupe::dnn
