#pragma once

#include "device_host/engine/cuda/driver.hpp"
#include "device_host/engine/engine.hpp"

namespace troupe::host::cuda {

/// What the engine must know of its device; found without a context.
struct DeviceFacts {
  int compute_major = 0, compute_minor = 0;
  int multiprocessors = 0;
  bool shares_memory = false;  ///< memory can be mapped and exported as file descriptors
  bool rdma = false;           ///< such memory can be made for GPUDirect RDMA
};

/// How many devices this process can see.
Result<int> count_devices(const Driver& api);
/// Name, UUID, … and library versions of a device. Makes no context. Any thread.
Result<DeviceInfo> describe_device(const Driver& api, int ordinal);
Result<DeviceFacts> facts_of_device(const Driver& api, int ordinal);

}  // namespace troupe::host::cuda
