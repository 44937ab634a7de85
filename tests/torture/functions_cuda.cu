#include <troupe/function.hpp>

// What troupe-torture calls by its device hosts, on GPUs; functions_cpu.cpp is for the cpu engine.

template <class T>
static __global__ void add(int n, T alpha, const T* x, T* y) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] += alpha * x[i];
}

template <class T>
static int accumulate(cudaStream_t stream, int n, T alpha, const T* x, T* y) {
  add<<<(n + 127) / 128, 128, 0, stream>>>(n, alpha, x, y);
  return cudaGetLastError();
}

static int accumulate_f32(cudaStream_t stream, int n, float alpha, const float* x, float* y) {
  return accumulate(stream, n, alpha, x, y);
}
static int accumulate_f64(cudaStream_t stream, int n, double alpha, const double* x, double* y) {
  return accumulate(stream, n, alpha, x, y);
}
TROUPE_FUNCTION(accumulate_f32)
TROUPE_FUNCTION(accumulate_f64)
