#pragma once

#include <array>
#include <string>

#include "random_csr.hpp"

/// The same sparse matrix in every format.
namespace troupe::test::reference {

/// By columns: a stable sort of the elements, which leaves the rows of a column in their order.
template <class T, class I>
CscMatrix<T, I> put_csc(const RandomCsr<T, I>& a) {
  std::vector<I> begin{0}, row;
  std::vector<Wide> value;
  for (std::int64_t j = 0; j < a.dense.columns; ++j) {
    for (std::size_t i = 0; i + 1 < a.row_begin.size(); ++i) {
      for (auto k = static_cast<std::size_t>(a.row_begin[i]);
           k < static_cast<std::size_t>(a.row_begin[i + 1]); ++k) {
        if (a.column[k] != static_cast<I>(j)) continue;
        row.push_back(static_cast<I>(i));
        value.push_back(a.value[k]);
      }
    }
    begin.push_back(static_cast<I>(row.size()));
  }
  return {a.dense.rows, a.dense.columns, put(begin), put(row), put_numbers<T>(value)};
}

template <class T, class I>
CooMatrix<T, I> put_coo(const RandomCsr<T, I>& a) {
  std::vector<I> row;
  for (std::size_t i = 0; i + 1 < a.row_begin.size(); ++i)
    row.resize(static_cast<std::size_t>(a.row_begin[i + 1]), static_cast<I>(i));
  return {a.dense.rows, a.dense.columns, put(row), put(a.column), put_numbers<T>(a.value)};
}

/// How the rows of a CSR matrix are padded to the longest of their group.
template <class T, class I>
struct PaddedRows {
  std::vector<I> slice_begin{0}, column;
  std::vector<Wide> value;

  PaddedRows(const RandomCsr<T, I>& a, std::int64_t slice_rows) {
    const auto length = [&](std::int64_t row) {
      const auto i = static_cast<std::size_t>(row);
      return row < a.dense.rows ? a.row_begin[i + 1] - a.row_begin[i] : I{0};
    };
    for (std::int64_t first = 0; first < a.dense.rows; first += slice_rows) {
      I longest = 0;
      for (std::int64_t i = 0; i < slice_rows; ++i) longest = std::max(longest, length(first + i));
      for (I k = 0; k < longest; ++k) {
        for (auto row = first; row < first + slice_rows; ++row) {
          const bool there = k < length(row);
          const auto from =
              there ? static_cast<std::size_t>(a.row_begin[static_cast<std::size_t>(row)] + k) : 0;
          column.push_back(there ? a.column[from] : I(-1));
          value.push_back(there ? a.value[from] : Wide(0));
        }
      }
      slice_begin.push_back(static_cast<I>(column.size()));
    }
  }
};
template <class T, class I>
SellMatrix<T, I> put_sell(const RandomCsr<T, I>& a, std::int64_t slice_rows) {
  const PaddedRows<T, I> padded(a, slice_rows);
  return {a.dense.rows,
          a.dense.columns,
          std::ssize(a.column),
          slice_rows,
          put(padded.slice_begin),
          put(padded.column),
          put_numbers<T>(padded.value)};
}

/// A random matrix of dense blocks, and the dense one that it is.
template <class T, class I>
struct RandomBlocks {
  RandomCsr<T, I> pattern;  ///< of blocks
  std::int64_t block;
  std::vector<Wide> value;  ///< of each block, row by row
  Dense dense;

