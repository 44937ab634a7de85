#include <algorithm>
#include <exception>
#include <string>

#include "lib/dnn/frontend_cuda.hpp"

/// Graphs of the program's own as graphs of cuDNN. What cuDNN calls a tensor is its number plus 1.
namespace troupe::host::cuda {
namespace {

using dnn::NodeKind;
using dnn::Role;
using dnn::TensorView;

Numbers numbers_of(std::span<const std::int64_t> list) {
  return {list.begin(), list.end()};
}

/// What a tensor is whatever its role.
void set_shape(fe::graph::Tensor_attributes& tensor, const TensorView& view) {
  tensor.set_dim(numbers_of(view.extents))
      .set_stride(numbers_of(view.strides))
      .set_data_type(type_of(view.dtype))
      .set_uid(std::int64_t{view.number} + 1);
}

/// A tensor that is there before any node.
Tensor given(Graph& graph, const TensorView& view) {
  if (view.role == Role::constant) {
    fe::graph::Tensor_attributes constant(view.value);
    set_shape(constant, view);
    return graph.tensor(constant);
  }
  fe::graph::Tensor_attributes tensor;
  set_shape(tensor, view);
  return graph.tensor(tensor);
}

Nodes add(Graph& graph, const dnn::NodeView& node, const Nodes& inputs) {
  switch (node.kind) {
    case NodeKind::pointwise: return add_pointwise(graph, node, inputs);
    case NodeKind::reduction: return add_reduction(graph, node, inputs);
    case NodeKind::norm: return add_norm(graph, node, inputs);
    case NodeKind::norm_backward: return add_norm_backward(graph, node, inputs);
  }
  return {};
}

/// Whether a graph multiplies and adds f32, which tensor cores would do in tf32.
bool multiplies_f32(const dnn::GraphView&) {
  return false;  // no such node yet
}

}  // namespace

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

std::unique_ptr<Graph> graph_of(DType dtype) {
  auto graph = std::make_unique<Graph>();
  graph->set_io_data_type(type_of(dtype))
      .set_intermediate_data_type(fe::DataType_t::FLOAT)
      .set_compute_data_type(fe::DataType_t::FLOAT);
  return graph;
}

Result<Described> describe(const dnn::GraphView& view) {
  auto graph = graph_of(DType::f32);
  Nodes tensors(view.tensors().size());
  for (const auto& tensor : view.tensors()) {
    if (type_of(tensor.dtype) == fe::DataType_t::NOT_SET) {
      return Error{Errc::unsupported, 0,
                   std::string(dnn::GraphCall::kName) + ": cuDNN has no tensors of " +
                       std::string(to_string(tensor.dtype))};
    }
    if (tensor.role == Role::input || tensor.role == Role::constant)
      tensors[tensor.number] = given(*graph, tensor);
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
                         std::string(definition_of(node.kind)->name)};
      }
      set_shape(*made[i], *output);
      if (output->role == Role::output) made[i]->set_output(true);
      tensors[output->number] = made[i];
    }
  }
  std::vector<Note> barred{Note::NONDETERMINISTIC};
  if (multiplies_f32(view)) barred = barred_notes(DType::f32);
  return Described{std::move(graph), std::move(barred)};
}

}  // namespace troupe::host::cuda
