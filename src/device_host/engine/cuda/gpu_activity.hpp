#pragma once

#include <cstdint>
#include <memory>

#include <troupe/error.hpp>

#include "device_host/engine/tracing.hpp"

namespace troupe::host::cuda {

/// What the GPU does for each command, as CUPTI tells it some time afterwards. One in a process.
class GpuActivity {
 public:
  virtual ~GpuActivity() = default;
  GpuActivity() = default;
  GpuActivity(const GpuActivity&) = delete;
  GpuActivity& operator=(const GpuActivity&) = delete;

  /// What this thread launches until end() belongs to the command.
  virtual void begin(std::uint64_t ticket) noexcept = 0;
  virtual void end() noexcept = 0;
};

/// Loads CUPTI. Errors: unsupported (troupe was built without its headers, there is no library, or
/// another tool has it).
Result<std::unique_ptr<GpuActivity>> watch_gpu(ActivitySink sink);

}  // namespace troupe::host::cuda