  RandomBlocks(std::int64_t block_rows, std::int64_t block_columns, std::int64_t its_block,
               std::uint64_t seed, Data data)
      : pattern(block_rows, block_columns, seed, data),
        block(its_block),
        value(numbers<T>(std::ssize(pattern.column) * block * block, seed + 1, data)) {
    fill_dense();
  }
  /// After the pattern or a value has been changed.
  void fill_dense() {
    dense = Dense{pattern.dense.rows * block, pattern.dense.columns * block};
    each_block([&](std::int64_t row, std::int64_t column, std::int64_t k) {
      for (std::int64_t i = 0; i < block; ++i) {
        for (std::int64_t j = 0; j < block; ++j)
          dense(row * block + i, column * block + j) = at(k, i, j);
      }
    });
  }
  [[nodiscard]] const Wide& at(std::int64_t k, std::int64_t i, std::int64_t j) const {
    return value[static_cast<std::size_t>((k * block + i) * block + j)];
  }
  template <class Visit>
  void each_block(const Visit& visit) const {
    for (std::int64_t row = 0; row < pattern.dense.rows; ++row) {
      const auto i = static_cast<std::size_t>(row);
      for (auto k = pattern.row_begin[i]; k < pattern.row_begin[i + 1]; ++k)
        visit(row, static_cast<std::int64_t>(pattern.column[static_cast<std::size_t>(k)]),
              static_cast<std::int64_t>(k));
    }
  }
  [[nodiscard]] BsrMatrix<T, I> put_bsr(BlockOrder order) const {
    std::vector<Wide> ordered;
    for (std::int64_t k = 0; k < std::ssize(pattern.column); ++k) {
      for (std::int64_t i = 0; i < block; ++i) {
        for (std::int64_t j = 0; j < block; ++j)
          ordered.push_back(order == BlockOrder::row ? at(k, i, j) : at(k, j, i));
      }
    }
    return {pattern.dense.rows,  pattern.dense.columns,  block, order, put(pattern.row_begin),
            put(pattern.column), put_numbers<T>(ordered)};
  }
  /// What stands in the padding is never looked at.
  [[nodiscard]] BlockedEllMatrix<T, I> put_ell() const {
    std::int64_t width = 0;
    for (std::size_t i = 0; i + 1 < pattern.row_begin.size(); ++i)
      width = std::max<std::int64_t>(width, pattern.row_begin[i + 1] - pattern.row_begin[i]);
    const auto places = static_cast<std::size_t>(pattern.dense.rows * width);
    std::vector<I> column(places, I(-1));
    std::vector<Wide> spread(places * static_cast<std::size_t>(block * block), kFiller<Wide>);
    each_block([&](std::int64_t row, std::int64_t block_column, std::int64_t k) {
      const auto w = k - pattern.row_begin[static_cast<std::size_t>(row)];
      column[static_cast<std::size_t>(row * width + w)] = static_cast<I>(block_column);
      for (std::int64_t i = 0; i < block; ++i) {
        for (std::int64_t j = 0; j < block; ++j)
          spread[static_cast<std::size_t>(((row * block + i) * width + w) * block + j)] =
              at(k, i, j);
      }
    });
    return {dense.rows, dense.columns, block, width, put(column), put_numbers<T>(spread)};
  }
};

/// A matrix on the device and its dense form.
template <class T, class I>
struct Formatted {
  std::string name;
  SparseRef<T, I> on_device;
  Dense dense;
};
/// About rows x columns elements in each format that the predicate takes; those of blocks have
/// multiples of the block's extent.
template <class T, class I>
std::vector<Formatted<T, I>> in_formats(std::int64_t rows, std::int64_t columns, std::uint64_t seed,
                                        Data data, const std::vector<sparse::Format>& formats) {
  using sparse::Format;
  const RandomCsr<T, I> a(rows, columns, seed, data);
  std::vector<Formatted<T, I>> result;
  for (const auto format : formats) {
    switch (format) {
      case Format::csr: result.push_back({"csr", a.on_device(), a.dense}); break;
      case Format::csc: result.push_back({"csc", put_csc(a), a.dense}); break;
      case Format::coo: result.push_back({"coo", put_coo(a), a.dense}); break;
      case Format::sell:
        for (const std::int64_t slice_rows : {32, 5})
          result.push_back(
              {"sell of " + std::to_string(slice_rows), put_sell(a, slice_rows), a.dense});
        break;
      case Format::bsr:
        for (const std::int64_t block : {1, 2, 5}) {
          const RandomBlocks<T, I> blocks((rows + block - 1) / block, (columns + block - 1) / block,
                                          block, seed, data);
          for (const auto order : {BlockOrder::row, BlockOrder::column})
            result.push_back({"bsr of " + std::to_string(block) +
                                  (order == BlockOrder::row ? " by rows" : " by columns"),
                              blocks.put_bsr(order), blocks.dense});
        }
        break;
      case Format::blocked_ell:
        for (const std::int64_t block : {1, 4}) {
          const RandomBlocks<T, I> blocks((rows + block - 1) / block, (columns + block - 1) / block,
                                          block, seed, data);
          result.push_back(
              {"blocked ell of " + std::to_string(block), blocks.put_ell(), blocks.dense});
        }
        break;
    }
  }
  return result;
}

}  // namespace troupe::test::reference
