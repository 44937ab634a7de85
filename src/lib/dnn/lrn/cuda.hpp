#pragma once

#include <cudnn.h>

#include <troupe/lib/dnn/lrn.hpp>

/// Local response normalisation as cuDNN computes it without a graph.
namespace troupe::host::cuda {

/// Queues it on the handle's stream. Errors: unsupported (extent * inner is too large), library.
Result<void> lrn(cudnnHandle_t handle, const dnn::Lrn& op, const std::byte* x, std::byte* y);
Result<void> lrn_backward(cudnnHandle_t handle, const dnn::LrnBackward& op, const std::byte* x,
                          const std::byte* y, const std::byte* dy, std::byte* dx);

}  // namespace troupe::host::cuda
