#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include <troupe/lib/direct.hpp>

/// The structure of a matrix in CSR form, in host memory.
namespace troupe::direct {

/// Whether these are n rows of a square matrix with so many elements, as <troupe/lib/direct.hpp>
/// describes it. Reads nothing beyond either array, whatever they contain.
template <class I>
bool is_sound(std::int64_t n, std::int64_t nonzeros, const I* row_begin, const I* column) {
  if (row_begin[0] != 0 || row_begin[n] != nonzeros) return false;
  for (std::int64_t row = 0; row < n; ++row) {
    if (row_begin[row + 1] < row_begin[row] || row_begin[row + 1] > nonzeros) return false;
    std::int64_t before = -1;
    for (auto k = row_begin[row]; k < row_begin[row + 1]; ++k) {
      if (column[k] <= before || column[k] >= n) return false;
      before = column[k];
    }
  }
  return true;
}

/// Whether these are some of n rows, in ascending order.
template <class I>
bool are_rows(std::int64_t n, std::int64_t count, const I* rows) {
  for (std::int64_t i = 0; i < count; ++i) {
    if (rows[i] < 0 || rows[i] >= n || (i > 0 && rows[i] <= rows[i - 1])) return false;
  }
  return true;
}

/// Whether each of n rows is there once.
template <class I>
bool is_permutation(std::int64_t n, const I* order) {
  std::vector<bool> seen(static_cast<std::size_t>(n));
  for (std::int64_t i = 0; i < n; ++i) {
    if (order[i] < 0 || order[i] >= n || seen[static_cast<std::size_t>(order[i])]) return false;
    seen[static_cast<std::size_t>(order[i])] = true;
  }
  return true;
}

enum class Half : std::uint8_t { both, lower, upper };
inline Half half_of(View view) {
  return view == View::full ? Half::both : view == View::lower ? Half::lower : Half::upper;
}
inline bool counts(Half half, std::int64_t row, std::int64_t column) {
  return half == Half::both || (half == Half::lower ? column <= row : column >= row);
}

/// Visits the elements of the whole matrix: visit(row, column, k, mirrored), whose value is that at
/// place k, or of a mirrored one what stands across the diagonal from it. Element (i, j) of a half
/// stands for (j, i), too. The structure is sound; within a row the columns ascend, and within a
/// column the rows do.
template <class I, class Visit>
void each_element(std::int64_t n, const I* row_begin, const I* column, Half half, Visit&& visit) {
  for (std::int64_t row = 0; row < n; ++row) {
    for (std::int64_t k = row_begin[row]; k < row_begin[row + 1]; ++k) {
      const std::int64_t j = column[k];
      if (!counts(half, row, j)) continue;
      visit(row, j, k, false);
      if (half != Half::both && row != j) visit(j, row, k, true);
    }
  }
}

/// Whether a row or a column of what is eliminated, all but the rows and columns `kept`, has no
/// elements, so that it is singular whatever its values are. The structure is sound.
template <class I>
bool has_empty_line(std::int64_t n, const I* row_begin, const I* column, Half half,
                    std::span<const I> kept = {}) {
  std::vector<bool> is_kept(static_cast<std::size_t>(n));
  for (const I row : kept) is_kept[static_cast<std::size_t>(row)] = true;
  auto has_row = is_kept, has_column = is_kept;
  for (std::int64_t row = 0; row < n; ++row) {
    for (auto k = row_begin[row]; k < row_begin[row + 1]; ++k) {
      if (!counts(half, row, column[k])) continue;
      const auto i = static_cast<std::size_t>(row), j = static_cast<std::size_t>(column[k]);
      if (is_kept[i] || is_kept[j]) continue;
      has_row[i] = has_column[j] = true;
      if (half != Half::both) has_row[j] = has_column[i] = true;
    }
  }
  const auto lacks = [](const std::vector<bool>& has) {
    return std::find(has.begin(), has.end(), false) != has.end();
  };
  return lacks(has_row) || lacks(has_column);
}

}  // namespace troupe::direct
