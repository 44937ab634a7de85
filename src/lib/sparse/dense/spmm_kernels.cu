#include "lib/sparse/dense/spmm_products.cuh"

namespace troupe::host::cuda::kernels {

cudaError_t preload_spmm() {
  for (const auto load : {load_products<float>, load_products<double>, load_products<float2>,
                          load_products<double2>}) {
    if (const auto status = load(); status != cudaSuccess) return status;
  }
  return cudaSuccess;
}

#define TROUPE_SPMM(T)                                                             \
  template cudaError_t spmm(const Launch&, const SparseProduct<T, std::int32_t>&); \
  template cudaError_t spmm(const Launch&, const SparseProduct<T, std::int64_t>&);
TROUPE_SPMM(float)
TROUPE_SPMM(double)
TROUPE_SPMM(float2)
TROUPE_SPMM(double2)
#undef TROUPE_SPMM

}  // namespace troupe::host::cuda::kernels
