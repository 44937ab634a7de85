#include <algorithm>

#include "lib/dnn/graph/cpu.hpp"

namespace troupe::dnn {
namespace {

/// A place in an array, and the steps from there.
struct Walk {
  std::int64_t first = 0;
  Steps steps{};
};

/// Copies elements of these extents from one tensor into another, whose arrays have their sizes.
void copy(std::span<const std::int64_t> extents, const Content& from, const Walk& source,
          Content& to, const Walk& target) {
  for_each_place<2>(extents, {source.steps, target.steps}, [&](const auto& places) {
    const auto read = static_cast<std::size_t>(source.first + places[0]),
               written = static_cast<std::size_t>(target.first + places[1]);
    to.reals[written] = from.reals[read];
    if (!to.integers.empty()) to.integers[written] = from.integers[read];
  });
}

/// The content of an output, as large as it is; with integers if all of these inputs have them.
Content& room_for(const NodeView& node, Contents& contents) {
  const auto* const result = node.outputs[0];
  auto& reals = contents.make(result);
  auto& content = contents[result];
  const bool whole = std::ranges::all_of(node.inputs, [&](const TensorView* input) {
    return input == nullptr || !contents[input].integers.empty();
  });
  content.integers.assign(whole ? reals.size() : 0, 0);
  return content;
}

}  // namespace

void compute_reshape(const NodeView& node, Contents& contents) {
  contents[node.outputs[0]] = contents[node.inputs[0]];
}

void compute_transpose(const NodeView& node, Contents& contents) {
  const auto *const x = node.inputs[0], *const y = node.outputs[0];
  const auto steps = row_major_steps(x->extents);
  Walk source;
  for (std::size_t i = 0; i < y->rank(); ++i)
    source.steps[i] = steps[static_cast<std::size_t>(node.numbers[i])];
  auto& to = room_for(node, contents);
  copy(y->extents, contents[x], source, to, {0, row_major_steps(y->extents)});
}

void compute_slice(const NodeView& node, Contents& contents) {
  const auto *const x = node.inputs[0], *const y = node.outputs[0];
  Walk source{0, row_major_steps(x->extents)};
  for (std::size_t i = 0; i < x->rank(); ++i) {
    source.first += node.numbers[i] * source.steps[i];
    source.steps[i] *= node.numbers[Graph::kMaxRank + i];
  }
  auto& to = room_for(node, contents);
  copy(y->extents, contents[x], source, to, {0, row_major_steps(y->extents)});
}

void compute_concatenate(const NodeView& node, Contents& contents) {
  const auto* const y = node.outputs[0];
  const auto along = static_cast<std::size_t>(node.numbers[0]);
  auto& to = room_for(node, contents);
  Walk target{0, row_major_steps(y->extents)};
  for (const auto* const part : node.inputs) {
    if (part == nullptr) continue;
    copy(part->extents, contents[part], {0, row_major_steps(part->extents)}, to, target);
    target.first += part->extents[along] * target.steps[along];
  }
}

}  // namespace troupe::dnn
