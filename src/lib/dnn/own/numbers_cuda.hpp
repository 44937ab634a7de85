#pragma once

#include <cstddef>

#include "device_host/engine/cuda/library.hpp"
#include "lib/dnn/graph/view.hpp"
#include "lib/dnn/own/places.hpp"

/// Functions of single elements, reductions, and gradients of instance norms, by kernels of
/// troupe's own.
namespace troupe::host::cuda {

/// Whether a node is such.
bool is_own_number(const dnn::NodeView& node);

/// True if cuDNN 9.14 lacks it, in this graph. It has functions of single elements, but some of
/// them are others where numbers are not finite: alone, where there is nothing to fuse, these are
/// computed here. It adds up in an order that changes, it does not promise that the largest of
/// numbers is NaN where one is, and gradients of instance norms were seen to come out wrong; so
/// were tensors of three dimensions of which two extents are spread, where they are not all
/// row-major.
bool cudnn_lacks_number(const dnn::NodeView& node, const dnn::GraphView& graph);

/// How much memory a node needs while it is computed.
std::size_t scratch_of_number(const dnn::NodeView& node);

/// Queues such a node. `from`: where its tensors are.
Result<void> run_own_number(const kernels::Launch& launch, const dnn::NodeView& node,
                            const PlaceOf& from, void* scratch);

}  // namespace troupe::host::cuda
