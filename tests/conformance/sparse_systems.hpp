#pragma once

#include <algorithm>
#include <limits>
#include <random>
#include <utility>

#include <troupe/lib/direct.hpp>

#include "random_csr.hpp"

/// Sparse systems of linear equations for tests, and whether they have been solved.
namespace troupe::test::systems {

using namespace reference;
using direct::Kind;
using direct::View;

/// Skips a test where what the engine needs is not installed.
inline void skip_without_direct() {
  const auto probed =
      detail::submit(device().submitter(), direct::Release{direct::next_id()}).wait();
  if (probed.ok()) return;
  ASSERT_EQ(probed.code(), Errc::unsupported) << probed.error().message;
  ASSERT_NE(probed.error().message.find("not installed"), std::string::npos)
      << probed.error().message;
  EXPECT_EQ(device().take_error().code(), Errc::unsupported);
  GTEST_SKIP() << probed.error().message;
}
class DirectTest : public ::testing::Test {
 protected:
  void SetUp() override { skip_without_direct(); }
};

/// A matrix of a kind, its diagonal larger than the rest of its row. Indefinite ones have every
/// third element of the diagonal negative.
template <class T>
Dense dominant(std::int64_t n, Kind kind, std::uint64_t seed) {
  Dense a{n, n};
  std::mt19937_64 random(seed);
  const auto values = numbers<T>(n * n, seed + 1, Data::fractions);
  for (std::int64_t i = 0; i < n; ++i) {
    for (std::int64_t j = 0; j < n; ++j) {
      if (i == j || random() % static_cast<std::uint64_t>(n) >= 3) continue;
      a(i, j) = values[static_cast<std::size_t>(i * n + j)];
      if (kind != Kind::general) a(j, i) = kind == Kind::symmetric ? a(i, j) : std::conj(a(i, j));
    }
  }
  for (std::int64_t i = 0; i < n; ++i) {
    double sum = 1;
    for (std::int64_t j = 0; j < n; ++j) sum += std::abs(a(i, j)) + std::abs(a(j, i));
    const bool negative = kind != Kind::positive_definite && i % 3 == 1;
    a(i, i) = widen(to_number<T>(negative ? -sum : sum));
  }
  return a;
}

/// A matrix in CSR form: what of it counts and is not zero, and the diagonal.
template <class T, class I>
struct Stored {
  std::vector<I> row_begin{0}, column;
  std::vector<Wide> value;

  Stored(const Dense& a, View view) {
    for (std::int64_t i = 0; i < a.rows; ++i) {
      for (std::int64_t j = 0; j < a.columns; ++j) {
        if (a(i, j) == Wide(0) && i != j) continue;
        const bool counts = view == View::full || (view == View::lower ? j <= i : j >= i);
        if (!counts) continue;
        column.push_back(static_cast<I>(j));
        value.push_back(a(i, j));
      }
      row_begin.push_back(static_cast<I>(column.size()));
    }
  }
  [[nodiscard]] CsrMatrix<T, I> on_device() const {
    const auto n = std::ssize(row_begin) - 1;
    return {n, n, put(row_begin), put(column), put_numbers<T>(value)};
  }
  void write_to(const CsrMatrix<T, I>& matrix) const {
    device().upload(row_begin, matrix.row_begin);
    device().upload(column, matrix.column);
    device().upload(to_numbers<T>(value), matrix.value);
  }
};

inline double largest(const Dense& a) {
  double most = 0;
  for (const auto& x : a.element) most = std::max(most, std::abs(x));
  return most;
}
/// The largest sum of a row's magnitudes.
inline double norm(const Dense& a) {
  double most = 0;
  for (std::int64_t i = 0; i < a.rows; ++i) {
    double sum = 0;
    for (std::int64_t j = 0; j < a.columns; ++j) sum += std::abs(a(i, j));
    most = std::max(most, sum);
  }
  return most;
}

/// Whether X solves A X = B but for a residual of 30 n eps (|A| |X| + |B|), in norm.
template <class T>
::testing::AssertionResult solves(const Dense& a, const Dense& x, const Dense& b) {
  const auto missing = b + Wide(-1) * (a * x);
  const auto eps = static_cast<double>(std::numeric_limits<RealOf<T>>::epsilon());
  const double bound = 30 * static_cast<double>(a.rows) * eps * (norm(a) * largest(x) + largest(b));
  for (const auto& residual : missing.element) {
    if (!(std::abs(residual) <= bound))
      return ::testing::AssertionFailure() << "a residual of " << residual << " above " << bound;
  }
  return ::testing::AssertionSuccess();
}

template <class T>
Dense random_columns(std::int64_t n, std::int64_t columns, std::uint64_t seed) {
  return {n, columns, numbers<T>(n * columns, seed, Data::fractions)};
}

/// Expects that the solver solves A X = B with three columns, and gives X's memory.
template <class T, class I>
std::vector<T> expect_solved(DirectSolver<T, I> solver, const Dense& a,
                             const direct::SolveOptions& options = {}) {
  const auto b = random_columns<T>(a.rows, 3, 77);
  const auto on_device = put_matrix<T>(b, a.rows + 2), x = put_matrix<T>(b, a.rows + 1);
  EXPECT_EQ(solver.solve(on_device, x, options).get(), 0);
  EXPECT_TRUE(solves<T>(op(a, options.transpose), fetched(x), b));
  const auto memory = device().download(x.buffer);
  for (const auto at : {a.rows, 2 * a.rows + 1})
    EXPECT_EQ(memory[static_cast<std::size_t>(at)], kFiller<T>) << "written beyond a column";
  return memory;
}

}  // namespace troupe::test::systems
