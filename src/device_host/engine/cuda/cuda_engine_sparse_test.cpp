// The CUDA engine's sparse operations against host loops.

#include <cstring>
#include <limits>
#include <random>
#include <set>

#include "cuda_engine_rig.hpp"

namespace troupe::host {
namespace {

/// A random CSR matrix and its product with a vector.
template <class T, class I>
struct Csr {
  std::int64_t rows, columns;
  std::vector<I> row_begin{0};
  std::vector<I> column;
  std::vector<T> value;

  Csr(std::int64_t rows_, std::int64_t columns_, std::uint32_t seed)
      : rows(rows_), columns(columns_) {
    std::mt19937 random(seed);
    std::uniform_int_distribution<std::int64_t> pick(0, columns - 1), length(0, 12);
    std::uniform_real_distribution<double> number(-1, 1);
    for (std::int64_t row = 0; row < rows; ++row) {
      std::set<std::int64_t> chosen;
      // A few rows are empty, one is long.
      const auto wanted = row == rows / 2 ? columns / 2 : length(random);
      while (static_cast<std::int64_t>(chosen.size()) < wanted) chosen.insert(pick(random));
      for (const auto j : chosen) {
        column.push_back(static_cast<I>(j));
        value.push_back(static_cast<T>(number(random)));
      }
      row_begin.push_back(static_cast<I>(column.size()));
    }
  }
  [[nodiscard]] std::vector<T> times(const std::vector<T>& x, const std::vector<T>& y, double alpha,
                                     double beta) const {
    std::vector<T> result(y.size());
    for (std::size_t row = 0; row < y.size(); ++row) {
      double sum = 0;
      for (auto k = static_cast<std::size_t>(row_begin[row]);
           k < static_cast<std::size_t>(row_begin[row + 1]); ++k) {
        sum += double(value[k]) * double(x[static_cast<std::size_t>(column[k])]);
      }
      result[row] = static_cast<T>(alpha * sum + beta * double(y[row]));
    }
    return result;
  }
};

template <class Types>
class CudaSparse : public CudaEngine {
 protected:
  static sparse::Form csr(std::int64_t rows, std::int64_t columns, std::int64_t nonzeros) {
    return {.format = sparse::Format::csr,
            .index_dtype = dtype_of<typename Types::I>,
            .rows = rows,
            .columns = columns,
            .nonzeros = nonzeros,
            .stored = nonzeros};
  }
  /// y = A x
  static sparse::Spmv product(std::int64_t rows, std::int64_t columns, std::int64_t nonzeros,
                              const Operand& row_begin, const Operand& column, const Operand& value,
                              const Operand& x, const Operand& y) {
    return {dtype_of<typename Types::T>,
            blas::Transpose::no,
            {},
            csr(rows, columns, nonzeros),
            Scalar::of(typename Types::T(1)),
            Scalar::of(typename Types::T(0)),
            row_begin,
            column,
            value,
            x,
            y};
  }
};
template <class T_, class I_>
struct ValueAndIndex {
  using T = T_;
  using I = I_;
};
using SparseTypes =
    testing::Types<ValueAndIndex<float, std::int32_t>, ValueAndIndex<float, std::int64_t>,
                   ValueAndIndex<double, std::int32_t>, ValueAndIndex<double, std::int64_t>>;
TYPED_TEST_SUITE(CudaSparse, SparseTypes);

TYPED_TEST(CudaSparse, SpmvWithMixedFactorsRepeatsBitForBit) {
  using T = typename TypeParam::T;
  using I = typename TypeParam::I;
  Csr<T, I> a(2000, 1500, 11);
  const auto x = random_values<T>(1500, 12), y = random_values<T>(2000, 13);
  const auto nonzeros = static_cast<std::int64_t>(a.value.size());
  const auto rows = this->put(a.row_begin), columns = this->put(a.column),
             values = this->put(a.value);
  const auto dx = this->put(x);
  for (int mix = 0; mix < 4; ++mix) {
    const auto dy = this->put(y);  // elsewhere each time, so that the cached vectors are set anew
    const sparse::Spmv op{dtype_of<T>,
                          blas::Transpose::no,
                          {},
                          this->csr(2000, 1500, nonzeros),
                          this->template scalar<T>(1.25, (mix & 1) != 0),
                          this->template scalar<T>(-0.5, (mix & 2) != 0),
                          rows,
                          columns,
                          values,
                          dx,
                          dy};
    this->run(op);
    const auto first = this->template get<T>(dy);
    expect_near(first, a.times(x, y, 1.25, -0.5), 10);
    this->write(dy, y);
    this->run(op);
    const auto second = this->template get<T>(dy);
    EXPECT_EQ(std::memcmp(first.data(), second.data(), first.size() * sizeof(T)), 0);
  }
  // New values, same pattern.
  a.value = random_values<T>(a.value.size(), 14);
  this->write(values, a.value);
  const auto dy = this->put(y);
  this->run(this->product(2000, 1500, nonzeros, rows, columns, values, dx, dy));
  expect_near(this->template get<T>(dy), a.times(x, y, 1, 0), 10);
}

TYPED_TEST(CudaSparse, AnotherMatrixAtTheSameAddressIsAnother) {
  using T = typename TypeParam::T;
  using I = typename TypeParam::I;
  // The same shape and number of nonzeros, but all of them in one row: first, then last.
  constexpr std::int64_t kRows = 3000, kNonzeros = 2500;
  std::vector<I> column(kNonzeros);
  for (std::size_t k = 0; k < column.size(); ++k) column[k] = static_cast<I>(k);
  const std::vector<T> ones(kNonzeros, 1);
  auto rows = this->space((kRows + 1) * sizeof(I));
  const auto columns = this->put(column), values = this->put(ones), dx = this->put(ones);
  const auto dy = this->space(kRows * sizeof(T));
  for (std::uint32_t generation = 1; generation <= 2; ++generation) {
    std::vector<I> row_begin(kRows + 1, generation == 1 ? I(kNonzeros) : I(0));
    row_begin.front() = 0;
    row_begin.back() = I(kNonzeros);
    this->write(rows, row_begin);
    rows.generation = generation;
    this->run(this->product(kRows, kNonzeros, kNonzeros, rows, columns, values, dx, dy));
    std::vector<T> wanted(kRows, 0);
    (generation == 1 ? wanted.front() : wanted.back()) = T(kNonzeros);
    EXPECT_EQ(this->template get<T>(dy), wanted);
  }
}

/// A CSR matrix in sliced ELL form.
template <class T, class I>
struct Sell {
  std::vector<I> slice_begin{0};
  std::vector<I> column;
  std::vector<T> value;

