// The assertion must be there in every build type.
#undef NDEBUG
#include <cassert>

#include "device_host/engine/cuda/faults.hpp"

namespace troupe::host::cuda::faults {
namespace {

// Addresses and conditions come as arguments, so that the compiler cannot see that they are wrong.
__global__ void store_kernel(unsigned long long* address) {
  *static_cast<volatile unsigned long long*>(address) = 1;
}
__global__ void trap_kernel() {
  asm volatile("trap;");
}
__global__ void assertion_kernel(bool holds) {
  assert(holds);
}

template <class... Parameters>
cudaError_t queue(cudaStream_t stream, void (*kernel)(Parameters...), Parameters... arguments) {
  cudaLaunchConfig_t config{};
  config.gridDim = dim3(1);
  config.blockDim = dim3(1);
  config.stream = stream;
  return cudaLaunchKernelEx(&config, kernel, arguments...);
}

unsigned long long* pointer_to(unsigned long long address) {
  return reinterpret_cast<unsigned long long*>(address);
}

}  // namespace

cudaError_t preload() {
  cudaFuncAttributes attributes;
  auto status = cudaFuncGetAttributes(&attributes, store_kernel);
  if (status == cudaSuccess) status = cudaFuncGetAttributes(&attributes, trap_kernel);
  if (status == cudaSuccess) status = cudaFuncGetAttributes(&attributes, assertion_kernel);
  return status;
}

cudaError_t illegal_address(cudaStream_t stream) {
  constexpr unsigned long long kFirstPage = 64;  // never mapped, and aligned
  return queue(stream, store_kernel, pointer_to(kFirstPage));
}
cudaError_t trap(cudaStream_t stream) {
  return queue(stream, trap_kernel);
}
cudaError_t assertion(cudaStream_t stream) {
  return queue(stream, assertion_kernel, false);
}
cudaError_t misaligned(cudaStream_t stream, void* memory) {
  return queue(stream, store_kernel, pointer_to(reinterpret_cast<unsigned long long>(memory) + 1));
}

}  // namespace troupe::host::cuda::faults
