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

template <Element T, IndexElement I>
using CsrMatrix = BasicCsrMatrix<GpuRef<T>, GpuRef<I>>;

/// A CSC matrix in device memory: the CSR form of its transpose. `column_begin` has columns + 1
/// entries and starts at 0; `row` has the row of each element.
template <class Values, class Indices>
struct BasicCscMatrix {
  std::int64_t rows = 0, columns = 0;
  Indices column_begin, row;
  Values value;
};

template <Element T, IndexElement I>
using CscMatrix = BasicCscMatrix<GpuRef<T>, GpuRef<I>>;

/// A matrix in coordinate form in device memory: element i is value[i] at (row[i], column[i]). The
/// rows ascend; within a row the columns may stand in any order.
template <class Values, class Indices>
struct BasicCooMatrix {
  std::int64_t rows = 0, columns = 0;
  Indices row, column;
  Values value;
};

template <Element T, IndexElement I>
using CooMatrix = BasicCooMatrix<GpuRef<T>, GpuRef<I>>;

/// How the elements of a block follow one another.
enum class BlockOrder : std::uint8_t { row, column };

/// A CSR matrix of dense blocks (BSR) in device memory: block_rows x block_columns blocks of
/// `block` x `block` elements each. `row_begin` has block_rows + 1 entries and counts blocks;
/// `column` has the block column of each; `value` has block^2 elements for each, row by row or
/// column by column.
template <class Values, class Indices>
struct BasicBsrMatrix {
  std::int64_t block_rows = 0, block_columns = 0, block = 1;
  BlockOrder order = BlockOrder::row;
  Indices row_begin, column;
  Values value;
};

template <Element T, IndexElement I>
using BsrMatrix = BasicBsrMatrix<GpuRef<T>, GpuRef<I>>;

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

template <Element T, IndexElement I>
using SellMatrix = BasicSellMatrix<GpuRef<T>, GpuRef<I>>;

/// A matrix in blocked ELL form in device memory: rows x columns elements in blocks of `block` x
/// `block`, of which every row of blocks has `width`. `column` has the block column of each, row by
/// row, and -1 for padding; so it has rows / block * width entries. `value` is a row-major matrix
/// of `rows` rows and width * block columns. rows and columns are multiples of `block`.
template <class Values, class Indices>
struct BasicBlockedEllMatrix {
  std::int64_t rows = 0, columns = 0, block = 1, width = 0;
  Indices column;
  Values value;
};

template <Element T, IndexElement I>
using BlockedEllMatrix = BasicBlockedEllMatrix<GpuRef<T>, GpuRef<I>>;

}  // namespace troupe
