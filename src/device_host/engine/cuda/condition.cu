#include "device_host/engine/cuda/kernels.hpp"

#include "device_host/engine/cuda/launch.cuh"

// By itself: the driver itself has to have what this calls, and the other kernels are to be loaded
// also where it does not.

namespace troupe::host::cuda::kernels {
namespace {

__global__ void condition_kernel(cudaGraphConditionalHandle handle, const std::int32_t* flag) {
  if (threadIdx.x == 0) cudaGraphSetConditional(handle, *flag != 0 ? 1u : 0u);
}

}  // namespace

cudaError_t preload_condition() {
  return load_all(condition_kernel);
}

cudaError_t set_condition(const Launch& launch, cudaGraphConditionalHandle handle,
                          const std::int32_t* flag) {
  return queue(launch, 1, condition_kernel, handle, flag);
}

}  // namespace troupe::host::cuda::kernels
