#pragma once

#include <span>

#include "device_host/engine/cuda/library.hpp"
#include "lib/dnn/graph/view.hpp"

/// Graphs with nodes that cuDNN 9.14 lacks, by kernels of troupe's own, node by node: those that
/// move elements, draw random numbers, or rotate, most reductions, gradients of instance norms, and
/// those of images but convolutions; and functions of single elements beside them.
namespace troupe::host::cuda {

/// Whether all nodes of a graph have such a kernel.
bool has_own_kernels(const dnn::GraphView& graph);
/// Whether they have, and cuDNN is known to lack one of them.
bool is_own(const dnn::GraphView& graph);

/// Queues it. `operands`: the addresses of its tensors in memory, in the order of their numbers.
/// What is between nodes lies in the workspace. Errors: unsupported (a type), out_of_memory.
Result<void> run_own(const dnn::GraphView& graph, std::span<void* const> operands,
                     Services& services, Queue queue, Workspace& workspace);

}  // namespace troupe::host::cuda
