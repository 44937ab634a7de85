// Part of the tests: troupe_add_kernels() puts it into their program.

extern "C" __global__ void embedded(int n, int* x) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i < n) x[i] = 2 * i;
}
