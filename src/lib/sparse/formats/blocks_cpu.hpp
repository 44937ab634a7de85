#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "lib/sparse/common/rows_cpu.hpp"

/// CSR matrices that are put into other forms, on the cpu engine.
namespace troupe::host::cpu {

/// A CSR matrix. Its values may be absent, and its columns where nothing looks at them.
template <class T, class I>
struct GivenCsr {
  std::int64_t rows, columns, nonzeros;
  const I *row_begin, *column;
  const T* value;

  template <class Op>
  GivenCsr(const Op& op, const Call& call)
      : rows(op.rows),
        columns(op.columns),
        nonzeros(op.nonzeros),
        row_begin(call.at<const I>(op.row_begin)),
        column(if_present<const I>(op.column, call)),
        value(if_present<const T>(op.value, call)) {}
  [[nodiscard]] RowRange row(std::int64_t i) const { return row_range(row_begin, i, nonzeros); }
  /// Whether element k is within the matrix.
  [[nodiscard]] bool has(std::int64_t k) const {
    const auto j = std::int64_t{column[k]};
    return j >= 0 && j < columns;
  }
};

/// The blocks that one row of blocks of a matrix has, one after the other.
template <class T, class I>
class BlocksOfRow {
 public:
  BlocksOfRow(const GivenCsr<T, I>& from, std::int64_t block) : from_(from), block_(block) {}

  /// Goes to that row of blocks. How many it has.
  std::int64_t find(std::int64_t block_row) {
    first_row_ = block_row * block_;
    columns_.clear();
    each_element([&](std::int64_t, std::int64_t k) { columns_.push_back(column_of(k)); });
    std::sort(columns_.begin(), columns_.end());
    columns_.erase(std::unique(columns_.begin(), columns_.end()), columns_.end());
    return std::ssize(columns_);
  }
  /// The block columns, ascending.
  [[nodiscard]] const std::vector<std::int64_t>& columns() const { return columns_; }
  /// Calls visit(row, element number) for each element.
  template <class Visit>
  void each_element(Visit&& visit) const {
    for (auto row = first_row_; row < std::min(first_row_ + block_, from_.rows); ++row) {
      const auto [begin, end] = from_.row(row);
      for (auto k = begin; k < end; ++k)
        if (from_.has(k)) visit(row, k);
    }
  }
  /// In which of the blocks element k is.
  [[nodiscard]] std::int64_t number_of(std::int64_t k) const {
    return std::lower_bound(columns_.begin(), columns_.end(), column_of(k)) - columns_.begin();
  }

 private:
  [[nodiscard]] std::int64_t column_of(std::int64_t k) const {
    return std::int64_t{from_.column[k]} / block_;
  }

  const GivenCsr<T, I>& from_;
  std::int64_t block_, first_row_ = 0;
  std::vector<std::int64_t> columns_;
};

}  // namespace troupe::host::cpu
