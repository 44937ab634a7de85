#pragma once

#include <cudnn.h>

#include <troupe/lib/dnn/softmax.hpp>

/// Softmax as cuDNN computes it without a graph, the same bits in every run.
namespace troupe::host::cuda {

/// Queues it on the handle's stream. Errors: unsupported (extent * inner is too large), library.
Result<void> softmax(cudnnHandle_t handle, const dnn::Softmax& op, const std::byte* x,
                     std::byte* y);
Result<void> softmax_backward(cudnnHandle_t handle, const dnn::SoftmaxBackward& op,
                              const std::byte* y, const std::byte* dy, std::byte* dx);

}  // namespace troupe::host::cuda
