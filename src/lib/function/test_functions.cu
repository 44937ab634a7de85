#include <cuda_runtime_api.h>

#include <troupe/function.hpp>

// Functions that the tests call on GPUs: host code that launches kernels.

static __global__ void scale_kernel(const float* x, float* y, int n, float factor) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i < n) y[i] = factor * x[i];
}
static __global__ void increment_kernel(double* x, long long n) {
  for (long long i = threadIdx.x; i < n; i += blockDim.x) x[i] += 1;
}

static int scale(cudaStream_t stream, const float* x, float* y, int n, float factor) {
  scale_kernel<<<(n + 255) / 256, 256, 0, stream>>>(x, y, n, factor);
  return static_cast<int>(cudaGetLastError());
}
TROUPE_FUNCTION(scale)

static void increment(cudaStream_t stream, double* x, long long n) {
  increment_kernel<<<1, 128, 0, stream>>>(x, n);
}
TROUPE_FUNCTION(increment)

static int fail(cudaStream_t stream, double* x, int status) {
  (void)cudaMemsetAsync(x, 0xff, sizeof *x, stream);
  return status;
}
TROUPE_FUNCTION(fail)
