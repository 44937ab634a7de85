#include "lib/dnn/graph/view.hpp"
#include "lib/dnn/attention/view.hpp"
#include "lib/dnn/graph/node_tensors.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <string>

#include <troupe/lib/dnn/moving.hpp>

#include "common/core/mix.hpp"
#include "common/wire/checker.hpp"

namespace troupe::dnn {
namespace {

/// Takes words one by one; knows when there are no more.
class Reader {
 public:
  explicit Reader(std::span<const std::int64_t> words) : words_(words) {}
  [[nodiscard]] std::int64_t next() {
    const auto word = list(1);
    return word.empty() ? 0 : word[0];
  }
  [[nodiscard]] std::span<const std::int64_t> list(std::size_t count) {
    if (count > words_.size()) {
      short_ = true;
      return {};
    }
    const auto taken = words_.first(count);
    words_ = words_.subspan(count);
    return taken;
  }
  [[nodiscard]] bool ended_early() const noexcept { return short_; }
  [[nodiscard]] bool at_end() const noexcept { return words_.empty() && !short_; }

 private:
  std::span<const std::int64_t> words_;
  bool short_ = false;
};

Error wrong(const std::string& what) {
  return {Errc::invalid, 0, std::string(GraphCall::kName) + ": " + what};
}
std::string name_of(const TensorView& tensor) {
  return "tensor " + std::to_string(tensor.number);
}

/// Part of a word: `bits` of them from `first` on.
std::uint64_t part(std::int64_t word, unsigned first, unsigned bits) {
  return static_cast<std::uint64_t>(word) >> first & ((std::uint64_t{1} << bits) - 1);
}

/// Whether different elements have different places: along dimensions by growing strides, each
/// stride is beyond what the ones before it reach.
bool apart(const TensorView& tensor) {
  std::array<std::pair<std::int64_t, std::int64_t>, Graph::kMaxRank> by_stride;
  std::size_t count = 0;
  for (std::size_t i = 0; i < tensor.rank(); ++i) {
    if (tensor.extents[i] > 1) by_stride[count++] = {tensor.strides[i], tensor.extents[i]};
  }
  std::sort(by_stride.begin(), by_stride.begin() + count);
  std::int64_t reach = 0;
  for (std::size_t i = 0; i < count; ++i) {
    if (by_stride[i].first <= reach) return false;
    reach += by_stride[i].first * (by_stride[i].second - 1);  // span() is bounded
  }
  return true;
}

Result<void> check_tensor(const TensorView& tensor) {
  constexpr std::int64_t kTooLong = std::int64_t{1} << 31;
  if (static_cast<std::size_t>(tensor.dtype) >= kDTypeCount)
    return wrong(name_of(tensor) + " has an unknown dtype");
  if (tensor.role > Role::constant) return wrong(name_of(tensor) + " has an unknown role");
  for (const auto extent : tensor.extents) {
    if (extent < 1 || extent >= kTooLong)
      return wrong("an extent of " + name_of(tensor) + " is not positive, or too large");
    if (tensor.role == Role::constant && extent != 1)
      return wrong(name_of(tensor) + " is a constant with an extent that is not 1");
  }
  for (const auto stride : tensor.strides) {
    if (stride < 0 || stride > wire::Checker::kMaxCount)
      return wrong("a stride of " + name_of(tensor) + " is negative or too large");
  }
  if (tensor.span() > wire::Checker::kMaxCount) return wrong(name_of(tensor) + " is too large");
  if (tensor.role != Role::input && !apart(tensor))
    return wrong("elements of " + name_of(tensor) + " share a place");
  return {};
}

}  // namespace

std::int64_t TensorView::volume() const noexcept {
  std::int64_t elements = 1;
  for (const auto extent : extents) {
    if (__builtin_mul_overflow(elements, extent, &elements)) return wire::Checker::kMaxCount + 1;
  }
  return elements;
}

std::int64_t TensorView::span() const noexcept {
  std::int64_t elements = 1;
  for (std::size_t i = 0; i < extents.size(); ++i) {
    std::int64_t reach = 0;
    if (__builtin_mul_overflow(extents[i] - 1, strides[i], &reach) ||
        __builtin_add_overflow(elements, reach, &elements)) {
      return wire::Checker::kMaxCount + 1;
    }
  }
  return elements;
}

float NodeView::real(std::size_t i) const noexcept {
  return std::bit_cast<float>(static_cast<std::uint32_t>(numbers[i]));
}
std::int64_t word_of(float number) noexcept {
  return std::bit_cast<std::uint32_t>(number);
}

bool same_extents(const TensorView& a, const TensorView& b) noexcept {
  return std::equal(a.extents.begin(), a.extents.end(), b.extents.begin(), b.extents.end());
}
bool broadcasts(const TensorView& from, const TensorView& to) noexcept {
  return std::equal(from.extents.begin(), from.extents.end(), to.extents.begin(), to.extents.end(),
                    [](std::int64_t one, std::int64_t other) { return one == other || one == 1; });
}

bool is_row_major(const TensorView& view) noexcept {
  std::int64_t stride = 1;
  for (auto i = view.rank(); i-- > 0; stride *= view.extents[i]) {
    if (view.extents[i] != 1 && view.strides[i] != stride) return false;
  }
  return view.rank() <= 3;
}
bool spreads_twice(const NodeView& node) noexcept {
  const auto& result = *node.outputs[0];
  return std::ranges::any_of(node.inputs, [&](const TensorView* input) {
    if (input == nullptr || input->volume() == 1) return false;
    int spread = 0;
    for (std::size_t i = 0; i < result.rank(); ++i)
      spread += input->extents[i] == 1 && result.extents[i] != 1 ? 1 : 0;
    return spread > 1;
  });
}

const NodeDefinition* definition_of(NodeKind kind) noexcept {
  using of_node::kCount;
  static constexpr NodeDefinition kDefinitions[] = {
      {"pointwise", kCount<of_node::PointwiseInputs>, 1, 1, 1, 5, &wrong_pointwise},
      {"reduction", 1, 1, 1, 1, 1, &wrong_reduction},
      {"convolution", kCount<of_node::ConvolutionInputs>, 2, 1, 1, 12, &wrong_convolution},
      {"convolution_data", kCount<of_node::ConvolutionDataInputs>, 2, 1, 1, 12, &wrong_convolution},
      {"convolution_filter", kCount<of_node::ConvolutionFilterInputs>, 2, 1, 1, 12,
       &wrong_convolution},
      {"matmul", kCount<of_node::MatmulInputs>, 2, 1, 1, 0, &wrong_matmul},
      {"pooling", 1, 1, kCount<of_node::PoolingOutputs>, 1, 13, &wrong_pooling},
      {"pooling_backward", kCount<of_node::PoolingBackwardInputs>, 1, 1, 1, 13, &wrong_pooling},
      {"resize", 1, 1, 1, 1, 2, &wrong_resize},
      {"resize_backward", 1, 1, 1, 1, 2, &wrong_resize},
      {"attention", kCount<of_node::AttentionInputs>, 3, kCount<of_node::AttentionOutputs>, 1,
       AttentionView::kNumbers, &wrong_attention},
      {"attention_backward", kCount<of_node::AttentionBackwardInputs>, 6,
       kCount<of_node::AttentionBackwardOutputs>, 3, AttentionView::kNumbers,
       &wrong_attention_backward},
      {"norm", kCount<of_node::NormInputs>, 3, kCount<of_node::NormOutputs>, 1, 1, &wrong_norm},
      {"norm_backward", kCount<of_node::NormBackwardInputs>, 4,
       kCount<of_node::NormBackwardOutputs>, 2, 1, &wrong_norm_backward},
      {"reshape", 1, 1, 1, 1, 0, &wrong_reshape},
      {"transpose", 1, 1, 1, 1, Graph::kMaxRank, &wrong_transpose},
      {"slice", 1, 1, 1, 1, 2 * Graph::kMaxRank, &wrong_slice},
      {"concatenate", kMaxParts, 1, 1, 1, 1, &wrong_concatenate},
      {"dropout", kCount<of_node::DropoutInputs>, 0, kCount<of_node::DropoutOutputs>, 0, 3,
       &wrong_dropout},
      {"sink_backward", kCount<of_node::SinkBackwardInputs>, 4, 1, 1, 0, &wrong_sink_backward},
      {"rotary", kCount<of_node::RotaryInputs>, 3, 1, 1, 2, &wrong_rotary},
      {"channel_sums", 1, 1, kCount<of_node::ChannelSumsOutputs>, 2, 0, &wrong_channel_sums},
  };
  const auto index = static_cast<std::size_t>(kind);
  return index < std::size(kDefinitions) ? &kDefinitions[index] : nullptr;
}

Result<GraphView> GraphView::of(std::span<const std::byte> words) {
  if (words.size() % sizeof(std::int64_t) != 0) return wrong("its words are cut off");
  GraphView view;
  if (auto read = view.read({reinterpret_cast<const std::int64_t*>(words.data()),
                             words.size() / sizeof(std::int64_t)});
      !read) {
    return read.error();
  }
  return view;
}

Result<void> GraphView::read(std::span<const std::int64_t> words) {
  Reader reader(words);
  const auto counts = reader.next();
  const auto tensors = part(counts, 0, 32), nodes = part(counts, 32, 32);
  if (tensors > Graph::kMaxTensors || nodes > Graph::kMaxNodes || nodes == 0)
    return wrong("it has no node, or too many tensors or nodes");
  tensors_.reserve(tensors);
  std::array<bool, Graph::kMaxTensors> made{};
  for (std::uint32_t i = 0; i < tensors; ++i) {
    const auto head = reader.next();
    TensorView tensor{i,
                      static_cast<DType>(part(head, 0, 8)),
                      static_cast<Role>(part(head, 8, 8)),
                      {},
                      {},
                      std::bit_cast<float>(static_cast<std::uint32_t>(part(head, 32, 32)))};
    const auto rank = part(head, 16, 16);
    if (rank < 1 || rank > Graph::kMaxRank)
      return wrong(name_of(tensor) + " has no dimension, or too many");
    tensor.extents = reader.list(rank);
    tensor.strides = reader.list(rank);
    if (reader.ended_early()) break;
    if (auto sound = check_tensor(tensor); !sound) return sound;
    made[i] = tensor.role == Role::input || tensor.role == Role::constant;
    tensors_.push_back(tensor);
  }
  nodes_.reserve(nodes);
  for (std::uint64_t i = 0; i < nodes && !reader.ended_early(); ++i) {
    const auto head = reader.next();
    NodeView node{static_cast<NodeKind>(part(head, 0, 16)), {}, {}, {}};
    const auto* const definition = definition_of(node.kind);
    if (definition == nullptr) return wrong("it has an unknown kind of node");
    const auto fail = [&](const std::string& what) {
      return wrong(std::string(definition->name) + ": " + what);
    };
    const auto inputs = reader.list(part(head, 16, 16)), outputs = reader.list(part(head, 32, 16));
    node.numbers = reader.list(part(head, 48, 16));
    if (reader.ended_early()) break;
    const auto known = [&](std::int64_t number) {
      return number >= -1 && number < std::ssize(tensors_);
    };
    node.inputs.reserve(inputs.size());
    node.outputs.reserve(outputs.size());
    for (const auto number : inputs) {
      if (!known(number) || (number >= 0 && !made[static_cast<std::size_t>(number)]))
        return fail("an input is no tensor, or made by no earlier node");
      node.inputs.push_back(number < 0 ? nullptr : &tensors_[static_cast<std::size_t>(number)]);
    }
    for (const auto number : outputs) {
      if (!known(number) ||
          (number >= 0 && std::exchange(made[static_cast<std::size_t>(number)], true)))
        return fail("an output is no tensor, or made elsewhere as well");
      node.outputs.push_back(number < 0 ? nullptr : &tensors_[static_cast<std::size_t>(number)]);
    }
    const auto present = [](const std::vector<const TensorView*>& list, std::size_t required) {
      return std::all_of(list.begin(), list.begin() + static_cast<std::ptrdiff_t>(required),
                         [](const TensorView* tensor) { return tensor != nullptr; });
    };
    if (node.inputs.size() != definition->inputs || node.outputs.size() != definition->outputs ||
        node.numbers.size() != definition->numbers ||
        !present(node.inputs, definition->required_inputs) ||
        !present(node.outputs, definition->required_outputs)) {
      return fail("it lacks an input, an output or a number");
    }
    if (const auto message = definition->wrong(node); !message.empty()) return fail(message);
    nodes_.push_back(std::move(node));
  }
  if (!reader.at_end()) return wrong("its words are cut off, or there are too many");
  for (const auto& tensor : tensors_) {
    if (!made[tensor.number]) return wrong(name_of(tensor) + " is made by no node");
  }
  if (std::none_of(tensors_.begin(), tensors_.end(),
                   [](const TensorView& tensor) { return tensor.role == Role::output; })) {
    return wrong("it has no output");
  }
  return {};
}

namespace {

struct KnownGraph {
  std::vector<std::byte> words;
  GraphView view;  ///< of these words
};
/// Each has the one place that its words give it.
thread_local std::array<std::shared_ptr<const KnownGraph>, 256> known_graphs;

}  // namespace

Result<std::shared_ptr<const GraphView>> known_graph(std::span<const std::byte> words) {
  Mix mix;
  mix.add(words);
  auto& known = known_graphs[mix.value() % known_graphs.size()];
  if (!known || known->words.size() != words.size() ||
      std::memcmp(known->words.data(), words.data(), words.size()) != 0) {
    auto read = std::make_shared<KnownGraph>();
    read->words.assign(words.begin(), words.end());
    auto view = GraphView::of(read->words);
    if (!view) return view.error();
    read->view = std::move(*view);
    known = std::move(read);
  }
  return std::shared_ptr<const GraphView>(known, &known->view);
}

}  // namespace troupe::dnn
