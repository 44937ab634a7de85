#include "lib/blas/level1/kernels.cuh"

namespace troupe::host::cuda::kernels {
namespace {

__global__ void decrement_kernel(std::int64_t* value) {
  --*value;
}

}  // namespace

cudaError_t decrement(const Launch& launch, std::int64_t* value) {
  decrement_kernel<<<1, 1, 0, launch.stream>>>(value);
  return cudaGetLastError();
}

}  // namespace troupe::host::cuda::kernels
