#pragma once

#include <memory>

#include "device_host/engine/collective_half.hpp"
#include "device_host/engine/cuda/library.hpp"

namespace troupe::host::cuda {

/// An end of a channel over an NCCL communicator of two ranks, which makes use of GPUDirect where
/// there is it. `services` outlives it.
std::shared_ptr<ChannelEnd> make_channel_end(bool receives, const Services& services);

}  // namespace troupe::host::cuda
