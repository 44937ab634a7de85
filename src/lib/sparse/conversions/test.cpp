// Sparse matrices as dense ones and the other way.
#include "random_csr.hpp"

namespace troupe::test::reference {
namespace {

template <class Pair>
class SparseConversionOps : public ::testing::Test {};
TYPED_TEST_SUITE(SparseConversionOps, NumbersAndIndices);

constexpr blas::Order kConvertedOrders[] = {blas::Order::column, blas::Order::row};
constexpr std::pair<std::int64_t, std::int64_t> kConvertedShapes[] = {
    {1, 1}, {10, 10}, {70, 33}, {33, 700}, {1, 100}, {100, 1}, {0, 3}, {3, 0}};

/// A dense matrix on the device, with gaps or without.
template <class T>
MatrixRef<GpuRef<T>> put_converted(const Dense& a, blas::Order order, std::int64_t gap) {
  const auto length = order == blas::Order::column ? a.rows : a.columns;
  const auto leading = std::max<std::int64_t>(1, length) + gap;
  return {put_numbers<T>(spread_in(order, a, leading)), a.rows, a.columns, leading};
}

/// What a dense matrix has in a compressed form by rows: offsets, index and value. Of the
/// transposed matrix that is the form by columns.
template <class I>
struct NonzerosByLine {
  std::vector<I> begin{0}, line, index;
  std::vector<Wide> value;

