#include <troupe/function.hpp>

// What troupe-torture calls by its device hosts, on the cpu engine; functions_cuda.cu is for GPUs.

template <class T>
static void accumulate(void*, int n, T alpha, const T* x, T* y) {
  for (int i = 0; i < n; ++i) y[i] += alpha * x[i];
}
static void accumulate_f32(void* stream, int n, float alpha, const float* x, float* y) {
  accumulate(stream, n, alpha, x, y);
}
static void accumulate_f64(void* stream, int n, double alpha, const double* x, double* y) {
  accumulate(stream, n, alpha, x, y);
}
TROUPE_FUNCTION(accumulate_f32)
TROUPE_FUNCTION(accumulate_f64)
