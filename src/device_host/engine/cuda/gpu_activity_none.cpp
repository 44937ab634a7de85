#include "device_host/engine/cuda/gpu_activity.hpp"

namespace troupe::host::cuda {

Result<std::unique_ptr<GpuActivity>> watch_gpu(ActivitySink) {
  return Error{Errc::unsupported, 0, "troupe was built without CUPTI's headers"};
}

}  // namespace troupe::host::cuda
