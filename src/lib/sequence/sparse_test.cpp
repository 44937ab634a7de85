#include <functional>

#include <troupe/lib/primitives.hpp>
#include <troupe/lib/sequence.hpp>
#include <troupe/lib/sparse.hpp>
#include <troupe/sequence.hpp>

#include "sparse_formats.hpp"

// Recorded sequences of operations on sparse matrices, and of reductions: each is run often enough
// to become a graph, and gives the same bits every time.

namespace troupe::test {
namespace {

using reference::Data;

constexpr int kRunsOfSparse = 8;
constexpr std::int64_t kEquations = 300;

std::vector<double> drawn(std::int64_t count, std::uint64_t seed) {
  return reference::to_numbers<double>(reference::numbers<double>(count, seed, Data::fractions));
}

/// The same bits of `result` whether `calls` are made one by one, played or launched as a graph.
template <class T>
void expect_the_same_each_time(const GpuRef<T>& result, const std::function<void()>& calls) {
  calls();
  const auto expected = device().download(result);
  calls();
  EXPECT_EQ(device().download(result), expected) << "called again";
  const auto sequence = device().record(calls);
  for (int i = 0; i < kRunsOfSparse; ++i) {
    ASSERT_TRUE(sequence.run().wait().ok()) << i;
    ASSERT_EQ(device().download(result), expected) << i;
  }
}

TEST(SequencesOfSparse, Multiply) {
  const reference::RandomCsr<double, std::int32_t> random(90, 70, 31, Data::fractions);
  const auto a = random.on_device();
  const auto wide = put(drawn(90 * 5, 32)), narrow = put(drawn(70 * 5, 33));
  const auto c = device().alloc<double>(70 * 5), d = device().alloc<double>(90 * 5);
  expect_the_same_each_time(c, [&] {
    device().sparse().spmm(a, MatrixRef(wide, 90, 5), MatrixRef(c, 70, 5),
                           {.transpose_a = blas::Transpose::yes});
  });
  expect_the_same_each_time(
      d, [&] { device().sparse().spmm(a, MatrixRef(narrow, 70, 5), MatrixRef(d, 90, 5)); });
  const auto values = device().alloc<double>(a.value.length());
  const CsrMatrix<double, std::int32_t> sampled{90, 70, a.row_begin, a.column, values};
  expect_the_same_each_time(values, [&] {
    device().sparse().sddmm(MatrixRef(wide, 90, 5), MatrixRef(narrow, 70, 5), sampled,
                            {.transpose_b = blas::Transpose::yes});
  });
}

/// In each format, both ways.
TEST(SequencesOfSparse, MultiplyVectors) {
  using sparse::Format;
  const auto formats = reference::in_formats<double, std::int32_t>(
      90, 70, 46, Data::fractions,
      {Format::csr, Format::csc, Format::coo, Format::bsr, Format::sell});
  for (const auto& [name, a, dense] : formats) {
    SCOPED_TRACE(name);
    const auto x = put(drawn(dense.columns, 47)), y = device().alloc<double>(dense.rows);
    expect_the_same_each_time(y, [&, &matrix = a] { device().sparse().spmv(matrix, x, y); });
    const auto z = device().alloc<double>(dense.columns);
    expect_the_same_each_time(z, [&, &matrix = a] {
      device().sparse().spmv(blas::Transpose::yes, 1.0, matrix, y, 0.0, z);
    });
  }
}

/// In the formats of which spmm() makes something in memory of its own.
TEST(SequencesOfSparse, MultiplyFormats) {
  using sparse::Format;
  const auto formats = reference::in_formats<double, std::int64_t>(
      90, 70, 48, Data::fractions, {Format::csc, Format::coo, Format::blocked_ell});
  for (const auto& [name, a, dense] : formats) {
    SCOPED_TRACE(name);
    const MatrixRef b(put(drawn(dense.columns * 3, 49)), dense.columns, 3);
    const MatrixRef c(device().alloc<double>(dense.rows * 3), dense.rows, 3);
    expect_the_same_each_time(c.buffer, [&, &matrix = a] { device().sparse().spmm(matrix, b, c); });
  }
}

TEST(SequencesOfSparse, MultiplyWithAKnownStructure) {
  const reference::RandomCsr<double, std::int32_t> left(90, 70, 40, Data::fractions),
      right(70, 80, 41, Data::fractions);
  const auto a = left.on_device(), b = right.on_device();
  CsrMatrix<double, std::int32_t> c{90, 80, device().alloc<std::int32_t>(91), {}, {}};
  const auto count = device().sparse().spgemm(a, b, c, OnFailure::report).get();
  c.column = device().alloc<std::int32_t>(count), c.value = device().alloc<double>(count);
  ASSERT_EQ(device().sparse().spgemm(a, b, c).get(), count);
  expect_the_same_each_time(c.value, [&] { device().sparse().spgemm_reuse(a, b, c); });
}

TEST(SequencesOfSparse, Transpose) {
  const reference::RandomCsr<double, std::int32_t> random(90, 70, 34, Data::fractions);
  const auto a = random.on_device();
  const CsrMatrix<double, std::int32_t> transposed{70, 90, device().alloc<std::int32_t>(71),
                                                   device().alloc<std::int32_t>(a.column.length()),
                                                   device().alloc<double>(a.value.length())};
  expect_the_same_each_time(transposed.value, [&] { device().sparse().transpose(a, transposed); });
}

TEST(SequencesOfSparse, SolveSystemsOfFewDiagonals) {
  const auto dominant = put(std::vector<double>(kEquations, 9.0));
  const auto sides = put(drawn(4 * kEquations, 35)), right = put(drawn(kEquations, 36));
  const auto side = [&](std::int64_t i) { return sides.slice(i * kEquations, kEquations); };
  const auto x = device().alloc<double>(kEquations);
  expect_the_same_each_time(x, [&] {
    device().copy(right, x);
    device().sparse().gtsv(Tridiagonal{side(0), dominant, side(1)}, MatrixRef(x, kEquations, 1));
  });
  expect_the_same_each_time(x, [&] {
    device().copy(right, x);
    device().sparse().gtsv_strided(Tridiagonal{side(0), dominant, side(1)}, x, kEquations / 3, 3);
  });
  // The diagonals of these are destroyed.
  std::vector<GpuRef<double>> own;
  for (int d = 0; d < 5; ++d) own.push_back(device().alloc<double>(kEquations));
  const auto fill = [&] {
    for (int d = 0; d < 5; ++d) device().copy(d == 2 ? dominant : side(d - d / 3), own[d]);
    device().copy(right, x);
  };
  for (const auto way :
       {sparse::Elimination::thomas, sparse::Elimination::lu, sparse::Elimination::qr}) {
    expect_the_same_each_time(x, [&] {
      fill();
      device().sparse().gtsv_interleaved(Tridiagonal{own[1], own[2], own[3]}, x, kEquations / 3, 3,
                                         way);
    });
  }
  expect_the_same_each_time(x, [&] {
    fill();
    device().sparse().gpsv_interleaved(Pentadiagonal{own[0], own[1], own[2], own[3], own[4]}, x,
                                       kEquations / 3, 3);
  });
}

/// A graph of such a sequence is void where the values of its matrix are written, by another
/// command or by the sequence itself.
TEST(SequencesOfSparse, SolveTriangularSystems) {
  constexpr std::int64_t kN = 60, kColumns = 3;
  reference::RandomCsr<double, std::int32_t> random(kN, kN, 38, Data::fractions);
  std::vector<std::int32_t> row_begin{0}, column;
  for (std::int32_t row = 0; row < kN; ++row) {
    for (std::int32_t j = 0; j <= row; ++j)
      if (j == row || random.dense(row, j) != reference::Wide(0)) column.push_back(j);
    row_begin.push_back(static_cast<std::int32_t>(column.size()));
  }
  const auto count = std::ssize(column);
  const CsrMatrix<double, std::int32_t> a{kN, kN, put(row_begin), put(column),
                                          put(std::vector<double>(column.size(), 1.0))};
  const auto right = put(drawn(kN * kColumns, 39));
  const auto x = device().alloc<double>(kN * kColumns);
  const auto solve = [&] {
    device().sparse().spsm(a, MatrixRef(right, kN, kColumns), MatrixRef(x, kN, kColumns));
    device().sparse().spsv(a, x.slice(0, kN), x.slice(0, kN), {.transpose = blas::Transpose::yes});
  };
  expect_the_same_each_time(x, solve);

  const auto sequence = device().record(solve);
  for (int i = 0; i < kRunsOfSparse; ++i) {
    if (i % 3 == 2) device().fill(a.value, 1.0 + 0.25 * i);
    ASSERT_TRUE(sequence.run().wait().ok()) << i;
    const auto played = device().download(x);
    solve();
    ASSERT_EQ(device().download(x), played) << i;
  }
  const auto other = put(std::vector<double>(column.size(), 2.0));
  expect_the_same_each_time(x, [&] {
    device().copy(other, a.value);
    solve();
    device().fill(a.value.slice(count / 2, 1), 3.0);
    device().sparse().spsv(a, x.slice(kN, kN), x.slice(2 * kN, kN));
  });
}

TEST(SequencesOfSparse, Reduce) {
  const auto x = put(drawn(5000, 37));
  const auto offsets = put(std::vector<std::int64_t>{0, 7, 7, 4000, 5000});
  const auto some = device().alloc<double>(4), one = device().alloc<double>(1);
  const auto index = device().alloc<std::int64_t>(1);
  expect_the_same_each_time(some,
                            [&] { primitives::on(device()).segmented_reduce(x, offsets, some); });
  expect_the_same_each_time(
      one, [&] { primitives::on(device()).reduce(x, one, primitives::ReduceOp::prod); });
  expect_the_same_each_time(
      index, [&] { primitives::on(device()).arg_reduce(x, one, index, primitives::Extreme::max); });
}

TEST(SequencesOfSparse, CombineSparseVectors) {
  const auto x = put(drawn(300, 38)), y = put(drawn(1000, 39));
  std::vector<std::int32_t> places;
  for (int i = 0; i < 300; ++i) places.push_back(i * 7 % 1000);
  const auto index = put(places);
  const auto own_x = device().alloc<double>(300), own_y = device().alloc<double>(1000),
             result = device().alloc<double>(1);
  const auto copied = [&] { device().copy(x, own_x), device().copy(y, own_y); };
  expect_the_same_each_time(result, [&] { device().sparse().spvv(x, index, y, result); });
  expect_the_same_each_time(own_y, [&] {
    copied();
    device().sparse().axpby(2.0, x, index, 0.5, own_y);
    device().sparse().rot(own_x, index, own_y, 0.6, 0.8);
  });
  expect_the_same_each_time(own_y, [&] {
    copied();
    device().sparse().scatter(x, index, own_y);
  });
}

TEST(SequencesOfSparse, SortAndConvert) {
  const reference::RandomCsr<double, std::int32_t> random(90, 70, 40, Data::fractions);
  const auto a = random.on_device();
  const auto count = a.value.length();
  const auto indices = [&](std::int64_t length) { return device().alloc<std::int32_t>(length); };
  const auto values = device().alloc<double>(count);
  const CsrMatrix<double, std::int32_t> rows{90, 70, a.row_begin, indices(count), values};
  expect_the_same_each_time(values, [&] { device().sparse().csrsort(a, rows); });
  const auto row = indices(count), back = indices(91);
  const CooMatrix<double, std::int32_t> coordinates{90, 70, row, a.column, a.value};
  const CooMatrix<double, std::int32_t> sorted{90, 70, indices(count), indices(count), values};
  expect_the_same_each_time(values, [&] {
    device().sparse().csr2coo(a.row_begin, row);
    device().sparse().coosort(coordinates, sorted, sparse::SortBy::column);
  });
  expect_the_same_each_time(back, [&] { device().sparse().coo2csr(row, back); });
  const auto dense = device().alloc<double>(90 * 70);
  expect_the_same_each_time(
      dense, [&] { device().sparse().sparse_to_dense(a, MatrixRef(dense, 90, 70)); });
  expect_the_same_each_time(
      dense, [&] { device().sparse().sparse_to_dense(coordinates, MatrixRef(dense, 90, 70)); });
  // The first elements of the matrix in blocks of 2 x 2.
  const BsrMatrix<double, std::int32_t> blocks{2,
                                               35,
                                               2,
                                               BlockOrder::row,
                                               put(std::vector<std::int32_t>{0, 2, 3}),
                                               put(std::vector<std::int32_t>{3, 0, 9}),
                                               a.value.slice(0, 12)};
  const CsrMatrix<double, std::int32_t> expanded{4, 70, indices(5), indices(12),
                                                 device().alloc<double>(12)};
  expect_the_same_each_time(expanded.value, [&] { device().sparse().bsr2csr(blocks, expanded); });
}

}  // namespace
}  // namespace troupe::test
