#pragma once

#include <cstddef>
#include <cstdint>

#include "device_host/engine/cuda/launch.hpp"

/// Sparse matrices as dense ones and the other way. T is float, double, float2 or double2, I
/// std::int32_t or std::int64_t. Every function queues on the launch's stream and returns.
namespace troupe::host::cuda::kernels {

cudaError_t preload_conversions();

/// Lines of `length` elements: rows or columns of a dense matrix. Element j of line i is at i *
/// line_step + j * element_step; one of the two steps is 1.
template <class T>
struct DenseLines {
  std::int64_t lines = 0, length = 0, line_step = 0, element_step = 0;
  T* element = nullptr;
};

/// All elements become 0.
template <class T>
cudaError_t clear(const Launch& launch, const DenseLines<T>& dense);

/// The elements of a sparse matrix, at least one: in compressed form, `begin` has lines + 1
/// entries, or `line` has the line of each, and they ascend.
template <class T, class I>
struct SparseLines {
  std::int64_t count = 0;
  const I *begin = nullptr, *line = nullptr, *index = nullptr;
  const T* value = nullptr;
};
/// Adds the elements of a sparse matrix to those of a dense one.
template <class T, class I>
cudaError_t store_elements(const Launch& launch, const SparseLines<T, I>& elements,
                           const DenseLines<T>& dense);

/// A matrix in blocked ELL form: see BlockedEllMatrix.
template <class T, class I>
struct BlockedElements {
  std::int64_t rows = 0, block = 0, width = 0;
  const I* column = nullptr;
  const T* value = nullptr;
};
/// The same; the lines of the dense matrix are rows.
template <class T, class I>
cudaError_t store_blocks(const Launch& launch, const BlockedElements<T, I>& blocks,
                         const DenseLines<T>& dense);

/// counts[i] = how many elements of line i are not 0
template <class T>
cudaError_t count_nonzeros(const Launch& launch, const DenseLines<const T>& dense,
                           std::int64_t* counts);

/// Where the nonzeros of lines go: those of line i from element begin[i] on. There are begin[lines]
/// of them. With more than `capacity` nothing is written.
template <class T, class I>
struct NonzeroTarget {
  std::int64_t capacity = 0;
  const std::int64_t* begin = nullptr;
  I *line = nullptr, *index = nullptr;  ///< line: or nullptr
  T* value = nullptr;
};
template <class T, class I>
cudaError_t store_nonzeros(const Launch& launch, const DenseLines<const T>& dense,
                           const NonzeroTarget<T, I>& target);

}  // namespace troupe::host::cuda::kernels
