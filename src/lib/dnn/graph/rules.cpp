#include <troupe/lib/dnn.hpp>

#include <algorithm>
#include <array>
#include <numeric>
#include <string>

#include "common/wire/checker.hpp"
#include "lib/dnn/graph/view.hpp"

namespace troupe::dnn {
namespace {

/// Strides of a packed tensor whose dimensions vary in this order, the fastest first. What is too
/// large for 64 bits is refused with the tensor, by its extents.
std::vector<std::int64_t> packed(const std::vector<std::int64_t>& extents,
                                 const std::vector<std::size_t>& fastest_first) {
  std::vector<std::int64_t> strides(extents.size());
  std::uint64_t stride = 1;
  for (const auto i : fastest_first) {
    strides[i] = static_cast<std::int64_t>(stride & ~(std::uint64_t{1} << 63));
    stride *= static_cast<std::uint64_t>(extents[i]);
  }
  return strides;
}
std::vector<std::size_t> numbered(std::size_t count) {
  std::vector<std::size_t> order(count);
  std::iota(order.begin(), order.end(), std::size_t{0});
  return order;
}

/// "tensor 7"
const std::string& name_of_tensor(std::uint32_t number) {
  static const auto kNames = [] {
    std::array<std::string, Graph::kMaxTensors> names;
    for (std::size_t i = 0; i < names.size(); ++i) names[i] = "tensor " + std::to_string(i);
    return names;
  }();
  return kNames[number];
}

}  // namespace

Layout::Layout(std::vector<std::int64_t> row_major) : extents(std::move(row_major)) {
  auto order = numbered(extents.size());
  std::reverse(order.begin(), order.end());
  strides = packed(extents, order);
}

Layout channels_last(std::int64_t batch, std::int64_t channels,
                     const std::vector<std::int64_t>& spatial) {
  std::vector<std::int64_t> extents{batch, channels};
  extents.insert(extents.end(), spatial.begin(), spatial.end());
  std::vector<std::size_t> order{1};
  for (auto i = extents.size(); i-- > 2;) order.push_back(i);
  order.push_back(0);
  auto strides = packed(extents, order);
  return {std::move(extents), std::move(strides)};
}

Layout packed_like(const Layout& like, std::vector<std::int64_t> extents) {
  if (like.strides.size() != extents.size()) return Layout(std::move(extents));
  auto order = numbered(extents.size());
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return like.strides[a] != like.strides[b] ? like.strides[a] < like.strides[b] : a > b;
  });
  auto strides = packed(extents, order);
  return {std::move(extents), std::move(strides)};
}

TensorId Graph::add(Tensor tensor) {
  if (tensors_.size() == kMaxTensors) {
    refuse("it has more than " + std::to_string(kMaxTensors) + " tensors");
    return {};
  }
  const auto& layout = tensor.layout;
  if (layout.extents.empty() || layout.extents.size() > kMaxRank ||
      layout.extents.size() != layout.strides.size()) {
    refuse("a tensor has no dimension, too many, or not as many strides as extents");
    return {};
  }
  tensors_.push_back(std::move(tensor));
  return {static_cast<std::int32_t>(tensors_.size() - 1)};
}

TensorId Graph::input(DType dtype, const Layout& layout) {
  return add({dtype, Role::input, layout, 0});
}
TensorId Graph::constant(float value, std::size_t rank) {
  return add({DType::f32, Role::constant, Layout(std::vector<std::int64_t>(rank, 1)), value});
}
TensorId Graph::between(const Layout& layout) {
  return add({DType::f32, Role::between, layout, 0});
}

bool Graph::has(TensorId tensor) const noexcept {
  return tensor.number >= 0 && tensor.number < std::ssize(tensors_);
}

void Graph::output(TensorId tensor, DType dtype, std::vector<std::int64_t> strides) {
  if (!has(tensor) || tensors_[static_cast<std::size_t>(tensor.number)].role != Role::between)
    return refuse("an output is no tensor that a node makes, or is one already");
  auto& made = tensors_[static_cast<std::size_t>(tensor.number)];
  made.role = Role::output;
  made.dtype = dtype;
  if (strides.empty()) return;
  if (strides.size() != made.layout.extents.size())
    return refuse("an output has not as many strides as extents");
  made.layout.strides = std::move(strides);
}

void Graph::add(NodeKind kind, const std::vector<TensorId>& inputs,
                const std::vector<TensorId>& outputs, const std::vector<std::int64_t>& numbers) {
  if (nodes_.size() == kMaxNodes)
    return refuse("it has more than " + std::to_string(kMaxNodes) + " nodes");
  nodes_.push_back({kind, inputs, outputs, numbers});
}

Layout Graph::layout(TensorId tensor) const {
  return has(tensor) ? tensors_[static_cast<std::size_t>(tensor.number)].layout : Layout{1};
}

void Graph::refuse(const std::string& why) {
  if (error_.empty()) error_ = why;
}

