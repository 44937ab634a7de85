#include "lib/sparse/dense/sddmm_kernels.cuh"

#include "device_host/engine/cuda/launch.cuh"
#include "lib/sparse/common/numbers.cuh"
#include "lib/sparse/common/search.cuh"

/// A thread computes an element of C, from the first product to the last.
namespace troupe::host::cuda::kernels {
namespace {

template <class T, class I>
__global__ void element_kernel(std::uint64_t n, SampledProduct<T, I> product) {
  const std::int64_t extent = product.extent;
  const T alpha = value_of(product.alpha), beta = value_of(product.beta);
  for (auto at = first_index(); at < n; at += index_step()) {
    const std::int64_t block = static_cast<std::int64_t>(at) / (extent * extent);
    const std::int64_t within = static_cast<std::int64_t>(at) % (extent * extent);
    const std::int64_t slow = within / extent, fast = within % extent;
    const std::int64_t block_row =
        count_below(product.row_begin, product.block_rows + 1, block, true) - 1;
    const std::int64_t row = block_row * extent + (product.by_column ? fast : slow);
    const std::int64_t column = product.column[block] * extent + (product.by_column ? slow : fast);
    const T* const a = product.a + row * product.a_row_step;
    const T* const b = product.b + column * product.b_column_step;
    T sum{};
    for (std::int64_t l = 0; l < product.k; ++l)
      sum = multiply_add(a[l * product.a_column_step], b[l * product.b_row_step], sum);
    const T scaled = weighed(alpha, sum);
    product.value[at] = is_zero(beta) ? scaled : multiply_add(beta, product.value[at], scaled);
  }
}

template <class T>
cudaError_t load_typed() {
  return load_all(element_kernel<T, std::int32_t>, element_kernel<T, std::int64_t>);
}

}  // namespace

cudaError_t preload_sddmm() {
  for (const auto load :
       {load_typed<float>, load_typed<double>, load_typed<float2>, load_typed<double2>}) {
    if (const auto status = load(); status != cudaSuccess) return status;
  }
  return cudaSuccess;
}

template <class T, class I>
cudaError_t sddmm(const Launch& launch, const SampledProduct<T, I>& product) {
  const auto n = static_cast<std::uint64_t>(product.blocks * product.extent * product.extent);
  return queue(launch, n, element_kernel<T, I>, n, product);
}

#define TROUPE_SDDMM(T)                                                              \
  template cudaError_t sddmm(const Launch&, const SampledProduct<T, std::int32_t>&); \
  template cudaError_t sddmm(const Launch&, const SampledProduct<T, std::int64_t>&);
TROUPE_SDDMM(float)
TROUPE_SDDMM(double)
TROUPE_SDDMM(float2)
TROUPE_SDDMM(double2)
#undef TROUPE_SDDMM

}  // namespace troupe::host::cuda::kernels
