#pragma once

#include <cstdint>

#include "device_host/engine/cuda/launch.hpp"

namespace troupe::host::cuda::kernels {

/// The dense operands of a product, in device memory: C and B, whose element (i, j) is at i *
/// row_step + j * column_step, and the scalars. Elements of A and B are of T, those of C of Result;
/// products are added up in Sum. All three are float, double, float2 or double2; or T is
/// std::int8_t, __half or __nv_bfloat16, and Sum float: then Result is that or, but of std::int8_t,
/// T; or they are std::int8_t, std::int32_t and std::int32_t, which wraps around.
template <class T, class Result = T, class Sum = T>
struct DenseOperands {
  std::int64_t rows = 0, columns = 0;  ///< of C
  const T* b = nullptr;
  std::int64_t b_row_step = 0, b_column_step = 0;
  Result* c = nullptr;
  std::int64_t c_row_step = 0, c_column_step = 0;
  ScalarValue<Sum> alpha, beta;
};

/// How the elements of a matrix of blocks stand in its values. Element (i, j) of a block of op(A)
/// is row_step * i + column_step * j behind the block's beginning.
struct Blocks {
  std::int64_t extent = 0;  ///< rows and columns of a block; 0: no blocks
  std::int64_t width = 0;   ///< of a matrix in blocked ELL form; 0: block p begins at p * extent^2
  std::int64_t row_step = 0, column_step = 0;
};

/// Where the elements of op(A) are. Where A has blocks, row_begin, column and place are of these. I
/// is std::int32_t or std::int64_t.
template <class I>
struct Pattern {
  /// nullptr: there are no elements, or `width` blocks in each row of blocks.
  const I* row_begin = nullptr;
  const I* column = nullptr;  ///< of blocks it may be -1: padding
  const I* place = nullptr;   ///< element k of op(A) is value[place[k]]; nullptr: value[k]
  Blocks blocks;
};

/// C = alpha op(A) B + beta C
template <class T, class I, class Result = T, class Sum = T>
struct SparseProduct : DenseOperands<T, Result, Sum>, Pattern<I> {
  const T* value = nullptr;
  bool conjugate = false;
};

/// Loads the kernels onto the current device: those of one type, and those of several.
cudaError_t preload_spmm();
cudaError_t preload_narrow_products();

/// Queues the product. The same inputs give the same bits in every run. C has elements.
template <class T, class I, class Result, class Sum>
cudaError_t spmm(const Launch& launch, const SparseProduct<T, I, Result, Sum>& product);

}  // namespace troupe::host::cuda::kernels