  Sell(const Csr<T, I>& a, std::int64_t slice_rows) {
    for (std::int64_t first = 0; first < a.rows; first += slice_rows) {
      I longest = 0;
      for (std::int64_t i = 0; i < slice_rows; ++i)
        longest = std::max(longest, length(a, first + i));
      for (I k = 0; k < longest; ++k) {
        for (std::int64_t i = 0; i < slice_rows; ++i) {
          const bool there = k < length(a, first + i);
          const auto from =
              there ? static_cast<std::size_t>(a.row_begin[static_cast<std::size_t>(first + i)] + k)
                    : 0;
          column.push_back(there ? a.column[from] : I(-1));
          value.push_back(there ? a.value[from] : T(0));
        }
      }
      slice_begin.push_back(static_cast<I>(column.size()));
    }
  }
  static I length(const Csr<T, I>& a, std::int64_t row) {
    if (row >= a.rows) return 0;
    const auto i = static_cast<std::size_t>(row);
    return a.row_begin[i + 1] - a.row_begin[i];
  }
};

TYPED_TEST(CudaSparse, SlicedEllWithMixedFactorsRepeatsBitForBit) {
  using T = typename TypeParam::T;
  using I = typename TypeParam::I;
  constexpr std::int64_t kColumns = 1500;
  for (const std::int64_t rows : {2000, 1984, 20}) {  // the last slice is partial in the first
    for (const std::int64_t slice_rows : {32, 16}) {
      SCOPED_TRACE(std::to_string(rows) + " rows, slices of " + std::to_string(slice_rows));
      this->used_ = 0;
      const Csr<T, I> a(rows, kColumns, 19);
      const Sell<T, I> sell(a, slice_rows);
      const auto x = random_values<T>(kColumns, 12);
      const auto y = random_values<T>(static_cast<std::size_t>(rows), 13);
      sparse::Spmv op{dtype_of<T>,
                      blas::Transpose::no,
                      {},
                      {.format = sparse::Format::sell,
                       .index_dtype = dtype_of<I>,
                       .rows = rows,
                       .columns = kColumns,
                       .nonzeros = static_cast<std::int64_t>(a.value.size()),
                       .stored = static_cast<std::int64_t>(sell.value.size()),
                       .block = slice_rows},
                      {},
                      {},
                      this->put(sell.slice_begin),
                      this->put(sell.column),
                      this->put(sell.value),
                      this->put(x),
                      {}};
      // Another matrix than the one that was prepared at this address before.
      op.outer.generation = static_cast<std::uint32_t>(rows * 100 + slice_rows);
      for (int mix = 0; mix < 4; ++mix) {
        op.alpha = this->template scalar<T>(1.25, (mix & 1) != 0);
        op.beta = this->template scalar<T>(-0.5, (mix & 2) != 0);
        op.y = this->put(y);
        ASSERT_TRUE(op.check().ok());
        this->run(op);
        const auto first = this->template get<T>(op.y);
        expect_near(first, a.times(x, y, 1.25, -0.5), 10);
        this->write(op.y, y);
        this->run(op);
        const auto second = this->template get<T>(op.y);
        EXPECT_EQ(std::memcmp(first.data(), second.data(), first.size() * sizeof(T)), 0);
      }
      // beta = 0 by value: y is not read.
      op.alpha = Scalar::of(T(1));
      op.beta = Scalar::of(T(0));
      op.y = this->put(std::vector<T>(y.size(), std::numeric_limits<T>::quiet_NaN()));
      this->run(op);
      expect_near(this->template get<T>(op.y), a.times(x, y, 1, 0), 10);
    }
  }
}

TYPED_TEST(CudaSparse, SlicedEllWithoutEntriesScales) {
  using T = typename TypeParam::T;
  using I = typename TypeParam::I;
  // One slice of padding alone, then no matrix at all.
  sparse::Spmv op{dtype_of<T>,
                  blas::Transpose::no,
                  {},
                  {.format = sparse::Format::sell,
                   .index_dtype = dtype_of<I>,
                   .rows = 20,
                   .columns = 300,
                   .nonzeros = 0,
                   .stored = 32,
                   .block = 32},
                  Scalar::of(T(1)),
                  this->template scalar<T>(1.5, true),
                  this->put(std::vector<I>{0, 32}),
                  this->put(std::vector<I>(32, -1)),
                  this->put(std::vector<T>(32, 0)),
                  this->put(std::vector<T>(300, 1)),
                  this->put(std::vector<T>(20, 2))};
  ASSERT_TRUE(op.check().ok());
  this->run(op);
  EXPECT_EQ(this->template get<T>(op.y), std::vector<T>(20, T(3)));
  op.a.rows = op.a.stored = 0;
  ASSERT_TRUE(op.check().ok());
  this->run(op);
  EXPECT_EQ(this->template get<T>(op.y), std::vector<T>(20, T(3)));
}

TYPED_TEST(CudaSparse, EmptyAndManyMatrices) {
  using T = typename TypeParam::T;
  using I = typename TypeParam::I;
  const auto zeros = this->put(std::vector<I>(101, 0));
  const auto dy = this->put(std::vector<T>(100, 2)), dx = this->put(std::vector<T>(300, 1));
  const auto nothing = this->space(0);
  for (const bool there : {false, true}) {
    auto op = this->product(100, 300, 0, zeros, nothing, nothing, dx, dy);
    op.beta = this->template scalar<T>(1.5, there);
    this->run(op);
  }
  EXPECT_EQ(this->template get<T>(dy), std::vector<T>(100, T(4.5)));
  this->run(this->product(0, 300, 0, zeros, nothing, nothing, dx, nothing));

  // More shapes than are cached, twice over.
  const Csr<T, I> a(100, 200, 15);
  const auto rows = this->put(a.row_begin), columns = this->put(a.column),
             values = this->put(a.value);
  const auto x = std::vector<T>(300, 1), y = std::vector<T>(100, 0);
  for (int round = 0; round < 2; ++round) {
    for (std::int64_t width = 200; width < 300; ++width) {
      ASSERT_TRUE(this->queue(this->product(100, width, static_cast<std::int64_t>(a.value.size()),
                                            rows, columns, values, dx, dy))
                      .ok());
    }
    this->engine_->synchronize(library_lane("sparse")).take();
    expect_near(this->template get<T>(dy), a.times(x, y, 1, 0), 10);
  }
}

TYPED_TEST(CudaSparse, GathersAlsoRepeatedIndices) {
  using T = typename TypeParam::T;
  using I = typename TypeParam::I;
  const auto source = random_values<T>(100, 16);
  for (const std::size_t count : {0u, 1u, 99u, 5000u}) {
    std::mt19937 random(17);
    std::vector<I> index(count);
    std::vector<T> wanted(count);
    for (std::size_t i = 0; i < count; ++i) {
      index[i] = static_cast<I>(random() % source.size());
      wanted[i] = source[static_cast<std::size_t>(index[i])];
    }
    const auto result = this->space(count * sizeof(T));
    this->run(sparse::Gather{dtype_of<T>, dtype_of<I>, static_cast<std::int64_t>(count), 100,
                             this->put(index), this->put(source), result});
    EXPECT_EQ(this->template get<T>(result), wanted);
  }
}

}  // namespace
}  // namespace troupe::host
