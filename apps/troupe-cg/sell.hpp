#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "csr.hpp"

/// Sliced ELL from CSR, slice by slice, so that no second copy of the matrix is needed. See
/// troupe::SellMatrix.
namespace troupe::cg {

inline constexpr std::int64_t kSliceRows = 32;  ///< a warp: one thread to a row

/// Where each slice of `matrix` starts in sliced ELL form, and in the end how many entries are
/// stored, with the padding. Empty if that form does not pay: less than a slice of rows, more than
/// 15 % of padding, or more entries than Index counts.
template <class Index>
std::vector<Index> slice_offsets(const CsrMatrix<Index>& matrix) {
  constexpr std::int64_t kMaxPaddingPercent = 15;
  if (matrix.rows < kSliceRows || matrix.nonzeros() == 0) return {};
  const auto limit =
      std::min<std::int64_t>(std::numeric_limits<Index>::max(),
                             matrix.nonzeros() + matrix.nonzeros() * kMaxPaddingPercent / 100);
  std::vector<Index> offsets = {0};
  offsets.reserve(static_cast<std::size_t>(matrix.rows / kSliceRows + 2));
  std::int64_t stored = 0;
  for (std::int64_t first = 0; first < matrix.rows; first += kSliceRows) {
    const auto end = std::min(first + kSliceRows, matrix.rows);
    std::int64_t longest = 0;
    for (auto row = static_cast<std::size_t>(first); row < static_cast<std::size_t>(end); ++row) {
      longest = std::max(longest, matrix.row_begin[row + 1] - matrix.row_begin[row]);
    }
    stored += longest * kSliceRows;
    if (stored > limit) return {};
    offsets.push_back(static_cast<Index>(stored));
  }
  return offsets;
}

/// Entries that the device stores for the matrix, padding included, in the form that it gets.
template <class Index>
std::int64_t stored_entries(const CsrMatrix<Index>& matrix) {
  const auto offsets = slice_offsets(matrix);
  return offsets.empty() ? matrix.nonzeros() : static_cast<std::int64_t>(offsets.back());
}

/// Writes slices [first, last) of `matrix`, whose first entry is column[0] and value[0], on
/// `threads` threads.
template <class Index, class T>
void fill_slices(const CsrMatrix<Index>& matrix, std::span<const Index> offsets, std::int64_t first,
                 std::int64_t last, std::span<Index> column, std::span<T> value,
                 std::int32_t threads) {
  const auto offset = [&](std::int64_t slice) {
    return static_cast<std::int64_t>(offsets[static_cast<std::size_t>(slice)]);
  };
  for_ranges(threads, last - first, [&](std::int64_t begin, std::int64_t end) {
    for (auto slice = first + begin; slice < first + end; ++slice) {
      const auto width = (offset(slice + 1) - offset(slice)) / kSliceRows;
      for (std::int64_t i = 0; i < kSliceRows; ++i) {
        const auto row = slice * kSliceRows + i;
        const bool there = row < matrix.rows;
        const auto from = there ? matrix.row_begin[static_cast<std::size_t>(row)] : 0;
        const auto length = there ? matrix.row_begin[static_cast<std::size_t>(row) + 1] - from : 0;
        for (std::int64_t k = 0; k < width; ++k) {
          const auto to =
              static_cast<std::size_t>(offset(slice) - offset(first) + k * kSliceRows + i);
          const auto entry = static_cast<std::size_t>(from + k);
          column[to] = k < length ? matrix.column[entry] : Index(-1);
          value[to] = k < length ? static_cast<T>(matrix.value[entry]) : T(0);
        }
      }
    }
  });
}

}  // namespace troupe::cg
