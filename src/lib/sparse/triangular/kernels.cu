#include "device_host/engine/cuda/launch.cuh"
#include "lib/sparse/common/numbers.cuh"
#include "lib/sparse/triangular/kernels.cuh"

namespace troupe::host::cuda::kernels {
namespace {

/// Neighbouring threads take neighbouring elements of the result.
template <class T>
__global__ void copy_scaled_kernel(ScaledCopy<T> copy) {
  const T alpha = value_of(copy.alpha);
  const bool down = copy.to_row_step <= copy.to_column_step || copy.columns == 1;
  const auto inner = static_cast<std::uint64_t>(down ? copy.rows : copy.columns);
  const auto n = static_cast<std::uint64_t>(copy.rows) * static_cast<std::uint64_t>(copy.columns);
  for (auto k = first_index(); k < n; k += index_step()) {
    const auto a = static_cast<std::int64_t>(k % inner), b = static_cast<std::int64_t>(k / inner);
    const std::int64_t i = down ? a : b, j = down ? b : a;
    const T from = copy.from[i * copy.from_row_step + j * copy.from_column_step];
    const T scaled = multiply_add(alpha, from, T{});
    copy.to[i * copy.to_row_step + j * copy.to_column_step] =
        copy.conjugate ? conjugated(scaled) : scaled;
  }
}

}  // namespace

cudaError_t preload_triangular() {
  return load_all(copy_scaled_kernel<float>, copy_scaled_kernel<double>, copy_scaled_kernel<float2>,
                  copy_scaled_kernel<double2>);
}

template <class T>
cudaError_t copy_scaled(const Launch& launch, const ScaledCopy<T>& copy) {
  const auto n = static_cast<std::uint64_t>(copy.rows) * static_cast<std::uint64_t>(copy.columns);
  if (n == 0) return cudaSuccess;
  return queue(launch, n, copy_scaled_kernel<T>, copy);
}

template cudaError_t copy_scaled(const Launch&, const ScaledCopy<float>&);
template cudaError_t copy_scaled(const Launch&, const ScaledCopy<double>&);
template cudaError_t copy_scaled(const Launch&, const ScaledCopy<float2>&);
template cudaError_t copy_scaled(const Launch&, const ScaledCopy<double2>&);

}  // namespace troupe::host::cuda::kernels
