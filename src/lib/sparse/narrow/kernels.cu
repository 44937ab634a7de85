#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include "lib/sparse/dense/spmm_products.cuh"

/// Products of matrices whose elements are narrower than what they are computed in.
namespace troupe::host::cuda::kernels {

cudaError_t preload_narrow_products() {
  for (const auto load :
       {load_products<std::int8_t, std::int32_t, std::int32_t>,
        load_products<std::int8_t, float, float>, load_products<__half, __half, float>,
        load_products<__half, float, float>, load_products<__nv_bfloat16, __nv_bfloat16, float>,
        load_products<__nv_bfloat16, float, float>}) {
    if (const auto status = load(); status != cudaSuccess) return status;
  }
  return cudaSuccess;
}

#define TROUPE_SPMM(T, Result, Sum)                                                             \
  template cudaError_t spmm(const Launch&, const SparseProduct<T, std::int32_t, Result, Sum>&); \
  template cudaError_t spmm(const Launch&, const SparseProduct<T, std::int64_t, Result, Sum>&);
TROUPE_SPMM(std::int8_t, std::int32_t, std::int32_t)
TROUPE_SPMM(std::int8_t, float, float)
TROUPE_SPMM(__half, __half, float)
TROUPE_SPMM(__half, float, float)
TROUPE_SPMM(__nv_bfloat16, __nv_bfloat16, float)
TROUPE_SPMM(__nv_bfloat16, float, float)
#undef TROUPE_SPMM

}  // namespace troupe::host::cuda::kernels
