#include <cub/device/device_scan.cuh>

#include <limits>

#include "device_host/engine/cuda/launch.cuh"
#include "lib/sparse/algebra/kernels.cuh"
#include "lib/sparse/common/numbers.cuh"
#include "lib/sparse/common/search.cuh"

/// The elements of a sum are those of A, in their order, and between them those of B that A has no
/// element for, which are called new. So an element of A stands behind as many elements as there
/// are of A before it and of new ones before it; a new one likewise. All elements are placed at
/// once, however long the rows are.
namespace troupe::host::cuda::kernels {
namespace {

constexpr unsigned kLanes = 32;
/// Elements that I can count.
template <class I>
constexpr std::int64_t kMost = std::numeric_limits<I>::max();

/// The row of element k.
template <class I>
__device__ std::int64_t row_of(const Structure<I>& matrix, std::int64_t k) {
  return count_below(matrix.row_begin, matrix.rows + 1, k, true) - 1;
}
/// The first element of a row whose column is not below this one.
template <class I>
__device__ std::int64_t find(const Structure<I>& matrix, std::int64_t row, std::int64_t column) {
  const std::int64_t begin = matrix.row_begin[row];
  return begin +
         count_below(matrix.column + begin, matrix.row_begin[row + 1] - begin, column, false);
}
/// Whether find() has found that column.
template <class I>
__device__ bool is_at(const Structure<I>& matrix, std::int64_t row, std::int64_t column,
                      std::int64_t k) {
  return k < matrix.row_begin[row + 1] && matrix.column[k] == column;
}

template <class I>
__global__ void mark_new_kernel(SumStructure<I> sum) {
  const auto n = static_cast<std::uint64_t>(sum.b.nonzeros);
  for (auto j = first_index(); j <= n; j += index_step()) {
    bool is_new = false;
    if (j < n) {
      const std::int64_t row = row_of(sum.b, static_cast<std::int64_t>(j));
      const std::int64_t column = sum.b.column[j];
      is_new = !is_at(sum.a, row, column, find(sum.a, row, column));
    }
    sum.new_before[j] = is_new ? 1 : 0;
  }
}

template <class I>
__global__ void begin_rows_kernel(SumStructure<I> sum) {
  const auto rows = static_cast<std::uint64_t>(sum.a.rows);
  for (auto row = first_index(); row <= rows; row += index_step()) {
    const std::int64_t begin =
        static_cast<std::int64_t>(sum.a.row_begin[row]) + sum.new_before[sum.b.row_begin[row]];
    sum.row_begin[row] = static_cast<I>(begin < kMost<I> ? begin : kMost<I>);
  }
  if (first_index() == 0) *sum.count = sum.a.nonzeros + sum.new_before[sum.b.nonzeros];
}

template <class T, class I>
__global__ void fill_sum_kernel(SparseSum<T, I> sum) {
  const auto& [a, b, new_before, row_begin, count] = sum.structure;
  if (*count > sum.capacity || *count > kMost<I>) return;
  const T alpha = value_of(sum.alpha), beta = value_of(sum.beta);
  const auto n = static_cast<std::uint64_t>(a.nonzeros + b.nonzeros);
  for (auto index = first_index(); index < n; index += index_step()) {
    const auto k = static_cast<std::int64_t>(index);
    if (k < a.nonzeros) {
      const std::int64_t row = row_of(a, k), column = a.column[k];
      const std::int64_t other = find(b, row, column);
      const std::int64_t at = k + new_before[other];
      const T value = weighed(alpha, sum.a_value[k]);
      sum.column[at] = static_cast<I>(column);
      sum.value[at] = is_at(b, row, column, other) && !is_zero(beta)
                          ? multiply_add(beta, sum.b_value[other], value)
                          : value;
    } else {
      const std::int64_t j = k - a.nonzeros;
      if (new_before[j + 1] == new_before[j]) continue;
      const std::int64_t row = row_of(b, j), column = b.column[j];
      const std::int64_t at = new_before[j] + find(a, row, column);
      sum.column[at] = static_cast<I>(column);
      sum.value[at] = weighed(beta, sum.b_value[j]);
    }
  }
}

/// A warp for each row of C. It takes one element of A after the other; the row of B that this
/// selects has no place twice, so that each lane adds to elements of its own.
template <class T, class I>
__global__ void multiply_into_kernel(KnownProduct<T, I> product) {
  const auto lane = static_cast<std::int64_t>(threadIdx.x % kLanes);
  const auto rows = static_cast<std::uint64_t>(product.c.rows);
  for (auto task = first_index() / kLanes; task < rows; task += index_step() / kLanes) {
    const auto row = static_cast<std::int64_t>(task);
    const std::int64_t end = product.c.row_begin[row + 1];
    for (std::int64_t k = product.c.row_begin[row] + lane; k < end; k += kLanes)
      product.value[k] = T{};
    __syncwarp();
    const std::int64_t a_end = product.a.row_begin[row + 1];
    for (std::int64_t i = product.a.row_begin[row]; i < a_end; ++i) {
      const T factor = product.a_value[i];
      const std::int64_t of_b = product.a.column[i], b_end = product.b.row_begin[of_b + 1];
      for (std::int64_t j = product.b.row_begin[of_b] + lane; j < b_end; j += kLanes) {
        const std::int64_t column = product.b.column[j], at = find(product.c, row, column);
        if (is_at(product.c, row, column, at))
          product.value[at] = multiply_add(factor, product.b_value[j], product.value[at]);
      }
      __syncwarp();
    }
  }
}

template <class I>
cudaError_t scan(void* memory, std::size_t& bytes, std::int64_t n, I* numbers,
                 cudaStream_t stream) {
  return cub::DeviceScan::ExclusiveSum(memory, bytes, numbers, numbers, n, stream);
}

template <class T>
cudaError_t load_typed() {
  return load_all(fill_sum_kernel<T, std::int32_t>, fill_sum_kernel<T, std::int64_t>,
                  multiply_into_kernel<T, std::int32_t>, multiply_into_kernel<T, std::int64_t>);
}

}  // namespace

cudaError_t preload_algebra() {
  for (const auto load :
       {load_typed<float>, load_typed<double>, load_typed<float2>, load_typed<double2>}) {
    if (const auto status = load(); status != cudaSuccess) return status;
  }
  return load_all(mark_new_kernel<std::int32_t>, mark_new_kernel<std::int64_t>,
                  begin_rows_kernel<std::int32_t>, begin_rows_kernel<std::int64_t>);
}

template <class I>
cudaError_t sum_bytes(std::int64_t nonzeros, std::size_t* bytes) {
  *bytes = 0;
  return scan<I>(nullptr, *bytes, nonzeros + 1, nullptr, nullptr);
}

template <class I>
cudaError_t count_sum(const Launch& launch, const SumStructure<I>& sum, void* memory,
                      std::size_t bytes) {
  const auto marks = static_cast<std::uint64_t>(sum.b.nonzeros) + 1;
  auto status = queue(launch, marks, mark_new_kernel<I>, sum);
  if (status != cudaSuccess) return status;
  status = scan(memory, bytes, sum.b.nonzeros + 1, sum.new_before, launch.stream);
  if (status != cudaSuccess) return status;
  return queue(launch, static_cast<std::uint64_t>(sum.a.rows) + 1, begin_rows_kernel<I>, sum);
}

template <class T, class I>
cudaError_t fill_sum(const Launch& launch, const SparseSum<T, I>& sum) {
  const auto n = static_cast<std::uint64_t>(sum.structure.a.nonzeros + sum.structure.b.nonzeros);
  if (n == 0) return cudaSuccess;
  return queue(launch, n, fill_sum_kernel<T, I>, sum);
}

template <class T, class I>
cudaError_t multiply_into(const Launch& launch, const KnownProduct<T, I>& product) {
  const auto rows = static_cast<std::uint64_t>(product.c.rows);
  if (rows == 0) return cudaSuccess;
  return queue(launch, rows * kLanes, multiply_into_kernel<T, I>, product);
}

#define TROUPE_ALGEBRA_INDEX(I)                                  \
  template cudaError_t sum_bytes<I>(std::int64_t, std::size_t*); \
  template cudaError_t count_sum(const Launch&, const SumStructure<I>&, void*, std::size_t);
TROUPE_ALGEBRA_INDEX(std::int32_t)
TROUPE_ALGEBRA_INDEX(std::int64_t)
#undef TROUPE_ALGEBRA_INDEX
#define TROUPE_ALGEBRA(T, I)                                            \
  template cudaError_t fill_sum(const Launch&, const SparseSum<T, I>&); \
  template cudaError_t multiply_into(const Launch&, const KnownProduct<T, I>&);
TROUPE_ALGEBRA(float, std::int32_t)
TROUPE_ALGEBRA(float, std::int64_t)
TROUPE_ALGEBRA(double, std::int32_t)
TROUPE_ALGEBRA(double, std::int64_t)
TROUPE_ALGEBRA(float2, std::int32_t)
TROUPE_ALGEBRA(float2, std::int64_t)
TROUPE_ALGEBRA(double2, std::int32_t)
TROUPE_ALGEBRA(double2, std::int64_t)
#undef TROUPE_ALGEBRA

}  // namespace troupe::host::cuda::kernels
