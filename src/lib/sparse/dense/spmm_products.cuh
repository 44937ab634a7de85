#pragma once

#include <type_traits>

#include "device_host/engine/cuda/launch.cuh"
#include "lib/sparse/common/numbers.cuh"
#include "lib/sparse/dense/spmm_kernels.cuh"

/// A warp computes a part of a row of C (C. Yang, A. Buluç, J. D. Owens, Design Principles for
/// Sparse Matrix Multiplication on the GPU, Euro-Par 2018); where the row of A is long, all warps
/// of a block do. Which lane adds what, and in which order, depends on the extents and on the
/// length of the row alone.
namespace troupe::host::cuda::kernels {

inline constexpr unsigned kLanes = 32, kAllLanes = 0xffff'ffffu;
inline constexpr int kColumnsAtOnce = 4, kWarps = kThreads / static_cast<int>(kLanes);
/// A row of more elements is shared by the warps of a block.
inline constexpr std::int64_t kLongRow = 1024;

/// The sum of all lanes, in all lanes.
template <class T>
__device__ T sum_of_lanes(T x) {
  if constexpr (std::is_arithmetic_v<T>) {
    for (unsigned step = kLanes / 2; step > 0; step /= 2)
      x = add(x, __shfl_xor_sync(kAllLanes, x, step));
  } else {
    x.x = sum_of_lanes(x.x);
    x.y = sum_of_lanes(x.y);
  }
  return x;
}

template <class T, class I, class Result, class Sum>
__device__ Sum value_at(const SparseProduct<T, I, Result, Sum>& product, std::int64_t at) {
  const Sum value = static_cast<Sum>(product.value[at]);
  return product.conjugate ? conjugated(value) : value;
}
/// C is not read where beta is 0.
template <class T, class Result, class Sum>
__device__ void store(const DenseOperands<T, Result, Sum>& dense, std::int64_t row,
                      std::int64_t column, Sum sum) {
  Result& c = dense.c[row * dense.c_row_step + column * dense.c_column_step];
  const Sum beta = value_of(dense.beta);
  Sum scaled = weighed(value_of(dense.alpha), sum);
  if (!is_zero(beta)) scaled = multiply_add(beta, static_cast<Sum>(c), scaled);
  c = static_cast<Result>(scaled);
}

template <class Product>
struct NumbersOf;
template <class T, class I, class Result, class Sum>
struct NumbersOf<SparseProduct<T, I, Result, Sum>> {
  using Element = T;
  using Number = Sum;
};

/// A row of op(A) without blocks: elements 0 to length.
template <class P>
struct Row : NumbersOf<P> {
  using Product = P;
  const Product& product;
  std::int64_t begin, length;

  __device__ Row(const Product& its_product, std::int64_t row)
      : product(its_product),
        begin(product.row_begin != nullptr ? product.row_begin[row] : 0),
        length(product.row_begin != nullptr ? product.row_begin[row + 1] - begin : 0) {}
  /// Calls visit(value, row of B) for the elements first, first + step, …
  template <class Visit>
  __device__ void each(std::int64_t first, std::int64_t step, const Visit& visit) const {
    const std::int64_t end = begin + length;
    for (std::int64_t k = begin + first; k < end; k += step)
      visit(value_at(product, product.place != nullptr ? product.place[k] : k), product.column[k]);
  }
};

/// The same of blocks: the elements of the first block in that row, then of the next, and so on.
template <class P>
struct RowOfBlocks : NumbersOf<P> {
  using Product = P;
  const Product& product;
  std::int64_t block_row, row_in_block, begin, blocks, length;