  explicit NonzerosByLine(const Dense& a) {
    for (std::int64_t i = 0; i < a.rows; ++i) {
      for (std::int64_t j = 0; j < a.columns; ++j) {
        if (a(i, j) == Wide(0)) continue;
        line.push_back(static_cast<I>(i)), index.push_back(static_cast<I>(j));
        value.push_back(a(i, j));
      }
      begin.push_back(static_cast<I>(index.size()));
    }
  }
};

/// `values`, and -7 behind them.
template <class V>
std::vector<V> filled_with_sevens(std::vector<V> values, std::int64_t length) {
  values.resize(static_cast<std::size_t>(length), V(-7));
  return values;
}
template <class V>
GpuRef<V> all_sevens(std::int64_t length) {
  return put(std::vector<V>(static_cast<std::size_t>(length), V(-7)));
}

/// A random matrix of which most elements are 0.
template <class T>
Dense converted_matrix(std::int64_t rows, std::int64_t columns, std::uint64_t seed) {
  return RandomCsr<T, std::int64_t>(rows, columns, seed, Data::integers).dense;
}

TYPED_TEST(SparseConversionOps, SparseToDense) {
  using T = typename TypeParam::first_type;
  using I = typename TypeParam::second_type;
  for (const auto& [rows, columns] : kConvertedShapes) {
    const RandomCsr<T, I> a(rows, columns, 121, Data::fractions);
    const NonzerosByLine<I> by_row(a.dense), by_column(op(a.dense, Transpose::yes));
    const CscMatrix<T, I> csc{rows, columns, put(by_column.begin), put(by_column.index),
                              put_numbers<T>(by_column.value)};
    const CooMatrix<T, I> coo{rows, columns, put(by_row.line), put(by_row.index),
                              put_numbers<T>(by_row.value)};
    const auto csr = a.on_device();
    Dense sevens{rows, columns};
    std::fill(sevens.element.begin(), sevens.element.end(), Wide(-7));
    for (const auto order : kConvertedOrders) {
      for (const std::int64_t gap : {0, 3}) {
        SCOPED_TRACE(::testing::Message() << rows << "x" << columns << ", order "
                                          << static_cast<int>(order) << ", gap " << gap);
        const auto expect = [&](const auto& matrix) {
          const auto dense = put_converted<T>(sevens, order, gap);
          device().sparse().sparse_to_dense(matrix, dense, order);
          EXPECT_EQ(got(dense.buffer), spread_in(order, a.dense, dense.leading));
        };
        expect(csr);
        expect(csc);
        expect(coo);
      }
    }
  }
}

TYPED_TEST(SparseConversionOps, BlockedEllToDense) {
  using T = typename TypeParam::first_type;
  using I = typename TypeParam::second_type;
  for (const std::int64_t block : {1, 2, 5}) {
    for (const std::int64_t width : {0, 1, 3}) {
      const std::int64_t block_rows = 4, block_columns = 6;
      const auto value = numbers<T>(block_rows * block * width * block, 122, Data::fractions);
      std::vector<I> column;
      Dense expected{block_rows * block, block_columns * block};
      for (std::int64_t i = 0; i < block_rows; ++i) {
        for (std::int64_t k = 0; k < width; ++k) {
          // In any order; the last block of one row is padding, and so are all of another.
          const bool padding = i == 2 || (i == 1 && k == width - 1);
          const std::int64_t j = (5 * k + i) % block_columns;
          column.push_back(static_cast<I>(padding ? -1 : j));
          for (std::int64_t at = 0; at < block * block && !padding; ++at) {
            const auto row = i * block + at / block;
            expected(row, j * block + at % block) =
                value[static_cast<std::size_t>(row * width * block + k * block + at % block)];
          }
        }
      }
      const BlockedEllMatrix<T, I> a{expected.rows, expected.columns, block,
                                     width,         put(column),      put_numbers<T>(value)};
      for (const auto order : kConvertedOrders) {
        SCOPED_TRACE(::testing::Message() << "block " << block << ", width " << width << ", order "
                                          << static_cast<int>(order));
        Dense sevens{expected.rows, expected.columns};
        std::fill(sevens.element.begin(), sevens.element.end(), Wide(-7));
        const auto dense = put_converted<T>(sevens, order, 1);
        device().sparse().sparse_to_dense(a, dense, order);
        EXPECT_EQ(got(dense.buffer), spread_in(order, expected, dense.leading));
      }
    }
  }
}

/// With just enough room, and with more.
TYPED_TEST(SparseConversionOps, DenseToSparse) {
  using T = typename TypeParam::first_type;
  using I = typename TypeParam::second_type;
  for (const auto& [rows, columns] : kConvertedShapes) {
    const auto a = converted_matrix<T>(rows, columns, 123);
    const NonzerosByLine<I> by_row(a), by_column(op(a, Transpose::yes));
    const auto count = std::ssize(by_row.value);
    for (const auto order : kConvertedOrders) {
      for (const std::int64_t more : {0, 3}) {
        SCOPED_TRACE(::testing::Message()
                     << rows << "x" << columns << ", order " << static_cast<int>(order)
                     << ", room for " << more << " more");
        const auto room = count + more;
        const auto dense = put_converted<T>(a, order, more);
        const CsrMatrix<T, I> csr{rows, columns, all_sevens<I>(rows + 1), all_sevens<I>(room),
                                  all_sevens<T>(room)};
        EXPECT_EQ(device().sparse().dense_to_sparse(dense, csr, {order}).get(), count);
        EXPECT_EQ(device().download(csr.row_begin), by_row.begin);
        EXPECT_EQ(device().download(csr.column), filled_with_sevens(by_row.index, room));
        EXPECT_EQ(got(csr.value), filled_with_sevens(by_row.value, room));
        const CscMatrix<T, I> csc{rows, columns, all_sevens<I>(columns + 1), all_sevens<I>(room),
                                  all_sevens<T>(room)};
        EXPECT_EQ(device().sparse().dense_to_sparse(dense, csc, {order}).get(), count);
        EXPECT_EQ(device().download(csc.column_begin), by_column.begin);
        EXPECT_EQ(device().download(csc.row), filled_with_sevens(by_column.index, room));
        EXPECT_EQ(got(csc.value), filled_with_sevens(by_column.value, room));
        const CooMatrix<T, I> coo{rows, columns, all_sevens<I>(room), all_sevens<I>(room),
                                  all_sevens<T>(room)};
        EXPECT_EQ(device().sparse().dense_to_sparse(dense, coo, {order}).get(), count);
        EXPECT_EQ(device().download(coo.row), filled_with_sevens(by_row.line, room));
        EXPECT_EQ(device().download(coo.column), filled_with_sevens(by_row.index, room));
        EXPECT_EQ(got(coo.value), filled_with_sevens(by_row.value, room));
      }
    }
  }
}

/// So many lines that the cuda engine has a thread for each of them.
TYPED_TEST(SparseConversionOps, DenseToSparseOfManyLines) {
  using T = typename TypeParam::first_type;
  using I = typename TypeParam::second_type;
  constexpr std::int64_t kLines = 20'000, kLength = 7;
  const auto a = converted_matrix<T>(kLines, kLength, 124);
  const NonzerosByLine<I> expected(a);
  const auto count = std::ssize(expected.value);
  for (const auto order : kConvertedOrders) {
    const CsrMatrix<T, I> csr{kLines, kLength, all_sevens<I>(kLines + 1), all_sevens<I>(count),
                              all_sevens<T>(count)};
    EXPECT_EQ(device().sparse().dense_to_sparse(put_converted<T>(a, order, 0), csr, {order}).get(),
              count);
    EXPECT_EQ(device().download(csr.row_begin), expected.begin);
    EXPECT_EQ(device().download(csr.column), expected.index);
    EXPECT_EQ(got(csr.value), expected.value);
    const auto dense = put_converted<T>(Dense{kLines, kLength}, order, 0);
    device().sparse().sparse_to_dense(csr, dense, order);
    EXPECT_EQ(got(dense.buffer), spread_in(order, a, dense.leading));
  }
}

TYPED_TEST(SparseConversionOps, DenseToSparseWithoutRoomFailsOrTells) {
  using T = typename TypeParam::first_type;
  using I = typename TypeParam::second_type;
  const auto a = converted_matrix<T>(40, 30, 125);
  const NonzerosByLine<I> expected(a);
  const auto count = std::ssize(expected.value);
  const auto dense = put_converted<T>(a, blas::Order::column, 0);
  const auto room = count - 1;
  const CsrMatrix<T, I> small{40, 30, all_sevens<I>(41), all_sevens<I>(room), all_sevens<T>(room)};
  const DenseToSparseOptions report{.on_failure = OnFailure::report};
  EXPECT_EQ(device().sparse().dense_to_sparse(dense, small, report).get(), count);
  EXPECT_EQ(device().download(small.row_begin), expected.begin);
  EXPECT_EQ(device().download(small.column), filled_with_sevens(std::vector<I>(), room));
  EXPECT_EQ(device().download(small.value), filled_with_sevens(std::vector<T>(), room));
  const CooMatrix<T, I> coordinates{40, 30, all_sevens<I>(room), all_sevens<I>(room),
                                    all_sevens<T>(room)};
  EXPECT_EQ(device().sparse().dense_to_sparse(dense, coordinates, report).get(), count);
  EXPECT_EQ(device().download(coordinates.row), filled_with_sevens(std::vector<I>(), room));
  EXPECT_TRUE(device().take_error().ok());

  const auto failed = device().sparse().dense_to_sparse(dense, small);
  EXPECT_EQ(failed.wait().code(), Errc::invalid);
  EXPECT_NE(failed.wait().error().message.find("overflow: the result has " + std::to_string(count) +
                                               " nonzeros, room for " + std::to_string(room)),
            std::string::npos)
      << failed.wait().error().message;
  EXPECT_FALSE(small.row_begin.valid());
  EXPECT_FALSE(small.value.valid());
  EXPECT_TRUE(dense.buffer.valid());
  EXPECT_EQ(device().take_error().code(), Errc::invalid);
}

TYPED_TEST(SparseConversionOps, DenseToSparseCountsFirst) {
  using T = typename TypeParam::first_type;
  using I = typename TypeParam::second_type;
  const auto a = converted_matrix<T>(40, 30, 126);
  const NonzerosByLine<I> expected(a);
  const auto dense = put_converted<T>(a, blas::Order::row, 0);
  const DenseToSparseOptions options{blas::Order::row, OnFailure::report};
  CsrMatrix<T, I> csr{40, 30, all_sevens<I>(41), {}, {}};
  const auto count = device().sparse().dense_to_sparse(dense, csr, options).get();
  ASSERT_EQ(count, std::ssize(expected.value));
  EXPECT_EQ(device().download(csr.row_begin), expected.begin);
  const CooMatrix<T, I> none{40, 30, {}, {}, {}};
  EXPECT_EQ(device().sparse().dense_to_sparse(dense, none, options).get(), count);
  csr.column = all_sevens<I>(count), csr.value = all_sevens<T>(count);
  EXPECT_EQ(device().sparse().dense_to_sparse(dense, csr, options).get(), count);
  EXPECT_EQ(got(csr.value), expected.value);
}

/// -0 is 0, a NaN is not, and a complex number is 0 only if both parts are.
TYPED_TEST(SparseConversionOps, WhatIsZero) {
  using T = typename TypeParam::first_type;
  using I = typename TypeParam::second_type;
  using R = RealOf<T>;
  const T nan = T(std::numeric_limits<R>::quiet_NaN());
  const auto last = number<T>(ComplexElement<T> ? 0 : 1, 1);
  const auto values = put(std::vector<T>{T(0), T(R(-0.0)), nan, last});
  const CooMatrix<T, I> coo{4, 1, all_sevens<I>(2), all_sevens<I>(2), all_sevens<T>(2)};
  EXPECT_EQ(device().sparse().dense_to_sparse(MatrixRef(values, 4, 1), coo).get(), 2);
  EXPECT_EQ(device().download(coo.row), (std::vector<I>{2, 3}));
  EXPECT_TRUE(std::isnan(std::real(device().download(coo.value)[0])));
  EXPECT_EQ(device().download(coo.value)[1], last);
}

/// The cuda engine does not look.
TYPED_TEST(SparseConversionOps, ElementsOutsideAreLeftOut) {
  using T = typename TypeParam::first_type;
  using I = typename TypeParam::second_type;
  if (on_cuda()) GTEST_SKIP() << "what the indices say is checked by the cpu engine only";
  constexpr I kLarge = std::numeric_limits<I>::max();
  const auto value = put(std::vector<T>{T(1), T(2), T(3)});
  const auto dense = MatrixRef(all_sevens<T>(4), 2, 2);
  const auto expect = [&](const auto& matrix, const std::vector<T>& expected) {
    device().sparse().sparse_to_dense(matrix, dense);
    EXPECT_EQ(device().download(dense.buffer), expected);
  };
  expect(CsrMatrix<T, I>{2, 2, put(std::vector<I>{-4, 2, kLarge}),
                         put(std::vector<I>{2, 1, kLarge}), value},
         {T(0), T(0), T(2), T(0)});
  expect(CooMatrix<T, I>{2, 2, put(std::vector<I>{-1, 1, 2}), put(std::vector<I>{0, 0, 0}), value},
         {T(0), T(2), T(0), T(0)});
  expect(BlockedEllMatrix<T, I>{2, 2, 1, 1, put(std::vector<I>{2, 1}), value.slice(0, 2)},
         {T(0), T(0), T(0), T(2)});
}

TYPED_TEST(SparseConversionOps, OfMatricesThatDoNotFit) {
  using T = typename TypeParam::first_type;
  using I = typename TypeParam::second_type;
  const auto a = RandomCsr<T, I>(6, 5, 127, Data::integers).on_device();
  const auto count = a.value.length();
  const auto buffer = device().template alloc<T>(64);
  const MatrixRef<GpuRef<T>> dense(buffer, 6, 5);
  const auto refused = [&](const auto& future) {
    ASSERT_TRUE(future.ready());
    EXPECT_EQ(future.wait().code(), Errc::invalid);
    EXPECT_EQ(device().take_error().code(), Errc::invalid);
  };
  refused(device().sparse().sparse_to_dense(a, MatrixRef(buffer, 5, 5, 6)));
  refused(device().sparse().sparse_to_dense(a, MatrixRef(buffer, 6, 6)));
  refused(device().sparse().sparse_to_dense(a, MatrixRef(a.value, 6, 5)));
  const auto with = [&](auto change) {
    auto bad = a;
    change(bad);
    refused(device().sparse().sparse_to_dense(bad, dense));
    refused(device().sparse().dense_to_sparse(dense, bad));
  };
  with([](auto& bad) { bad.rows = 5; });
  with([](auto& bad) { bad.columns = 4; });
  with([](auto& bad) { bad.row_begin = bad.row_begin.slice(0, 6); });
  with([&](auto& bad) { bad.column = bad.column.slice(0, count - 1); });
  with([](auto& bad) { bad.column = bad.row_begin; });
  refused(device().sparse().sparse_to_dense(BlockedEllMatrix<T, I>{6, 5, 2, 1, a.column, a.value},
                                            dense));
}

TEST_F(BadArguments, OfSparseMatricesAsDenseOnes) {
  using namespace sparse;
  const auto out = put(std::vector<double>(12)).operand();
  const SparseToDense good{DType::f64, DType::i32, Format::csr, blas::Order::row, {}, 3, 4, 8, 4, i,
                           i,          x,          out};
  const BlockedEllToDense blocks{DType::f64, DType::i32, blas::Order::column, {}, 4, 2, 2, 1, 4, i,
                                 x,          out};
  const auto with = [](auto op, auto change, Errc code = Errc::invalid) {
    change(op);
    expect_refused(op, code);
  };
  const auto wrong = [&](const auto& op) {
    with(op, [](auto& bad) { bad.rows = -1; });
    with(op, [](auto& bad) { bad.columns = -1; });
    with(op, [](auto& bad) { bad.columns = std::int64_t{1} << 31; });
    with(op, [](auto& bad) { bad.leading = 2; });
    with(op, [](auto& bad) { bad.leading = 50; });
    with(op, [](auto& bad) { bad.order = static_cast<blas::Order>(2); });
    with(op, [](auto& bad) { bad.index_dtype = DType::f32; });
    with(op, [&](auto& bad) { bad.value = unaligned; });
    with(op, [&](auto& bad) { bad.dense = absent; });
    with(op, [&](auto& bad) { bad.dense = x; });  // which is read as well
    with(
        op, [](auto& bad) { bad.dtype = DType::f16; }, Errc::unsupported);
  };
  wrong(good);
  wrong(blocks);
  with(good, [](auto& bad) { bad.nonzeros = -1; });
  with(good, [](auto& bad) { bad.nonzeros = 17; });
  with(good, [](auto& bad) { bad.format = static_cast<Format>(3); });
  with(good, [&](auto& bad) { bad.offsets = absent; });
  with(good, [](auto& bad) { bad.offsets.bytes = 12; });
  with(good, [](auto& bad) { bad.format = Format::csc, bad.offsets.bytes = 16; });
  with(good, [](auto& bad) { bad.format = Format::coo, bad.offsets.bytes = 28; });
  with(blocks, [](auto& bad) { bad.block = 0; });
  with(blocks, [](auto& bad) { bad.block = 3; });
  with(blocks, [](auto& bad) { bad.width = -1; });
  with(blocks, [](auto& bad) { bad.width = 3; });
  with(blocks, [](auto& bad) { bad.width = std::int64_t{1} << 62; });
  with(blocks, [&](auto& bad) { bad.column = absent; });
}

TEST_F(BadArguments, OfDenseMatricesAsSparseOnes) {
  using sparse::DenseToSparse, sparse::Format;
  const auto cell = device().submitter().result_cell(sizeof(std::int64_t)).take();
  const auto indices = put(std::vector<std::int32_t>(16));
  const auto values = put(std::vector<double>(8)).operand();
  const DenseToSparse good{DType::f64,
                           DType::i32,
                           OnFailure::error,
                           Format::csr,
                           blas::Order::column,
                           {},
                           4,
                           3,
                           4,
                           8,
                           x,
                           indices.slice(0, 5).operand(),
                           indices.slice(8, 8).operand(),
                           values,
                           cell.where};
  const auto with = [&](auto change, Errc code = Errc::invalid) {
    auto bad = good;
    change(bad);
    expect_refused(bad, code);
  };
  with([](auto& bad) { bad.rows = -1; });
  with([](auto& bad) { bad.columns = -1; });
  with([](auto& bad) { bad.rows = 5; });
  with([](auto& bad) { bad.columns = 5; });
  with([](auto& bad) { bad.columns = std::int64_t{1} << 31; });
  with([](auto& bad) { bad.capacity = -1; });
  with([](auto& bad) { bad.capacity = 9; });
  with([](auto& bad) { bad.leading = 3; });
  with([](auto& bad) { bad.leading = 7; });
  with([](auto& bad) { bad.order = static_cast<blas::Order>(2); });
  with([](auto& bad) { bad.format = static_cast<Format>(3); });
  with([](auto& bad) { bad.format = Format::coo; });  // 8 rows needed
  with([](auto& bad) { bad.on_failure = static_cast<OnFailure>(2); });
  with([](auto& bad) { bad.index_dtype = DType::u64; });
  with([&](auto& bad) { bad.dense = absent; });
  with([&](auto& bad) { bad.dense = unaligned; });
  with([&](auto& bad) { bad.offsets = absent; });
  with([&](auto& bad) { bad.index = absent; });
  with([&](auto& bad) {
    bad.index = i;
    bad.offsets = i;
  });
  with([&](auto& bad) { bad.value = absent; });
  with([&](auto& bad) { bad.value = x; });  // which is read as well
  with([&](auto& bad) { bad.nonzeros = absent; });
  with([&](auto& bad) { bad.nonzeros = i; });  // not pinned
  with([](auto& bad) { bad.dtype = DType::bf16; }, Errc::unsupported);
}

}  // namespace
}  // namespace troupe::test::reference
