#pragma once

#include <cstdint>

#include "device_host/engine/cuda/launch.hpp"

namespace troupe::host::cuda::kernels {

/// The dense operands of a product, in device memory: C and B, whose element (i, j) is at i *
/// row_step + j * column_step, and the scalars. T is float, double, float2 or double2.
template <class T>
struct DenseOperands {
  std::int64_t rows = 0, columns = 0;  ///< of C
  const T* b = nullptr;
  std::int64_t b_row_step = 0, b_column_step = 0;
  T* c = nullptr;
  std::int64_t c_row_step = 0, c_column_step = 0;
  ScalarValue<T> alpha, beta;
};

/// How the elements of a matrix of blocks stand in its values. Element (i, j) of a block of op(A)
/// is row_step * i + column_step * j behind the block's beginning.
struct Blocks {
  std::int64_t extent = 0;  ///< rows and columns of a block; 0: no blocks
  std::int64_t width = 0;   ///< of a matrix in blocked ELL form; 0: block p begins at p * extent^2
  std::int64_t row_step = 0, column_step = 0;
};

/// C = alpha op(A) B + beta C. I is std::int32_t or std::int64_t. Where A has blocks, row_begin,
/// column and place are of these.
template <class T, class I>
struct SparseProduct : DenseOperands<T> {
  /// Of op(A). nullptr: it has no elements, or `width` blocks in each row of blocks.
  const I* row_begin = nullptr;
  const I* column = nullptr;  ///< of blocks it may be -1: padding
  const T* value = nullptr;
  const I* place = nullptr;  ///< element k of op(A) is value[place[k]]; nullptr: value[k]
  bool conjugate = false;
  Blocks blocks;
};

/// Loads the kernels onto the current device.
cudaError_t preload_spmm();

/// Queues the product. The same inputs give the same bits in every run. C has elements.
template <class T, class I>
cudaError_t spmm(const Launch& launch, const SparseProduct<T, I>& product);

}  // namespace troupe::host::cuda::kernels
