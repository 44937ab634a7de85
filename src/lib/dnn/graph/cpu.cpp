#include "lib/dnn/graph/cpu.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <memory>
#include <string>

#include "common/core/narrow.hpp"

namespace troupe::dnn {
namespace {

using Compute = void (*)(const NodeView& node, Contents& contents);

/// nullptr: this engine has no such node.
Compute compute_of(NodeKind kind) {
  switch (kind) {
    case NodeKind::pointwise: return &compute_pointwise;
    case NodeKind::reduction: return &compute_reduction;
    case NodeKind::convolution:
    case NodeKind::convolution_data:
    case NodeKind::convolution_filter: return &compute_convolution;
    case NodeKind::matmul: return &compute_matmul;
    case NodeKind::pooling: return &compute_pooling;
    case NodeKind::pooling_backward: return &compute_pooling_backward;
    case NodeKind::resize:
    case NodeKind::resize_backward: return &compute_resize;
    case NodeKind::attention: return &compute_attention;
    case NodeKind::attention_backward: return &compute_attention_backward;
    case NodeKind::norm: return &compute_norm;
    case NodeKind::norm_backward: return &compute_norm_backward;
    case NodeKind::reshape: return &compute_reshape;
    case NodeKind::transpose: return &compute_transpose;
    case NodeKind::slice: return &compute_slice;
    case NodeKind::concatenate: return &compute_concatenate;
    case NodeKind::dropout: return &compute_dropout;
    case NodeKind::sink_backward: return &compute_sink_backward;
    case NodeKind::rotary: return &compute_rotary;
    case NodeKind::channel_sums: return &compute_channel_sums;
  }
  return nullptr;
}

/// Calls visit(T{}) for the type of a tensor in memory; false: there is no such type here.
template <class Visit>
bool with_type(DType dtype, const Visit& visit) {
  switch (dtype) {
    case DType::f16: return visit(Half{}), true;
    case DType::bf16: return visit(BFloat16{}), true;
    case DType::f32: return visit(float{}), true;
    case DType::i8: return visit(std::int8_t{}), true;
    case DType::u8: return visit(std::uint8_t{}), true;
    case DType::i32: return visit(std::int32_t{}), true;
    case DType::i64: return visit(std::int64_t{}), true;
    default: return false;
  }
}

Steps steps_of(const TensorView& tensor) {
  Steps steps{};
  std::copy(tensor.strides.begin(), tensor.strides.end(), steps.begin());
  return steps;
}

void load(const TensorView& tensor, const std::byte* memory, Content& content) {
  const auto count = static_cast<std::size_t>(tensor.volume());
  content.reals.resize(count);
  with_type(tensor.dtype, [&]<class T>(T) {
    const auto* const from = reinterpret_cast<const T*>(memory);
    if constexpr (std::is_integral_v<T>) content.integers.resize(count);
    std::size_t next = 0;
    for_each_place<1>(tensor.extents, {steps_of(tensor)}, [&](const auto& places) {
      if constexpr (std::is_integral_v<T>) {
        content.integers[next] = from[places[0]];
        content.reals[next++] = static_cast<float>(from[places[0]]);
      } else {
        content.reals[next++] = to_float(from[places[0]]);
      }
    });
  });
}

/// Rounded to the nearest, ties to even; what is beyond the type becomes its largest or least.
template <class T>
T integer_of(float value) {
  constexpr auto kLeast = std::numeric_limits<T>::min(), kMost = std::numeric_limits<T>::max();
  if (std::isnan(value)) return 0;
  if (value <= static_cast<float>(kLeast)) return kLeast;
  if (value >= static_cast<float>(kMost)) return kMost;
  return static_cast<T>(std::nearbyint(value));
}

void store(const TensorView& tensor, const Content& content, std::byte* memory) {
  with_type(tensor.dtype, [&]<class T>(T) {
    auto* const to = reinterpret_cast<T*>(memory);
    std::size_t next = 0;
    for_each_place<1>(tensor.extents, {steps_of(tensor)}, [&](const auto& places) {
      if constexpr (std::is_integral_v<T>) {
        to[places[0]] = content.integers.empty() ? integer_of<T>(content.reals[next])
                                                 : static_cast<T>(content.integers[next]);
      } else {
        to[places[0]] = from_float<T>(content.reals[next]);
      }
      ++next;
    });
  });
}

}  // namespace

Steps row_major_steps(std::span<const std::int64_t> extents) {
  Steps steps{};
  std::int64_t step = 1;
  for (auto i = extents.size(); i-- > 0;) {
    steps[i] = extents[i] == 1 ? 0 : step;
    step *= extents[i];
  }
  return steps;
}

Result<std::function<void()>> work_of(std::span<const std::byte> words,
                                      std::vector<std::byte*> memory, int threads) {
  const auto known = known_graph(words);
  if (!known) return known.error();
  const auto unsupported = [](const std::string& what) {
    return Error{Errc::unsupported, 0,
                 std::string(GraphCall::kName) + ": the cpu engine has no " + what};
  };
  for (const auto& tensor : (*known)->tensors()) {
    if (!with_type(tensor.dtype, [](auto) {}))
      return unsupported("tensors of " + std::string(to_string(tensor.dtype)));
  }
  for (const auto& node : (*known)->nodes()) {
    const auto compute = compute_of(node.kind);
    if (compute == nullptr)
      return unsupported("node " + std::string(definition_of(node.kind)->name));
    if (compute == &compute_convolution && !convolves()) {
      return Error{
          Errc::unsupported, 0,
          std::string(GraphCall::kName) + ": not installed: troupe was built without libdnnl-dev"};
    }
  }
  return std::function<void()>([graph = *known, memory = std::move(memory), threads] {
    const auto tensors = graph->tensors();
    Contents contents(tensors.size(), threads);
    std::size_t next = 0;
    std::vector<std::byte*> places(tensors.size());
    for (const auto& tensor : tensors) {
      if (tensor.in_memory()) places[tensor.number] = memory[next++];
      if (tensor.role == Role::input) load(tensor, places[tensor.number], contents[&tensor]);
      if (tensor.role == Role::constant) contents[&tensor].reals = {tensor.value};
    }
    for (const auto& node : graph->nodes()) compute_of(node.kind)(node, contents);
    for (const auto& tensor : tensors) {
      if (tensor.role == Role::output) store(tensor, contents[&tensor], places[tensor.number]);
    }
  });
}

}  // namespace troupe::dnn
