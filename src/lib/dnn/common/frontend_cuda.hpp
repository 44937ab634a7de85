#pragma once

#include <cudnn.h>
#include <cudnn_frontend_shim.h>
#include <dlfcn.h>

// The frontend has kernels of its own, which nothing here uses. For these it needs NVRTC: loaded
// when it is used, which is never, instead of linked.
#define HMODULE void*
#define NV_CUDNN_FRONTEND_USE_DYNAMIC_LOADING
#include <cudnn_frontend/experimental/nvrtc_shim.h>
#undef NV_CUDNN_FRONTEND_USE_DYNAMIC_LOADING
#undef HMODULE

#include <cudnn_frontend.h>

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include <troupe/lib/dnn.hpp>

#include "lib/dnn/common/spatial.hpp"

/// cudnn-frontend, which takes a minute to compile: for the files that are compiled as one with it.
namespace troupe::host::cuda {

namespace fe = cudnn_frontend;
using fe::graph::Graph;
using Note = fe::NumericalNote_t;
using Tensor = std::shared_ptr<fe::graph::Tensor_attributes>;
using Numbers = std::vector<std::int64_t>;

/// A graph, and the engines that may not carry it out.
struct Described {
  std::unique_ptr<Graph> graph;
  std::vector<Note> barred;
};

Described describe(const dnn::Convolution& op, bool with_bias);
/// Errors: unsupported (cuDNN has no such node or type).
Result<Described> describe(const dnn::GraphView& view);

fe::DataType_t type_of(DType dtype);
/// Numbers of spatial dimensions as cuDNN takes them: it has two dimensions or three.
Numbers spatial_numbers(const dnn::PerDimension& numbers, std::size_t rank,
                        std::int64_t of_missing);
/// With sums and what is between in f32.
std::unique_ptr<Graph> graph_of(DType dtype);
/// The notes of algorithms that convolve with less than f32, or differently from one run to the
/// next.
std::vector<Note> barred_notes(DType dtype);

/// A node for cuDNN: its outputs, nullptr where the view has none. `inputs`: as many as the view
/// has, nullptr where there are none.
using Nodes = std::vector<Tensor>;
Nodes add_pointwise(Graph& graph, const dnn::NodeView& node, const Nodes& inputs);
Nodes add_reduction(Graph& graph, const dnn::NodeView& node, const Nodes& inputs);
Nodes add_convolution(Graph& graph, const dnn::NodeView& node, const Nodes& inputs);
/// The next ones add nothing where cuDNN has no such case, or none that is right.
Nodes add_matmul(Graph& graph, const dnn::NodeView& node, const Nodes& inputs);
Nodes add_pooling(Graph& graph, const dnn::NodeView& node, const Nodes& inputs);
Nodes add_resize(Graph& graph, const dnn::NodeView& node, const Nodes& inputs);
Nodes add_attention(Graph& graph, const dnn::NodeView& node, const Nodes& inputs);
Nodes add_attention_backward(Graph& graph, const dnn::NodeView& node, const Nodes& inputs);
Nodes add_norm(Graph& graph, const dnn::NodeView& node, const Nodes& inputs);
Nodes add_norm_backward(Graph& graph, const dnn::NodeView& node, const Nodes& inputs);
Nodes add_channel_sums(Graph& graph, const Nodes& inputs);

}  // namespace troupe::host::cuda
