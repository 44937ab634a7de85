#pragma once

#include <functional>

#include "device_host/engine/cuda/library.hpp"
#include "lib/dnn/graph/view.hpp"
#include "lib/dnn/own/graph_kernels.cuh"

/// Nodes of images by kernels of troupe's own: pooling, other sizes, and the gradients of both.
namespace troupe::host::cuda {

/// Whether a node of this kind is such a one.
bool is_own_spatial(dnn::NodeKind kind) noexcept;

/// Whether cuDNN 9.14 lacks such a node. It has no gradients of them, makes wrong numbers of a
/// pooling of bf16 without an error, and resizes in one case alone: see dnn/resize.hpp.
bool cudnn_lacks_spatial(const dnn::NodeView& node);

/// Queues such a node. `memory`: where a tensor begins, and what its elements are stored as.
Result<void> run_own_spatial(
    const kernels::Launch& launch, const dnn::NodeView& node,
    const std::function<kernels::Elements(const dnn::TensorView*)>& memory);

}  // namespace troupe::host::cuda
