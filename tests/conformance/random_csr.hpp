#pragma once

#include <algorithm>
#include <utility>

#include <troupe/lib/sparse.hpp>

#include "dense_reference.hpp"

/// Sparse matrices of tests, on the device and beside it.
namespace troupe::test::reference {

/// Each type of numbers and each of indices; brief tests leave the others to the judges, as
/// NumberTypes does.
#ifdef TROUPE_BRIEF_TESTS
using SomeNumbersAndIndices =
    ::testing::Types<std::pair<std::complex<float>, std::int32_t>, std::pair<double, std::int64_t>>;
using NumbersAndIndices = SomeNumbersAndIndices;
#else
using SomeNumbersAndIndices =
    ::testing::Types<std::pair<float, std::int32_t>, std::pair<double, std::int64_t>,
                     std::pair<std::complex<float>, std::int64_t>,
                     std::pair<std::complex<double>, std::int32_t>>;
using NumbersAndIndices = ::testing::Types<
    std::pair<float, std::int32_t>, std::pair<float, std::int64_t>, std::pair<double, std::int32_t>,
    std::pair<double, std::int64_t>, std::pair<std::complex<float>, std::int32_t>,
    std::pair<std::complex<float>, std::int64_t>, std::pair<std::complex<double>, std::int32_t>,
    std::pair<std::complex<double>, std::int64_t>>;
#endif

/// A random matrix in CSR form and as a dense one. Some rows are empty, one is full; the columns of
/// a row stand in any order.
template <class T, class I>
struct RandomCsr {
  Dense dense;
  std::vector<I> row_begin{0}, column;
  std::vector<Wide> value;

  RandomCsr(std::int64_t rows, std::int64_t columns, std::uint64_t seed, Data data)
      : dense{rows, columns} {
    std::mt19937_64 random(seed);
    for (std::int64_t row = 0; row < rows; ++row) {
      const auto one_in = row == rows / 2 ? 1u : row % 5 == 0 ? 1'000'000'000u : 4u;
      for (std::int64_t j = 0; j < columns; ++j) {
        if (random() % one_in == 0) column.push_back(static_cast<I>(j));
      }
      std::shuffle(column.begin() + static_cast<std::ptrdiff_t>(row_begin.back()), column.end(),
                   random);
      row_begin.push_back(static_cast<I>(column.size()));
    }
    set_values(numbers<T>(std::ssize(column), seed + 1, data));
  }
  void set_values(std::vector<Wide> values) {
    value = std::move(values);
    for (std::int64_t row = 0; row < dense.rows; ++row) {
      for (auto k = static_cast<std::size_t>(row_begin[static_cast<std::size_t>(row)]);
           k < static_cast<std::size_t>(row_begin[static_cast<std::size_t>(row) + 1]); ++k)
        dense(row, static_cast<std::int64_t>(column[k])) = value[k];
    }
  }
  [[nodiscard]] CsrMatrix<T, I> on_device() const {
    return {dense.rows, dense.columns, put(row_begin), put(column), put_numbers<T>(value)};
  }
};

}  // namespace troupe::test::reference
