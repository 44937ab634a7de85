#pragma once

#include <cstddef>

#include "device_host/engine/cuda/library.hpp"
#include "lib/dnn/graph_view.hpp"
#include "lib/dnn/own_graph_places.hpp"

/// Functions of single elements, reductions, and gradients of instance norms, by kernels of
/// troupe's own.
namespace troupe::host::cuda {

/// Whether a node is such.
bool is_own_number(const dnn::NodeView& node);

/// Whether cuDNN 9.14 lacks it, in this graph. It has functions of single elements; of reductions
/// the least and the largest of the channels, of all but the channels, and of all, where channels
/// vary fastest. It adds up in an order that changes, and gradients of instance norms were seen to
/// come out wrong; so were tensors of three dimensions, where they are not all row-major, in
/// reductions and of inputs of which two extents are spread.
bool cudnn_lacks_number(const dnn::NodeView& node, const dnn::GraphView& graph);

/// How much memory a node needs while it is computed.
std::size_t scratch_of_number(const dnn::NodeView& node);

/// Queues such a node. `from`: where its tensors are.
Result<void> run_own_number(const kernels::Launch& launch, const dnn::NodeView& node,
                            const PlaceOf& from, void* scratch);

}  // namespace troupe::host::cuda
