#pragma once

#include <cudnn.h>

#include <troupe/lib/dnn/ctc.hpp>

#include "device_host/engine/cuda/library.hpp"

/// CTC losses as cuDNN computes them, by its deterministic algorithm.
namespace troupe::host::cuda {

/// Queues it on the handle's stream. Errors: unsupported (cuDNN has not this shape), out_of_memory,
/// library.
Result<void> ctc_loss(cudnnHandle_t handle, const dnn::CtcLoss& op, const Call& call,
                      Services& services, Workspace& workspace);

}  // namespace troupe::host::cuda
