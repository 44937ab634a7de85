#include "lib/sparse/spmm_kernels.cuh"

#include "device_host/engine/cuda/launch.cuh"
#include "lib/sparse/numbers.cuh"

/// A warp computes a part of a row of C (C. Yang, A. Buluç, J. D. Owens, Design Principles for
/// Sparse Matrix Multiplication on the GPU, Euro-Par 2018). Which lane adds what, and in which
/// order, depends on the extents alone.
namespace troupe::host::cuda::kernels {
namespace {

constexpr unsigned kLanes = 32, kAllLanes = 0xffff'ffffu;
constexpr int kColumnsAtOnce = 4;

__device__ bool is_zero(float x) {
  return x == 0;
}
__device__ bool is_zero(double x) {
  return x == 0;
}
template <class Complex>
__device__ bool is_zero(Complex x) {
  return x.x == 0 && x.y == 0;
}
/// The sum of all lanes, in all lanes.
__device__ float sum_of_lanes(float x) {
  for (unsigned step = kLanes / 2; step > 0; step /= 2) x += __shfl_xor_sync(kAllLanes, x, step);
  return x;
}
__device__ double sum_of_lanes(double x) {
  for (unsigned step = kLanes / 2; step > 0; step /= 2) x += __shfl_xor_sync(kAllLanes, x, step);
  return x;
}
template <class Complex>
__device__ Complex sum_of_lanes(Complex x) {
  x.x = sum_of_lanes(x.x);
  x.y = sum_of_lanes(x.y);
  return x;
}

template <class T, class I>
__device__ T element_of(const SparseProduct<T, I>& product, std::int64_t k) {
  const T value = product.value[product.place != nullptr ? product.place[k] : k];
  return product.conjugate ? conjugated(value) : value;
}
/// C is not read where beta is 0.
template <class T, class I>
__device__ void store(const SparseProduct<T, I>& product, std::int64_t row, std::int64_t column,
                      T sum) {
  T& c = product.c[row * product.c_row_step + column * product.c_column_step];
  const T beta = value_of(product.beta);
  const T scaled = multiply_add(value_of(product.alpha), sum, T{});
  c = is_zero(beta) ? scaled : multiply_add(beta, c, scaled);
}

/// A lane for each of 32 columns: for a row-major B.
template <class T, class I>
__global__ void lane_by_column_kernel(SparseProduct<T, I> product) {
  const std::int64_t tiles = (product.columns + kLanes - 1) / kLanes;
  const auto lane = static_cast<std::int64_t>(threadIdx.x % kLanes);
  const auto tasks = static_cast<std::uint64_t>(product.rows * tiles);
  for (auto task = first_index() / kLanes; task < tasks; task += index_step() / kLanes) {
    const std::int64_t row = static_cast<std::int64_t>(task) / tiles;
    const std::int64_t column = static_cast<std::int64_t>(task) % tiles * kLanes + lane;
    if (column >= product.columns) continue;
    const T* const b = product.b + column * product.b_column_step;
    T sum{};
    const std::int64_t end = product.row_begin != nullptr ? product.row_begin[row + 1] : 0;
    for (std::int64_t k = end > 0 ? product.row_begin[row] : 0; k < end; ++k)
      sum = multiply_add(element_of(product, k), b[product.column[k] * product.b_row_step], sum);
    store(product, row, column, sum);
  }
}

/// The lanes share the elements of a row of A, for a few columns at once: for a column-major B.
template <class T, class I>
__global__ void lane_by_element_kernel(SparseProduct<T, I> product) {
  const std::int64_t tiles = (product.columns + kColumnsAtOnce - 1) / kColumnsAtOnce;
  const auto lane = static_cast<std::int64_t>(threadIdx.x % kLanes);
  const auto tasks = static_cast<std::uint64_t>(product.rows * tiles);
  for (auto task = first_index() / kLanes; task < tasks; task += index_step() / kLanes) {
    const std::int64_t row = static_cast<std::int64_t>(task) / tiles;
    const std::int64_t first = static_cast<std::int64_t>(task) % tiles * kColumnsAtOnce;
    T sum[kColumnsAtOnce] = {};
    const std::int64_t end = product.row_begin != nullptr ? product.row_begin[row + 1] : 0;
    for (std::int64_t k = (end > 0 ? product.row_begin[row] : 0) + lane; k < end; k += kLanes) {
      const T value = element_of(product, k);
      const T* const b = product.b + product.column[k] * product.b_row_step;
#pragma unroll
      for (int j = 0; j < kColumnsAtOnce; ++j) {
        if (first + j < product.columns)
          sum[j] = multiply_add(value, b[(first + j) * product.b_column_step], sum[j]);
      }
    }
#pragma unroll
    for (int j = 0; j < kColumnsAtOnce; ++j) {
      sum[j] = sum_of_lanes(sum[j]);
      if (lane == j && first + j < product.columns) store(product, row, first + j, sum[j]);
    }
  }
}

template <class T>
cudaError_t load_typed() {
  return load_all(lane_by_column_kernel<T, std::int32_t>, lane_by_column_kernel<T, std::int64_t>,
                  lane_by_element_kernel<T, std::int32_t>, lane_by_element_kernel<T, std::int64_t>);
}

}  // namespace

cudaError_t preload_spmm() {
  for (const auto load :
       {load_typed<float>, load_typed<double>, load_typed<float2>, load_typed<double2>}) {
    if (const auto status = load(); status != cudaSuccess) return status;
  }
  return cudaSuccess;
}

template <class T, class I>
cudaError_t spmm(const Launch& launch, const SparseProduct<T, I>& product) {
  const bool by_column = product.b_column_step == 1;
  const auto kernel = by_column ? lane_by_column_kernel<T, I> : lane_by_element_kernel<T, I>;
  const std::int64_t columns = by_column ? kLanes : kColumnsAtOnce;
  const std::int64_t tiles = (product.columns + columns - 1) / columns;
  return queue(launch, static_cast<std::uint64_t>(product.rows * tiles) * kLanes, kernel, product);
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
