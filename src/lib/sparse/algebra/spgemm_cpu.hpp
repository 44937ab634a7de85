#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

/// The product of two CSR matrices: see sparse::Spgemm.
namespace troupe::host::cpu {

/// A factor of a product.
template <class T, class I>
struct CsrFactor {
  std::int64_t rows, columns, nonzeros;
  const I* row_begin;
  const I* column;
  const T* value;

  /// Whether all its indices stay within it: the loops below go where they point.
  [[nodiscard]] bool sound() const {
    if (row_begin[0] != 0 || static_cast<std::int64_t>(row_begin[rows]) != nonzeros) return false;
    if (!std::is_sorted(row_begin, row_begin + rows + 1)) return false;
    return std::all_of(column, column + nonzeros, [this](I index) {
      return index >= 0 && static_cast<std::int64_t>(index) < columns;
    });
  }
};

/// Where a product goes.
template <class T, class I>
struct CsrProduct {
  std::int64_t capacity;  ///< elements that column and value have room for
  I* row_begin;
  I* column;
  T* value;
};

/// The algorithm of Gustavson: the rows of B that the elements of a row of A select are added up in
/// a dense row, in the order of those elements.
template <class T, class I>
class Multiplication {
 public:
  Multiplication(const CsrFactor<T, I>& a, const CsrFactor<T, I>& b)
      : a_(a), b_(b), last_row_(static_cast<std::size_t>(b.columns), -1) {}

  /// Fills c.row_begin, and the rest if it has room. The number of nonzeros.
  std::int64_t run(const CsrProduct<T, I>& c) {
    const auto count = count_rows(c.row_begin);
    if (count <= c.capacity && count <= std::numeric_limits<I>::max()) fill_rows(c);
    return count;
  }

 private:
  /// Calls visit(i, j) for each product of the row: element i of A, element j of B.
  template <class Visit>
  void each_product(std::int64_t row, Visit&& visit) const {
    for (I i = a_.row_begin[row]; i < a_.row_begin[row + 1]; ++i) {
      const I k = a_.column[i];
      for (I j = b_.row_begin[k]; j < b_.row_begin[k + 1]; ++j) visit(i, j);
    }
  }
  /// Whether the row has not met this column yet.
  bool is_new(std::int64_t row, I column) {
    return std::exchange(last_row_[static_cast<std::size_t>(column)], row) != row;
  }
  /// What I cannot count any more stands as its maximum: verdict() refuses such a product.
  std::int64_t count_rows(I* row_begin) {
    constexpr std::int64_t kMost = std::numeric_limits<I>::max();
    std::int64_t count = 0;
    row_begin[0] = 0;
    for (std::int64_t row = 0; row < a_.rows; ++row) {
      each_product(row, [&](I, I j) { count += is_new(row, b_.column[j]) ? 1 : 0; });
      row_begin[row + 1] = static_cast<I>(std::min(count, kMost));
    }
    return count;
  }
  void fill_rows(const CsrProduct<T, I>& c) {
    std::fill(last_row_.begin(), last_row_.end(), -1);
    std::vector<T> sum(last_row_.size());
    for (std::int64_t row = 0; row < a_.rows; ++row) {
      I* const first = c.column + c.row_begin[row];
      I* last = first;
      each_product(row, [&](I i, I j) {
        const I column = b_.column[j];
        auto& element = sum[static_cast<std::size_t>(column)];
        const T product = a_.value[i] * b_.value[j];
        if (is_new(row, column)) {
          *last++ = column;
          element = product;
        } else {
          element += product;
        }
      });
      std::sort(first, last);
      std::transform(first, last, c.value + c.row_begin[row],
                     [&](I column) { return sum[static_cast<std::size_t>(column)]; });
    }
  }

  CsrFactor<T, I> a_, b_;
  std::vector<std::int64_t> last_row_;  ///< by column: the last row of C that has met it
};

/// C = A B. The number of nonzeros, or -1 if A or B is not a CSR matrix; then C is not one either.
template <class T, class I>
std::int64_t spgemm(const CsrFactor<T, I>& a, const CsrFactor<T, I>& b, const CsrProduct<T, I>& c) {
  if (a.sound() && b.sound()) return Multiplication<T, I>(a, b).run(c);
  std::fill_n(c.row_begin, a.rows + 1, I{0});
  return -1;
}

}  // namespace troupe::host::cpu
