#include "raw_kernels.hpp"

namespace troupe::bench {
namespace {

__global__ void fill_kernel(float* destination, float value, int count) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i < count) destination[i] = value;
}

}  // namespace

cudaError_t fill_few(float* destination, float value, int count, cudaStream_t stream) {
  constexpr int kThreads = 256;
  fill_kernel<<<(count + kThreads - 1) / kThreads, kThreads, 0, stream>>>(destination, value,
                                                                          count);
  return cudaPeekAtLastError();
}

}  // namespace troupe::bench
