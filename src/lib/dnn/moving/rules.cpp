#include <troupe/lib/dnn/moving.hpp>

#include <algorithm>
#include <array>
#include <numeric>
#include <string>

#include "lib/dnn/graph/view.hpp"

namespace troupe::dnn {
namespace {

/// A list of numbers as a node has them: kMaxRank, 0 behind those that there are.
std::vector<std::int64_t> padded(std::vector<std::int64_t> list) {
  list.resize(Graph::kMaxRank);
  return list;
}

}  // namespace

TensorId reshape(Graph& graph, TensorId x, std::vector<std::int64_t> extents) {
  const auto result = graph.between(Layout(std::move(extents)));
  graph.add(NodeKind::reshape, {x}, {result}, {});
  return result;
}

TensorId transpose(Graph& graph, TensorId x, const std::vector<std::int64_t>& order) {
  const auto from = graph.layout(x).extents;
  std::vector<std::int64_t> extents, sorted = order;
  std::sort(sorted.begin(), sorted.end());
  for (std::size_t i = 0; i < sorted.size(); ++i) {
    if (sorted.size() == from.size() && sorted[i] == static_cast<std::int64_t>(i)) continue;
    graph.refuse("transpose: the order does not name each dimension once");
    return {};
  }
  for (const auto dimension : order) extents.push_back(from[static_cast<std::size_t>(dimension)]);
  const auto result = graph.between(Layout(std::move(extents)));
  graph.add(NodeKind::transpose, {x}, {result}, padded(order));
  return result;
}

TensorId slice(Graph& graph, TensorId x, const Part& part) {
  const auto rank = graph.layout(x).extents.size();
  const auto steps = part.steps.empty() ? std::vector<std::int64_t>(rank, 1) : part.steps;
  if (part.first.size() != rank || part.extents.size() != rank || steps.size() != rank) {
    graph.refuse("slice: a list has not one number for each dimension");
    return {};
  }
  const auto result = graph.between(packed_like(graph.layout(x), part.extents));
  auto numbers = padded(part.first);
  const auto last = padded(steps);
  numbers.insert(numbers.end(), last.begin(), last.end());
  graph.add(NodeKind::slice, {x}, {result}, numbers);
  return result;
}

TensorId concatenate(Graph& graph, const std::vector<TensorId>& parts, std::int64_t dimension) {
  if (parts.empty() || parts.size() > kMaxParts) {
    graph.refuse("concatenate: there is no part, or more than " + std::to_string(kMaxParts));
    return {};
  }
  const auto like = graph.layout(parts[0]);
  auto extents = like.extents;
  if (dimension < 0 || dimension >= std::ssize(extents)) {
    graph.refuse("concatenate: there is no such dimension");
    return {};
  }
  const auto along = static_cast<std::size_t>(dimension);
  extents[along] = 0;
  for (const auto part : parts) {
    const auto of_part = graph.layout(part).extents;
    if (of_part.size() != extents.size()) {
      graph.refuse("concatenate: parts have different numbers of dimensions");
      return {};
    }
    // What is too large for 64 bits is refused with the tensor, by its extents.
    extents[along] = static_cast<std::int64_t>(static_cast<std::uint64_t>(extents[along]) +
                                               static_cast<std::uint64_t>(of_part[along]));
  }
  const auto result = graph.between(packed_like(like, std::move(extents)));
  auto inputs = parts;
  inputs.resize(kMaxParts);
  graph.add(NodeKind::concatenate, inputs, {result}, {dimension});
  return result;
}

std::string wrong_reshape(const NodeView& node) {
  if (node.inputs[0]->volume() != node.outputs[0]->volume())
    return "the result has not as many elements as x";
  return {};
}

std::string wrong_transpose(const NodeView& node) {
  const auto &x = *node.inputs[0], &y = *node.outputs[0];
  if (x.rank() != y.rank()) return "the result has not as many dimensions as x";
  std::array<bool, Graph::kMaxRank> named{};
  for (std::size_t i = 0; i < node.numbers.size(); ++i) {
    const auto dimension = node.numbers[i];
    if (i >= x.rank()) {
      if (dimension != 0) return "a number beyond the rank is not 0";
      continue;
    }
    if (dimension < 0 || dimension >= static_cast<std::int64_t>(x.rank()) ||
        std::exchange(named[static_cast<std::size_t>(dimension)], true))
      return "the order does not name each dimension once";
    if (y.extents[i] != x.extents[static_cast<std::size_t>(dimension)])
      return "the result has another extent than the dimension it is made of";
  }
  return {};
}

std::string wrong_slice(const NodeView& node) {
  const auto &x = *node.inputs[0], &y = *node.outputs[0];
  if (x.rank() != y.rank()) return "the result has not as many dimensions as x";
  for (std::size_t i = 0; i < Graph::kMaxRank; ++i) {
    const auto first = node.numbers[i], step = node.numbers[Graph::kMaxRank + i];
    if (i >= x.rank()) {
      if (first != 0 || step != 0) return "a number beyond the rank is not 0";
      continue;
    }
    if (first < 0 || step < 1) return "a part begins before x, or a step is not positive";
    // Extents are positive and below 2^31.
    if (first >= x.extents[i] || (y.extents[i] > 1 && step >= x.extents[i]) ||
        first + (y.extents[i] - 1) * step >= x.extents[i])
      return "a part ends behind x";
  }
  return {};
}

std::string wrong_concatenate(const NodeView& node) {
  const auto& y = *node.outputs[0];
  const auto dimension = node.numbers[0];
  if (dimension < 0 || dimension >= static_cast<std::int64_t>(y.rank()))
    return "there is no such dimension";
  std::int64_t together = 0;
  for (const auto* const part : node.inputs) {
    if (part == nullptr) continue;
    if (part->rank() != y.rank()) return "a part has not as many dimensions as the result";
    for (std::size_t i = 0; i < y.rank(); ++i) {
      if (static_cast<std::int64_t>(i) == dimension) {
        together += part->extents[i];
      } else if (part->extents[i] != y.extents[i]) {
        return "a part has another extent than the result";
      }
    }
  }
  if (together != y.extents[static_cast<std::size_t>(dimension)])
    return "the parts are not as long as the result";
  return {};
}

}  // namespace troupe::dnn
