#pragma once

#include <span>

#include "device_host/engine/cuda/library.hpp"
#include "lib/dnn/graph_view.hpp"

/// Graphs of nodes that cuDNN 9.14 lacks, by kernels of troupe's own, node by node: those that move
/// elements, draw random numbers, or rotate.
namespace troupe::host::cuda {

/// Whether all nodes of a graph are such.
bool is_own(const dnn::GraphView& graph);

/// Queues it. `operands`: the addresses of its tensors in memory, in the order of their numbers.
/// What is between nodes lies in the workspace. Errors: unsupported (a type), out_of_memory.
Result<void> run_own(const dnn::GraphView& graph, std::span<void* const> operands,
                     Services& services, Queue queue, Workspace& workspace);

}  // namespace troupe::host::cuda