Result<std::vector<std::int64_t>> Graph::words() const {
  if (!error_.empty())
    return Error{Errc::invalid, 0, std::string(GraphCall::kName) + ": " + error_};
  std::vector<std::int64_t> words;
  words.reserve(64 + tensors_.size() * 12);
  const auto pack = [](std::uint64_t a, std::uint64_t b, std::uint64_t c, std::uint64_t d) {
    return static_cast<std::int64_t>(a | b << 16 | c << 32 | d << 48);
  };
  words.push_back(static_cast<std::int64_t>(tensors_.size() | std::uint64_t{nodes_.size()} << 32));
  for (const auto& tensor : tensors_) {
    const auto kind =
        static_cast<std::uint64_t>(tensor.dtype) | static_cast<std::uint64_t>(tensor.role) << 8;
    words.push_back(pack(kind, tensor.layout.extents.size(), 0, 0) | word_of(tensor.value) << 32);
    words.insert(words.end(), tensor.layout.extents.begin(), tensor.layout.extents.end());
    words.insert(words.end(), tensor.layout.strides.begin(), tensor.layout.strides.end());
  }
  for (const auto& node : nodes_) {
    words.push_back(pack(static_cast<std::uint64_t>(node.kind), node.inputs.size(),
                         node.outputs.size(), node.numbers.size()));
    for (const auto tensor : node.inputs) words.push_back(tensor.number);
    for (const auto tensor : node.outputs) words.push_back(tensor.number);
    words.insert(words.end(), node.numbers.begin(), node.numbers.end());
  }
  return words;
}

Result<void> GraphCall::check() const {
  return wire::checker(*this).result();
}

Result<void> GraphCall::check_parts(const Parts& parts) const {
  const auto known = known_graph(parts.data);
  if (!known) return known.error();
  const auto* const graph = known->get();
  auto checks = wire::checker(*this);
  std::size_t next = 0;
  for (const auto& tensor : graph->tensors()) {
    if (!tensor.in_memory()) continue;
    const auto& name = name_of_tensor(tensor.number);
    if (next == parts.tail.size()) return checks.require(false, name + " has no memory").result();
    const auto& operand = parts.tail[next++];
    const auto wanted = tensor.role == Role::input ? Access::read : Access::write;
    const bool whole = (operand.tag & kWhole) == 0 ||
                       (tensor.span() == tensor.volume() &&
                        operand.range.bytes ==
                            static_cast<std::uint64_t>(tensor.volume()) * size_of(tensor.dtype));
    checks
        .require((operand.tag & ~kWhole) == tensor.number && operand.access == wanted,
                 "an operand is out of order, or has the wrong access")
        .holds(name, operand.range, tensor.span(), size_of(tensor.dtype));
    // Words are made of what is wrong alone: a small call takes no longer than they do.
    if (operand.range.offset % kAlignment != 0)
      checks.require(false, name + " is not aligned to 16 bytes");
    if (!whole) checks.require(false, name + " is not whole");
  }
  return checks.require(next == parts.tail.size(), "it has memory for more tensors than it has")
      .result();
}

}  // namespace troupe::dnn

namespace troupe {

Future<void> DnnGraphs::run(const dnn::Graph& graph, std::span<const dnn::Bound> memory) const {
  using dnn::GraphCall;
  const auto refused = [&](const std::string& why) {
    return submitter_->refuse({Errc::invalid, 0, std::string(GraphCall::kName) + ": " + why});
  };
  const auto words = graph.words();
  if (!words) return submitter_->refuse(words.error());
  const auto data = std::as_bytes(std::span(*words));
  if (data.size() > GraphCall::kData) return refused("it is too large for a record");
  const auto known = dnn::known_graph(data);
  if (!known) return submitter_->refuse(known.error());
  const auto* const view = known->get();
  std::vector<TailOperand> tail;
  for (const auto& tensor : view->tensors()) {
    if (!tensor.in_memory()) continue;
    const auto found = std::find_if(memory.begin(), memory.end(), [&](const dnn::Bound& bound) {
      return bound.tensor.number == static_cast<std::int32_t>(tensor.number);
    });
    const auto& name = dnn::name_of_tensor(tensor.number);
    if (found == memory.end()) return refused(name + " has no memory");
    if (found->dtype != tensor.dtype) {
      return refused(name + " is of " + std::string(to_string(tensor.dtype)) + ", its memory of " +
                     std::string(to_string(found->dtype)));
    }
    const bool whole =
        tensor.span() == tensor.volume() &&
        found->range.bytes == static_cast<std::uint64_t>(tensor.volume()) * size_of(tensor.dtype);
    tail.push_back({found->range,
                    tensor.number | (whole ? GraphCall::kWhole : 0),
                    tensor.role == dnn::Role::input ? Access::read : Access::write,
                    {}});
  }
  if (tail.size() != memory.size())
    return refused("there is memory for a tensor that it does not read or write, or twice for one");
  return detail::submit(*submitter_, GraphCall{}, Parts(tail, data));
}

}  // namespace troupe
