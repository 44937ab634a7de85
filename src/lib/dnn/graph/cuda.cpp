#include <algorithm>
#include <exception>
#include <string>

#include "lib/dnn/attention/view.hpp"
#include "lib/dnn/common/frontend_cuda.hpp"
#include "lib/dnn/graph/plan_cuda.hpp"

/// Graphs of the program's own as graphs of cuDNN. What cuDNN calls a tensor is its number plus 1.
namespace troupe::host::cuda {
namespace {

using dnn::NodeKind;
using dnn::Role;
using dnn::TensorView;

Numbers numbers_of(std::span<const std::int64_t> list) {
  return {list.begin(), list.end()};
}

/// How the tensors of a graph are told to cuDNN.
///   pixels   tensors a, b, c, row-major, are a batch of a times b pixels with c channels.
///            Reductions want that, and inputs that spread twice: as tensors of three dimensions
///            they would come out wrong, without an error (seen with cuDNN 9.14).
///            is_own() has those that are not row-major.
///   widened  images of one spatial dimension get a second one, of extent 1: cuDNN has two or
///   three.
enum class Form { as_they_are, pixels, widened };

Form form_of(const dnn::GraphView& view) {
  const auto any = [&](auto predicate) { return std::ranges::any_of(view.nodes(), predicate); };
  const auto of_elements = [](const dnn::NodeView& node) {
    return node.kind == NodeKind::pointwise || node.kind == NodeKind::reduction;
  };
  // Others take dimensions by their place.
  const bool others = any([&](const dnn::NodeView& node) {
    return !of_elements(node) && !dnn::is_of_images(node.kind);
  });
  if (others) return Form::as_they_are;
  if (any([](const dnn::NodeView& node) { return dnn::is_of_images(node.kind); })) {
    const bool lines = any([](const dnn::NodeView& node) {
      return dnn::is_of_images(node.kind) && node.outputs[0]->rank() == 3;
    });
    return lines ? Form::widened : Form::as_they_are;
  }
  const bool spread = any([](const dnn::NodeView& node) {
    return node.kind == NodeKind::pointwise && node.outputs[0]->rank() <= 3 &&
           dnn::spreads_twice(node);
  });
  const bool reduced =
      any([](const dnn::NodeView& node) { return node.kind == NodeKind::reduction; });
  const bool pixels = (spread || reduced) && std::ranges::all_of(view.tensors(), dnn::is_row_major);
  return pixels ? Form::pixels : Form::as_they_are;
}

/// What a tensor is whatever its role.
void set_shape(fe::graph::Tensor_attributes& tensor, const TensorView& view, Form form) {
  auto extents = numbers_of(view.extents), strides = numbers_of(view.strides);
  if (form == Form::pixels) {
    extents.insert(extents.begin(), 3 - view.rank(), 1);
    const auto rows = extents[1], channels = extents[2];
    extents = {extents[0], channels, rows, 1};
    strides = {rows * channels, 1, channels, channels};
  } else if (form == Form::widened && extents.size() == 3) {
    strides.insert(strides.begin() + 2, strides[2] * extents[2]);
    extents.insert(extents.begin() + 2, 1);
  }
  tensor.set_dim(extents)
      .set_stride(strides)
      .set_data_type(type_of(view.dtype))
      .set_uid(std::int64_t{view.number} + 1);
}

/// A tensor that is there before any node.
Tensor given(Graph& graph, const TensorView& view, Form form) {
  if (view.role == Role::constant) {
    fe::graph::Tensor_attributes constant(view.value);
    set_shape(constant, view, form);
    return graph.tensor(constant);
  }
  fe::graph::Tensor_attributes tensor;
  set_shape(tensor, view, form);
  return graph.tensor(tensor);
}

Nodes add(Graph& graph, const dnn::NodeView& node, const Nodes& inputs) {
  switch (node.kind) {
    case NodeKind::pointwise: return add_pointwise(graph, node, inputs);
    case NodeKind::reduction: return add_reduction(graph, node, inputs);
    case NodeKind::convolution:
    case NodeKind::convolution_data:
    case NodeKind::convolution_filter: return add_convolution(graph, node, inputs);
    case NodeKind::matmul: return add_matmul(graph, node, inputs);
    case NodeKind::pooling: return add_pooling(graph, node, inputs);
    case NodeKind::resize: return add_resize(graph, node, inputs);
    case NodeKind::pooling_backward:
    case NodeKind::resize_backward: return {};
    case NodeKind::attention: return add_attention(graph, node, inputs);
    case NodeKind::attention_backward: return add_attention_backward(graph, node, inputs);
    case NodeKind::norm: return add_norm(graph, node, inputs);
    case NodeKind::norm_backward: return add_norm_backward(graph, node, inputs);
    case NodeKind::reshape:
    case NodeKind::transpose:
    case NodeKind::slice:
    case NodeKind::concatenate:
    case NodeKind::dropout:
    case NodeKind::sink_backward:
    case NodeKind::rotary: return {};
    case NodeKind::channel_sums: return add_channel_sums(graph, inputs);
  }
  return {};
}

/// Whether a node adds up products of elements, which cuDNN might do in a narrower type.
bool multiplies(NodeKind kind) {
  switch (kind) {
    case NodeKind::convolution:
    case NodeKind::convolution_data:
    case NodeKind::convolution_filter:
    case NodeKind::matmul: return true;
    default: return false;
  }
}

/// The notes of algorithms that may not carry out a graph.
std::vector<Note> barred_in(const dnn::GraphView& graph) {
  std::vector<Note> barred{Note::NONDETERMINISTIC};
  for (const auto& node : graph.nodes()) {
    if (node.kind == NodeKind::attention || node.kind == NodeKind::attention_backward) {
      if (node.inputs[0]->dtype == DType::f32) return barred_notes(DType::f32);
      continue;  // others of its inputs are f32 in any case
    }
    if (!multiplies(node.kind)) continue;
    const bool wide = std::any_of(
        node.inputs.begin(), node.inputs.end(),
        [](const TensorView* input) { return input != nullptr && input->dtype == DType::f32; });
    if (wide) return barred_notes(DType::f32);
    barred = barred_notes(node.inputs[0]->dtype);
  }
  return barred;
}

}  // namespace

Result<Fills> fills_of(const dnn::GraphView& view) {
  Fills fills;
  std::vector<std::size_t> places(view.tensors().size());
  std::size_t next = 0;
  for (const auto& tensor : view.tensors()) {
    if (tensor.in_memory()) places[tensor.number] = next++;
  }
  for (const auto& node : view.nodes()) {
    if (node.kind != NodeKind::attention && node.kind != NodeKind::attention_backward) continue;
    if (dnn::AttentionView(node).length_q == nullptr) continue;
    fills.workspace = fills.workspace || node.kind == NodeKind::attention_backward;
    for (std::size_t i = 0; i < node.outputs.size(); ++i) {
      const auto* const output = node.outputs[i];
      if (output == nullptr || output->role != Role::output) continue;
      if (output->span() != output->volume()) {
        return Error{Errc::unsupported, 0,
                     std::string(dnn::GraphCall::kName) +
                         ": cuDNN leaves out what a sequence of no queries has of an output, and "
                         "this one has gaps"};
      }
      // The logarithm of a sum of nothing.
      const bool is_stats = node.kind == NodeKind::attention && i == 1;
      fills.outputs.push_back(
          {places[output->number],
           static_cast<std::uint64_t>(output->volume()) * size_of(output->dtype),
           is_stats ? 0xff80'0000u : 0u});
    }
  }
  return fills;
}

fe::DataType_t type_of(DType dtype) {
  switch (dtype) {
    case DType::f16: return fe::DataType_t::HALF;
    case DType::bf16: return fe::DataType_t::BFLOAT16;
    case DType::f32: return fe::DataType_t::FLOAT;
    case DType::f64: return fe::DataType_t::DOUBLE;
    case DType::f8e4m3: return fe::DataType_t::FP8_E4M3;
    case DType::f8e5m2: return fe::DataType_t::FP8_E5M2;
    case DType::i8: return fe::DataType_t::INT8;
    case DType::u8: return fe::DataType_t::UINT8;
    case DType::i32: return fe::DataType_t::INT32;
    case DType::i64: return fe::DataType_t::INT64;
    default: return fe::DataType_t::NOT_SET;
  }
}

Numbers spatial_numbers(const dnn::PerDimension& numbers, std::size_t rank,
                        std::int64_t of_missing) {
  Numbers all(numbers.begin(), numbers.begin() + static_cast<std::ptrdiff_t>(rank));
  if (rank == 1) all.insert(all.begin(), of_missing);
  return all;
}

std::unique_ptr<Graph> graph_of(DType dtype) {
  auto graph = std::make_unique<Graph>();
  graph->set_io_data_type(type_of(dtype))
      .set_intermediate_data_type(fe::DataType_t::FLOAT)
      .set_compute_data_type(fe::DataType_t::FLOAT);
  return graph;
}

Result<Described> describe(const dnn::GraphView& view) {
  auto graph = graph_of(DType::f32);
  const auto form = form_of(view);
  Nodes tensors(view.tensors().size());
  for (const auto& tensor : view.tensors()) {
    if (type_of(tensor.dtype) == fe::DataType_t::NOT_SET) {
      return Error{Errc::unsupported, 0,
                   std::string(dnn::GraphCall::kName) + ": cuDNN has no tensors of " +
                       std::string(to_string(tensor.dtype))};
    }
    if (tensor.role == Role::input || tensor.role == Role::constant)
      tensors[tensor.number] = given(*graph, tensor, form);
  }
  for (const auto& node : view.nodes()) {
    Nodes inputs;
    for (const auto* const input : node.inputs)
      inputs.push_back(input == nullptr ? nullptr : tensors[input->number]);
    const auto made = add(*graph, node, inputs);
    for (std::size_t i = 0; i < node.outputs.size(); ++i) {
      const auto* const output = node.outputs[i];
      if (output == nullptr) continue;
      if (i >= made.size() || made[i] == nullptr) {
        return Error{Errc::unsupported, 0,
                     std::string(dnn::GraphCall::kName) + ": cuDNN has no node " +
                         std::string(definition_of(node.kind)->name) + " for such tensors"};
      }
      set_shape(*made[i], *output, form);
      if (output->role == Role::output) made[i]->set_output(true);
      tensors[output->number] = made[i];
    }
  }
  return Described{std::move(graph), barred_in(view)};
}

}  // namespace troupe::host::cuda