  __device__ RowOfBlocks(const Product& its_product, std::int64_t row)
      : product(its_product),
        block_row(row / product.blocks.extent),
        row_in_block(row % product.blocks.extent),
        begin(product.row_begin != nullptr ? product.row_begin[block_row]
                                           : block_row * product.blocks.width),
        blocks(product.row_begin != nullptr ? product.row_begin[block_row + 1] - begin
                                            : product.blocks.width),
        length(blocks * product.blocks.extent) {}
  /// Where block k of op(A) begins in the values.
  __device__ std::int64_t beginning(std::int64_t k) const {
    const auto& shape = product.blocks;
    const std::int64_t place = product.place != nullptr ? product.place[k] : k;
    if (shape.width == 0) return place * shape.extent * shape.extent;
    const std::int64_t its_row = product.place != nullptr ? place / shape.width : block_row;
    return (its_row * shape.extent * shape.width + place - its_row * shape.width) * shape.extent;
  }
  template <class Visit>
  __device__ void each(std::int64_t first, std::int64_t step, const Visit& visit) const {
    const auto& shape = product.blocks;
    const std::int64_t end = begin + blocks;
    const std::int64_t blocks_on = step / shape.extent, columns_on = step % shape.extent;
    std::int64_t k = begin + first / shape.extent, column = first % shape.extent;
    while (k < end) {
      const std::int64_t block_column = product.column[k];
      if (block_column >= 0)
        visit(value_at(product,
                       beginning(k) + row_in_block * shape.row_step + column * shape.column_step),
              block_column * shape.extent + column);
      k += blocks_on, column += columns_on;
      if (column >= shape.extent) column -= shape.extent, ++k;
    }
  }
};

/// The part of an element of C that the elements first, first + step, … of the row contribute.
template <class Row>
__device__ typename Row::Number sum_for_column(const Row& row, std::int64_t column,
                                               std::int64_t first, std::int64_t step) {
  typename Row::Number sum{};
  const auto* const b = row.product.b + column * row.product.b_column_step;
  const std::int64_t b_row_step = row.product.b_row_step;
  row.each(first, step, [&](typename Row::Number value, std::int64_t k) {
    sum = multiply_add(value, static_cast<typename Row::Number>(b[k * b_row_step]), sum);
  });
  return sum;
}

/// A lane for each of 32 columns: for a row-major B.
template <class Row>
__global__ void lane_by_column_kernel(typename Row::Product product) {
  __shared__ typename Row::Number parts[kWarps][kLanes];
  const std::int64_t tiles = (product.columns + kLanes - 1) / kLanes;
  const int lane = threadIdx.x % kLanes, warp = threadIdx.x / kLanes;
  const auto tasks = static_cast<std::uint64_t>(product.rows * tiles);
  bool is_long = false;
  for (auto task = first_index() / kLanes; task < tasks; task += index_step() / kLanes) {
    const std::int64_t its_row = static_cast<std::int64_t>(task) / tiles;
    const std::int64_t column = static_cast<std::int64_t>(task) % tiles * kLanes + lane;
    const Row row(product, its_row);
    if (row.length > kLongRow) {
      is_long = true;
    } else if (column < product.columns) {
      store(product, its_row, column, sum_for_column(row, column, 0, 1));
    }
  }
  if (__syncthreads_or(is_long) == 0) return;
  // The tasks of this block's warps again: those of long rows, one after the other.
  for (std::uint64_t first = std::uint64_t{blockIdx.x} * kWarps; first < tasks;
       first += std::uint64_t{gridDim.x} * kWarps) {
    for (auto task = first; task < first + kWarps && task < tasks; ++task) {
      const std::int64_t its_row = static_cast<std::int64_t>(task) / tiles;
      const std::int64_t column = static_cast<std::int64_t>(task) % tiles * kLanes + lane;
      const Row row(product, its_row);
      if (row.length <= kLongRow) continue;
      if (column < product.columns) parts[warp][lane] = sum_for_column(row, column, warp, kWarps);
      __syncthreads();
      if (warp == 0 && column < product.columns) {
        auto sum = parts[0][lane];
        for (int i = 1; i < kWarps; ++i) sum = add(sum, parts[i][lane]);
        store(product, its_row, column, sum);
      }
      __syncthreads();
    }
  }
}

/// A warp's sums for a few columns from `first_column` on; lane j returns that of column j. Its
/// lanes share the elements first, first + 1, … first + 31, first + step, …
template <class Row>
__device__ typename Row::Number sum_of_warp(const Row& row, std::int64_t first_column, int lane,
                                            std::int64_t first, std::int64_t step) {
  using Sum = typename Row::Number;
  const auto& product = row.product;
  Sum sum[kColumnsAtOnce] = {};
  row.each(first + lane, step, [&](Sum value, std::int64_t k) {
    const auto* const b = product.b + k * product.b_row_step;
#pragma unroll
    for (int j = 0; j < kColumnsAtOnce; ++j) {
      if (first_column + j < product.columns)
        sum[j] = multiply_add(
            value, static_cast<Sum>(b[(first_column + j) * product.b_column_step]), sum[j]);
    }
  });
  Sum own{};
#pragma unroll
  for (int j = 0; j < kColumnsAtOnce; ++j) {
    if (first_column + j >= product.columns) break;
    sum[j] = sum_of_lanes(sum[j]);
    if (lane == j) own = sum[j];
  }
  return own;
}

/// The lanes share the elements of a row of A, for a few columns at once: for a column-major B.
template <class Row>
__global__ void lane_by_element_kernel(typename Row::Product product) {
  __shared__ typename Row::Number parts[kWarps][kColumnsAtOnce];
  const std::int64_t tiles = (product.columns + kColumnsAtOnce - 1) / kColumnsAtOnce;
  const int lane = threadIdx.x % kLanes, warp = threadIdx.x / kLanes;
  const auto tasks = static_cast<std::uint64_t>(product.rows * tiles);
  bool is_long = false;
  for (auto task = first_index() / kLanes; task < tasks; task += index_step() / kLanes) {
    const std::int64_t its_row = static_cast<std::int64_t>(task) / tiles;
    const std::int64_t column = static_cast<std::int64_t>(task) % tiles * kColumnsAtOnce;
    const Row row(product, its_row);
    if (row.length > kLongRow) {
      is_long = true;
      continue;
    }
    const auto sum = sum_of_warp(row, column, lane, 0, kLanes);
    if (lane < kColumnsAtOnce && column + lane < product.columns)
      store(product, its_row, column + lane, sum);
  }
  if (__syncthreads_or(is_long) == 0) return;
  // As above.
  for (std::uint64_t first = std::uint64_t{blockIdx.x} * kWarps; first < tasks;
       first += std::uint64_t{gridDim.x} * kWarps) {
    for (auto task = first; task < first + kWarps && task < tasks; ++task) {
      const std::int64_t its_row = static_cast<std::int64_t>(task) / tiles;
      const std::int64_t column = static_cast<std::int64_t>(task) % tiles * kColumnsAtOnce;
      const Row row(product, its_row);
      if (row.length <= kLongRow) continue;
      const auto part = sum_of_warp(row, column, lane, warp * kLanes, kThreads);
      if (lane < kColumnsAtOnce) parts[warp][lane] = part;
      __syncthreads();
      if (warp == 0 && lane < kColumnsAtOnce && column + lane < product.columns) {
        auto sum = parts[0][lane];
        for (int i = 1; i < kWarps; ++i) sum = add(sum, parts[i][lane]);
        store(product, its_row, column + lane, sum);
      }
      __syncthreads();
    }
  }
}

template <class Row>
cudaError_t load_rows() {
  return load_all(lane_by_column_kernel<Row>, lane_by_element_kernel<Row>);
}
template <class T, class Result = T, class Sum = T>
cudaError_t load_products() {
  using Short = SparseProduct<T, std::int32_t, Result, Sum>;
  using Long = SparseProduct<T, std::int64_t, Result, Sum>;
  for (const auto load : {load_rows<Row<Short>>, load_rows<Row<Long>>,
                          load_rows<RowOfBlocks<Short>>, load_rows<RowOfBlocks<Long>>}) {
    if (const auto status = load(); status != cudaSuccess) return status;
  }
  return cudaSuccess;
}

template <class Row>
cudaError_t multiply(const Launch& launch, const typename Row::Product& product) {
  // A few columns leave most lanes idle that have a column each.
  const bool by_column = product.b_column_step == 1 && product.columns > kColumnsAtOnce;
  const auto kernel = by_column ? lane_by_column_kernel<Row> : lane_by_element_kernel<Row>;
  const std::int64_t columns = by_column ? kLanes : kColumnsAtOnce;
  const std::int64_t tiles = (product.columns + columns - 1) / columns;
  return queue(launch, static_cast<std::uint64_t>(product.rows * tiles) * kLanes, kernel, product);
}

template <class T, class I, class Result, class Sum>
cudaError_t spmm(const Launch& launch, const SparseProduct<T, I, Result, Sum>& product) {
  using Product = SparseProduct<T, I, Result, Sum>;
  return product.blocks.extent > 0 ? multiply<RowOfBlocks<Product>>(launch, product)
                                   : multiply<Row<Product>>(launch, product);
}

}  // namespace troupe::host::cuda::kernels
