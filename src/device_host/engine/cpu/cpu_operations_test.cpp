#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "cpu_engine_rig.hpp"

namespace troupe::host {
namespace {

template <class T>
class CpuEngineTyped : public ::testing::Test {
 protected:
  Rig rig;
};
using Reals = ::testing::Types<float, double>;
TYPED_TEST_SUITE(CpuEngineTyped, Reals);

// Vector operations

TYPED_TEST(CpuEngineTyped, VectorOperationsFollowTheirDefinition) {
  using T = TypeParam;
  for (const std::size_t n : {0u, 1u, 7u, 1000u}) {
    const auto x = random_values<T>(n, 1), y = random_values<T>(n, 2);
    auto expected = x;
    const auto length = static_cast<std::int64_t>(n);
    const auto dx = this->rig.put(x), dy = this->rig.put(y), dz = this->rig.put(x);
    ASSERT_TRUE(this->rig.execute(vectors::Multiply{dtype_of<T>, length, dx, dy, dz}));
    for (std::size_t i = 0; i < n; ++i) expected[i] = x[i] * y[i];
    EXPECT_EQ(this->rig.template get<T>(dz), expected);
    ASSERT_TRUE(this->rig.execute(vectors::Divide{dtype_of<T>, length, dx, dy, dz}));
    for (std::size_t i = 0; i < n; ++i) expected[i] = x[i] / y[i];
    EXPECT_EQ(this->rig.template get<T>(dz), expected);

    const auto dalpha = this->rig.put(std::vector<T>{T(1.5)});
    const auto da = this->rig.put(y);
    ASSERT_TRUE(this->rig.execute(vectors::Axpby{
        dtype_of<T>, length, {dalpha, by_value<T>(99).value}, by_value<T>(-2), dx, da}));
    for (std::size_t i = 0; i < n; ++i) expected[i] = T(1.5) * x[i] - T(2) * y[i];
    expect_near(this->rig.template get<T>(da), expected, 4);
  }
}

TYPED_TEST(CpuEngineTyped, DivisionByZeroIsIeee) {
  using T = TypeParam;
  const auto x = this->rig.put(std::vector<T>{1, -1, 0}),
             y = this->rig.put(std::vector<T>{0, 0, 0});
  ASSERT_TRUE(this->rig.execute(vectors::Divide{dtype_of<T>, 3, x, y, x}));
  const auto z = this->rig.template get<T>(x);
  EXPECT_EQ(z[0], std::numeric_limits<T>::infinity());
  EXPECT_EQ(z[1], -std::numeric_limits<T>::infinity());
  EXPECT_TRUE(std::isnan(z[2]));
}

TYPED_TEST(CpuEngineTyped, BetaZeroDoesNotReadTheResult) {
  using T = TypeParam;
  const T nan = std::numeric_limits<T>::quiet_NaN();
  const auto x = this->rig.put(std::vector<T>{1, 2}), y = this->rig.put(std::vector<T>{nan, nan});
  ASSERT_TRUE(
      this->rig.execute(vectors::Axpby{dtype_of<T>, 2, by_value<T>(3), by_value<T>(0), x, y}));
  EXPECT_EQ(this->rig.template get<T>(y), (std::vector<T>{3, 6}));

  const auto a = this->rig.put(std::vector<T>{1, 0, 0, 1}),
             z = this->rig.put(std::vector<T>{nan, nan});
  ASSERT_TRUE(this->rig.execute(blas::Gemv{dtype_of<T>, blas::Transpose::no, 0, 2, 2, 2, 1, 1,
                                           by_value<T>(1), by_value<T>(0), a, x, z}));
  EXPECT_EQ(this->rig.template get<T>(z), (std::vector<T>{1, 2}));
}

TYPED_TEST(CpuEngineTyped, AFactorInMemoryIsReadWhenTheOperationExecutes) {
  using T = TypeParam;
  const auto x = this->rig.put(std::vector<T>{1, 2, 3}), y = this->rig.put(std::vector<T>{4, 5, 6});
  const auto alpha = this->rig.put(std::vector<T>{0});
  ASSERT_TRUE(this->rig.queue(blas::Dot{dtype_of<T>, 3, 1, 1, x, y, alpha}));
  ASSERT_TRUE(this->rig.queue(blas::Scal{dtype_of<T>, 3, 1, {alpha, {}}, x}));
  ASSERT_TRUE(this->rig.engine->synchronize(library_lane("blas")));
  EXPECT_EQ(this->rig.template get<T>(x), (std::vector<T>{32, 64, 96}));
}

// BLAS

TYPED_TEST(CpuEngineTyped, BlasLevel1FollowsItsDefinitionWithIncrements) {
  using T = TypeParam;
  const std::int64_t n = 501, incx = 3, incy = 2;
  const auto x = random_values<T>(static_cast<std::size_t>(n * incx), 3);
  const auto y = random_values<T>(static_cast<std::size_t>(n * incy), 4);
  const auto at = [](const std::vector<T>& v, std::int64_t i) {
    return v[static_cast<std::size_t>(i)];
  };
  double dot = 0, squares = 0;
  auto axpy = y, copied = y, scaled = x;
  for (std::int64_t i = 0; i < n; ++i) {
    dot += static_cast<double>(at(x, i * incx)) * at(y, i * incy);
    squares += static_cast<double>(at(x, i * incx)) * at(x, i * incx);
    axpy[static_cast<std::size_t>(i * incy)] += T(0.5) * at(x, i * incx);
    copied[static_cast<std::size_t>(i * incy)] = at(x, i * incx);
    scaled[static_cast<std::size_t>(i * incx)] *= T(-3);
  }
  const auto dx = this->rig.put(x), dy = this->rig.put(y),
             result = this->rig.put(std::vector<T>{0});
  ASSERT_TRUE(this->rig.execute(blas::Dot{dtype_of<T>, n, incx, incy, dx, dy, result}));
  expect_near(this->rig.template get<T>(result), {static_cast<T>(dot)}, 200);
  ASSERT_TRUE(this->rig.execute(blas::Nrm2{dtype_of<T>, n, incx, dx, result}));
  expect_near(this->rig.template get<T>(result), {static_cast<T>(std::sqrt(squares))}, 200);
  ASSERT_TRUE(this->rig.execute(blas::Axpy{dtype_of<T>, n, incx, incy, by_value<T>(0.5), dx, dy}));
  expect_near(this->rig.template get<T>(dy), axpy, 4);
  ASSERT_TRUE(this->rig.execute(blas::Copy{dtype_of<T>, n, incx, incy, dx, dy}));
  EXPECT_EQ(this->rig.template get<T>(dy), copied);
  ASSERT_TRUE(this->rig.execute(blas::Scal{dtype_of<T>, n, incx, by_value<T>(-3), dx}));
  EXPECT_EQ(this->rig.template get<T>(dx), scaled);
}

TYPED_TEST(CpuEngineTyped, Nrm2DoesNotOverflow) {
  using T = TypeParam;
  const T large = std::numeric_limits<T>::max() / 4;
  const auto x = this->rig.put(std::vector<T>{large, large}),
             result = this->rig.put(std::vector<T>{0});
  ASSERT_TRUE(this->rig.execute(blas::Nrm2{dtype_of<T>, 2, 1, x, result}));
  EXPECT_NEAR(this->rig.template get<T>(result)[0] / large, std::sqrt(2.0), 1e-5);
}

TYPED_TEST(CpuEngineTyped, GemvAndGemmFollowTheirDefinition) {
  using T = TypeParam;
  const std::int64_t m = 13, n = 9, k = 7, ld = 17;
  const auto matrix = random_values<T>(static_cast<std::size_t>(ld * ld), 5);
  const auto other = random_values<T>(static_cast<std::size_t>(ld * ld), 6);
  const auto result = random_values<T>(static_cast<std::size_t>(ld * ld), 7);
  const auto element = [&](const std::vector<T>& v, blas::Transpose transpose, std::int64_t row,
                           std::int64_t column) {
    if (transpose == blas::Transpose::yes) std::swap(row, column);
    return static_cast<double>(v[static_cast<std::size_t>(row + column * ld)]);
  };
  for (const auto ta : {blas::Transpose::no, blas::Transpose::yes}) {
    const auto da = this->rig.put(matrix), db = this->rig.put(other);
    const std::int64_t rows = ta == blas::Transpose::no ? m : n,
                       columns = ta == blas::Transpose::no ? n : m;
    auto y = result;
    for (std::int64_t i = 0; i < rows; ++i) {
      double sum = 0;
      for (std::int64_t j = 0; j < columns; ++j)
        sum += element(matrix, ta, i, j) * other[static_cast<std::size_t>(2 * j)];
      auto& value = y[static_cast<std::size_t>(3 * i)];
      value = static_cast<T>(1.5 * sum - 0.5 * value);
    }
    const auto dy = this->rig.put(result);
    ASSERT_TRUE(this->rig.execute(blas::Gemv{dtype_of<T>, ta, 0, m, n, ld, 2, 3, by_value<T>(1.5),
                                             by_value<T>(-0.5), da, db, dy}));
    expect_near(this->rig.template get<T>(dy), y, 50);

    for (const auto tb : {blas::Transpose::no, blas::Transpose::yes}) {
      auto c = result;
      for (std::int64_t i = 0; i < m; ++i) {
        for (std::int64_t j = 0; j < n; ++j) {
          double sum = 0;
          for (std::int64_t l = 0; l < k; ++l)
            sum += element(matrix, ta, i, l) * element(other, tb, l, j);
          auto& value = c[static_cast<std::size_t>(i + j * ld)];
          value = static_cast<T>(2 * sum + 0.25 * value);
        }
      }
      const auto dc = this->rig.put(result);
      ASSERT_TRUE(this->rig.execute(blas::Gemm{dtype_of<T>, ta, tb, m, n, k, ld, ld, ld,
                                               by_value<T>(2), by_value<T>(0.25), da, db, dc}));
      expect_near(this->rig.template get<T>(dc), c, 50);
    }
  }
}

TYPED_TEST(CpuEngineTyped, SizesBeyond32BitsAreRefusedWhereTheyCannotBeSplit) {
  using T = TypeParam;
  const auto x = this->rig.put(std::vector<T>{1});
  const std::int64_t huge = std::int64_t{1} << 32;
  EXPECT_EQ(this->rig
                .queue(blas::Gemm{dtype_of<T>,
                                  {},
                                  {},
                                  huge,
                                  1,
                                  1,
                                  huge,
                                  1,
                                  huge,
                                  by_value<T>(1),
                                  by_value<T>(0),
                                  x,
                                  x,
                                  x})
                .code(),
            Errc::unsupported);
  EXPECT_EQ(this->rig.queue(blas::Scal{dtype_of<T>, 1, huge, by_value<T>(1), x}).code(),
            Errc::unsupported);
  EXPECT_EQ(this->rig.queue(blas::Scal{DType::i32, 1, 1, by_value<T>(1), x}).code(),
            Errc::unsupported);
}

// Sparse

template <class T, class I>
void check_sparse(Rig& rig) {
  const std::int64_t rows = 50, columns = 40;
  std::mt19937 generator(11);
  std::vector<I> row_begin = {0}, column;
  std::vector<T> value;
  std::vector<double> dense(static_cast<std::size_t>(rows * columns));
  for (std::int64_t i = 0; i < rows; ++i) {
    for (std::int64_t j = 0; j < columns; ++j) {
      if (generator() % 5 != 0 || i == 3) continue;  // row 3 is empty
      column.push_back(static_cast<I>(j));
      value.push_back(static_cast<T>(generator() % 100) / T(10));
      dense[static_cast<std::size_t>(i * columns + j)] = value.back();
    }
    row_begin.push_back(static_cast<I>(column.size()));
  }
  const auto x = random_values<T>(static_cast<std::size_t>(columns), 12);
  const auto y = random_values<T>(static_cast<std::size_t>(rows), 13);
  auto expected = y;
  for (std::int64_t i = 0; i < rows; ++i) {
    double sum = 0;
    for (std::int64_t j = 0; j < columns; ++j) {
      sum += dense[static_cast<std::size_t>(i * columns + j)] * x[static_cast<std::size_t>(j)];
    }
    expected[static_cast<std::size_t>(i)] =
        static_cast<T>(2 * sum + 0.5 * y[static_cast<std::size_t>(i)]);
  }
  const auto dy = rig.put(y), dx = rig.put(x), dcolumn = rig.put(column);
  const auto nonzeros = static_cast<std::int64_t>(value.size());
  const sparse::Spmv spmv{dtype_of<T>,
                          blas::Transpose::no,
                          {},
                          {.format = sparse::Format::csr,
                           .index_dtype = dtype_of<I>,
                           .rows = rows,
                           .columns = columns,
                           .nonzeros = nonzeros,
                           .stored = nonzeros},
                          by_value<T>(2),
                          by_value<T>(0.5),
                          rig.put(row_begin),
                          dcolumn,
                          rig.put(value),
                          dx,
                          dy};
  ASSERT_TRUE(rig.execute(spmv));
  expect_near(rig.get<T>(dy), expected, 200);

  const auto gathered = rig.put(std::vector<T>(column.size()));
  ASSERT_TRUE(
      rig.execute(sparse::Gather{dtype_of<T>, dtype_of<I>, static_cast<std::int64_t>(column.size()),
                                 columns, dcolumn, dx, gathered}));
  const auto actual = rig.get<T>(gathered);
  for (std::size_t i = 0; i < column.size(); ++i)
    ASSERT_EQ(actual[i], x[static_cast<std::size_t>(column[i])]);
}

TYPED_TEST(CpuEngineTyped, SparseOperationsFollowTheirDefinition) {
  check_sparse<TypeParam, std::int32_t>(this->rig);
  check_sparse<TypeParam, std::int64_t>(this->rig);
}

/// Sliced ELL against the rows it is made from: ragged, some empty, a long one, a last slice that
/// is not full, and slices longer than what the engine sums up at a time.
template <class T, class I>
void check_sliced(Rig& rig, std::int64_t rows, std::int64_t slice_rows) {
  const std::int64_t columns = 90;
  std::mt19937 generator(21);
  std::vector<std::vector<std::pair<std::int64_t, T>>> matrix(static_cast<std::size_t>(rows));
  std::int64_t nonzeros = 0;
  for (std::size_t row = 0; row < matrix.size(); ++row) {
    if (row % 7 == 3) continue;
    for (std::int64_t j = generator() % 4; j < columns; j += row == 5 ? 1 : 1 + generator() % 40) {
      matrix[row].emplace_back(j, static_cast<T>(generator() % 100) / T(10) - T(5));
      ++nonzeros;
    }
  }
  std::vector<I> slice_begin = {0}, column;
  std::vector<T> value;
  for (std::int64_t first = 0; first < rows; first += slice_rows) {
    const auto slice =
        std::span(matrix).subspan(static_cast<std::size_t>(first),
                                  static_cast<std::size_t>(std::min(slice_rows, rows - first)));
    std::size_t longest = 0;
    for (const auto& row : slice) longest = std::max(longest, row.size());
    for (std::size_t k = 0; k < longest; ++k) {
      for (std::size_t i = 0; i < static_cast<std::size_t>(slice_rows); ++i) {
        const bool there = i < slice.size() && k < slice[i].size();
        column.push_back(there ? static_cast<I>(slice[i][k].first) : I(-1));
        value.push_back(there ? slice[i][k].second : T(0));
      }
    }
    slice_begin.push_back(static_cast<I>(column.size()));
  }
  const auto x = random_values<T>(static_cast<std::size_t>(columns), 22);
  const auto y = random_values<T>(static_cast<std::size_t>(rows), 23);
  const auto times = [&](double alpha, double beta) {
    std::vector<T> result(y.size());
    for (std::size_t row = 0; row < y.size(); ++row) {
      double sum = 0;
      for (const auto& [j, v] : matrix[row]) sum += double(v) * x[static_cast<std::size_t>(j)];
      result[row] = static_cast<T>(alpha * sum + (beta == 0 ? 0 : beta * y[row]));
    }
    return result;
  };
  rig.reset();
  sparse::Spmv op{dtype_of<T>,
                  blas::Transpose::no,
                  {},
                  {.format = sparse::Format::sell,
                   .index_dtype = dtype_of<I>,
                   .rows = rows,
                   .columns = columns,
                   .nonzeros = nonzeros,
                   .stored = static_cast<std::int64_t>(value.size()),
                   .block = slice_rows},
                  by_value<T>(2),
                  by_value<T>(-0.5),
                  rig.put(slice_begin),
                  rig.put(column),
                  rig.put(value),
                  rig.put(x),
                  rig.put(y)};
  ASSERT_TRUE(op.check());
  ASSERT_TRUE(rig.execute(op));
  expect_near(rig.get<T>(op.y), times(2, -0.5), 400);

  op.alpha = {rig.put(std::vector<T>{-3}), by_value<T>(99).value};
  op.beta = {rig.put(std::vector<T>{0.25}), by_value<T>(99).value};
  op.y = rig.put(y);
  ASSERT_TRUE(rig.execute(op));
  expect_near(rig.get<T>(op.y), times(-3, 0.25), 400);

  op.beta = {rig.put(std::vector<T>{0}), by_value<T>(99).value};
  op.y = rig.put(std::vector<T>(y.size(), std::numeric_limits<T>::quiet_NaN()));
  ASSERT_TRUE(rig.execute(op));
  expect_near(rig.get<T>(op.y), times(-3, 0), 400);
}

TYPED_TEST(CpuEngineTyped, SlicedEllFollowsItsDefinition) {
  for (const auto& [rows, slice_rows] :
       {std::pair{96, 32}, {101, 32}, {20, 32}, {50, 1}, {301, 150}}) {
    SCOPED_TRACE(std::to_string(rows) + " rows, slices of " + std::to_string(slice_rows));
    check_sliced<TypeParam, std::int32_t>(this->rig, rows, slice_rows);
    check_sliced<TypeParam, std::int64_t>(this->rig, rows, slice_rows);
  }
}

}  // namespace
}  // namespace troupe::host
