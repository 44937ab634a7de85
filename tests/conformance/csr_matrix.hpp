#pragma once

#include <cstdint>
#include <random>
#include <utility>
#include <vector>

#include <troupe/lib/sparse.hpp>

#include "conformance.hpp"

/// Matrices of real numbers in CSR form, on the host.
namespace troupe::test {

#ifdef TROUPE_BRIEF_TESTS
using RealsAndIndices =
    ::testing::Types<std::pair<float, std::int32_t>, std::pair<double, std::int64_t>>;
#else
using RealsAndIndices =
    ::testing::Types<std::pair<float, std::int32_t>, std::pair<float, std::int64_t>,
                     std::pair<double, std::int32_t>, std::pair<double, std::int64_t>>;
#endif

template <class T, class I>
struct Matrix {
  std::int64_t rows, columns;
  std::vector<I> row_begin{0}, column;
  std::vector<T> value;

  /// Random; some rows empty, one of them dense.
  Matrix(std::int64_t m, std::int64_t n, std::uint64_t seed) : rows(m), columns(n) {
    std::mt19937_64 random(seed);
    for (std::int64_t row = 0; row < m; ++row) {
      const auto one_in = row == m / 2 ? 1u : row % 5 == 0 ? 1'000'000'000u : 7u;
      for (std::int64_t c = 0; c < n; ++c) {
        if (random() % one_in == 0) column.push_back(static_cast<I>(c));
      }
      row_begin.push_back(static_cast<I>(column.size()));
    }
    value = random_values<T>(std::ssize(column), seed + 1);
  }
  [[nodiscard]] CsrMatrix<T, I> on_device() const {
    return {rows, columns, put(row_begin), put(column), put(value)};
  }
  [[nodiscard]] std::vector<double> times(const std::vector<T>& x) const {
    std::vector<double> y;
    for (std::size_t row = 0; row + 1 < row_begin.size(); ++row) {
      double sum = 0;
      for (auto at = static_cast<std::size_t>(row_begin[row]);
           at < static_cast<std::size_t>(row_begin[row + 1]); ++at) {
        sum += double{value[at]} * double{x[static_cast<std::size_t>(column[at])]};
      }
      y.push_back(sum);
    }
    return y;
  }
};

}  // namespace troupe::test
