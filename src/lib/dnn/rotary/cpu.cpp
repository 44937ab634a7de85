#include <troupe/lib/dnn/rotary.hpp>

#include "lib/dnn/graph/cpu.hpp"
#include "lib/dnn/graph/node_tensors.hpp"

namespace troupe::dnn {

void compute_rotary(const NodeView& node, Contents& contents) {
  const auto [x, cos, sin] = of_node::named<of_node::RotaryInputs>(node.inputs);
  const auto dim = x->extents.back(), pairs = cos->extents.back();
  const bool halves = static_cast<RotaryPairs>(node.numbers[0]) == RotaryPairs::halves;
  const float direction = node.numbers[1] == 0 ? 1 : -1;
  const auto &cosines = contents.of(cos), &sines = contents.of(sin);
  const auto* from = contents.of(x).data();
  auto& made = contents.make(node.outputs[0]);
  std::copy_n(from, made.size(), made.begin());
  auto* to = made.data();
  const auto turn = [&](std::int64_t a, std::int64_t b, std::size_t angle) {
    const float c = cosines[angle], s = direction * sines[angle];
    to[a] = from[a] * c - from[b] * s;
    to[b] = from[b] * c + from[a] * s;
  };
  for_each_place<1>(x->extents.first(x->rank() - 1), {row_major_steps(cos->extents)},
                    [&](const auto& places) {
                      for (std::int64_t j = 0; j < pairs; ++j) {
                        turn(halves ? j : 2 * j, halves ? j + pairs : 2 * j + 1,
                             static_cast<std::size_t>(places[0] + j));
                      }
                      from += dim;
                      to += dim;
                    });
}

}  // namespace troupe::dnn
