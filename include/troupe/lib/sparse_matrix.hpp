#pragma once

#include <cstdint>
#include <type_traits>

#include <troupe/gpu_ref.hpp>
#include <troupe/lib/matrix.hpp>

/// Sparse matrices in device memory, as calls take them.
namespace troupe {

/// Column and row indices: 32- or 64-bit.
template <class T>
concept IndexElement = std::is_same_v<T, std::int32_t> || std::is_same_v<T, std::int64_t>;

/// A CSR matrix in device memory. `row_begin` has rows + 1 entries and starts at 0.
template <class Values, class Indices>
struct BasicCsrMatrix {
  std::int64_t rows = 0, columns = 0;
  Indices row_begin, column;
  Values value;
};

template <FieldElement T, IndexElement I>
using CsrMatrix = BasicCsrMatrix<GpuRef<T>, GpuRef<I>>;

/// A matrix in sliced ELL form in device memory: slices of `slice_rows` rows each (32 suits a GPU),
/// every row of a slice padded to the slice's longest. Faster than CSR where neighbouring rows have
/// about as many nonzeros.
///
/// Slice s starts at slice_begin[s] of `column` and `value`, in elements; slice_begin has one entry
/// more than there are slices. Within a slice elements are column-major: the first of each row,
/// then the second of each, and so on. So the k-th of row r is at slice_begin[r / slice_rows] + k *
/// slice_rows + r % slice_rows. Padding has column -1 and value 0; the last slice is padded to
/// `slice_rows` rows too.
template <class Values, class Indices>
struct BasicSellMatrix {
  std::int64_t rows = 0, columns = 0, nonzeros = 0;  ///< nonzeros: without padding
  std::int64_t slice_rows = 0;
  Indices slice_begin, column;
  Values value;
};

template <FieldElement T, IndexElement I>
using SellMatrix = BasicSellMatrix<GpuRef<T>, GpuRef<I>>;

}  // namespace troupe
