// Transposed sparse matrices.
#include "random_csr.hpp"

namespace troupe::test::reference {
namespace {

template <class Pair>
class SparseTranspose : public ::testing::Test {};
TYPED_TEST_SUITE(SparseTranspose, NumbersAndIndices);

/// Of a matrix whose rows are not sorted; the result's are.
TYPED_TEST(SparseTranspose, OfMatricesOfAnyShape) {
  using T = typename TypeParam::first_type;
  using I = typename TypeParam::second_type;
  for (const auto& [rows, columns] : {std::pair<std::int64_t, std::int64_t>{1, 1},
                                      {10, 10},
                                      {70, 33},
                                      {33, 700},
                                      {1, 40},
                                      {40, 1},
                                      {0, 3},
                                      {3, 0}}) {
    SCOPED_TRACE(::testing::Message() << rows << "x" << columns);
    const RandomCsr<T, I> a(rows, columns, 91, Data::fractions);
    std::vector<I> row_begin{0}, column;
    std::vector<Wide> value;
    for (std::int64_t j = 0; j < columns; ++j) {
      for (std::int64_t row = 0; row < rows; ++row) {
        if (a.dense(row, j) == Wide(0)) continue;
        column.push_back(static_cast<I>(row));
        value.push_back(a.dense(row, j));
      }
      row_begin.push_back(static_cast<I>(column.size()));
    }
    ASSERT_EQ(column.size(), a.column.size()) << "an element is zero";
    const auto count = std::ssize(column);
    const CsrMatrix<T, I> result{columns, rows, device().template alloc<I>(columns + 1),
                                 device().template alloc<I>(count),
                                 device().template alloc<T>(count)};
    device().sparse().transpose(a.on_device(), result);
    EXPECT_EQ(device().download(result.row_begin), row_begin);
    EXPECT_EQ(device().download(result.column), column);
    EXPECT_EQ(got(result.value), value);
  }
}

/// Elements of the same place stay in their order.
TYPED_TEST(SparseTranspose, OfAMatrixThatNamesAPlaceTwice) {
  using T = typename TypeParam::first_type;
  using I = typename TypeParam::second_type;
  const CsrMatrix<T, I> a{2, 3, put(std::vector<I>{0, 3, 5}), put(std::vector<I>{2, 0, 2, 2, 0}),
                          put(std::vector<T>{1, 2, 3, 4, 5})};
  const CsrMatrix<T, I> result{3, 2, device().template alloc<I>(4), device().template alloc<I>(5),
                               device().template alloc<T>(5)};
  device().sparse().transpose(a, result);
  EXPECT_EQ(device().download(result.row_begin), (std::vector<I>{0, 2, 2, 5}));
  EXPECT_EQ(device().download(result.column), (std::vector<I>{0, 1, 0, 0, 1}));
  EXPECT_EQ(device().download(result.value), (std::vector<T>{2, 5, 1, 3, 4}));
}

TYPED_TEST(SparseTranspose, OfAnEmptyMatrix) {
  using T = typename TypeParam::first_type;
  using I = typename TypeParam::second_type;
  const auto column = device().template alloc<I>(0);
  const auto value = device().template alloc<T>(0);
  const CsrMatrix<T, I> none{2, 5, put(std::vector<I>(3)), column, value};
  const CsrMatrix<T, I> result{5, 2, put(std::vector<I>(6, I(-7))), column, value};
  device().sparse().transpose(none, result);
  EXPECT_EQ(device().download(result.row_begin), std::vector<I>(6));
}

/// The cuda engine does not look.
TYPED_TEST(SparseTranspose, WrongIndicesReadNothingOutside) {
  using T = typename TypeParam::first_type;
  using I = typename TypeParam::second_type;
  if (on_cuda()) GTEST_SKIP() << "what the indices say is checked by the cpu engine only";
  constexpr auto kFar = std::numeric_limits<I>::max();
  const auto transposed = [](const std::vector<I>& begin, const std::vector<I>& column,
                             const std::vector<I>& of_begin, const std::vector<I>& of_column,
                             const std::vector<T>& of_value) {
    const CsrMatrix<T, I> a{3, 3, put(begin), put(column), put(std::vector<T>{1, 2, 3})};
    const CsrMatrix<T, I> result{3, 3, device().template alloc<I>(4), put(std::vector<I>(3, I(-7))),
                                 put(std::vector<T>(3, T(-7)))};
    device().sparse().transpose(a, result).get();
    EXPECT_EQ(device().download(result.row_begin), of_begin);
    EXPECT_EQ(device().download(result.column), of_column);
    EXPECT_EQ(device().download(result.value), of_value);
  };
  transposed({0, 1, 2, 3}, {0, kFar, -5}, {0, 1, 1, 1}, {0, -7, -7}, {T(1), T(-7), T(-7)});
  transposed({-7, 1, kFar, 3}, {0, 1, 2}, {0, 1, 2, 3}, {0, 1, 1}, {T(1), T(2), T(3)});
  transposed({3, 2, 1, -kFar}, {0, 1, 2}, {0, 1, 2, 3}, {-7, -7, -7}, {T(-7), T(-7), T(-7)});
  // Rows that overlap.
  transposed({0, 3, 0, 3}, {2, 2, 2}, {0, 0, 0, 3}, {0, 0, 0}, {T(1), T(2), T(3)});
}

TYPED_TEST(SparseTranspose, OfMatricesThatDoNotFit) {
  using T = typename TypeParam::first_type;
  using I = typename TypeParam::second_type;
  const auto a = RandomCsr<T, I>(5, 4, 92, Data::integers).on_device();
  const auto count = a.value.length();
  const CsrMatrix<T, I> good{4, 5, device().template alloc<I>(5), device().template alloc<I>(count),
                             device().template alloc<T>(count)};
  const auto refused = [&](auto change) {
    auto bad = good;
    change(bad);
    const auto future = device().sparse().transpose(a, bad);
    ASSERT_TRUE(future.ready());
    EXPECT_EQ(future.wait().code(), Errc::invalid);
    EXPECT_EQ(device().take_error().code(), Errc::invalid);
  };
  refused([](auto& bad) { bad.rows = 5; });
  refused([](auto& bad) { bad.columns = 4; });
  refused([](auto& bad) { bad.row_begin = bad.row_begin.slice(0, 4); });
  refused([&](auto& bad) { bad.column = bad.column.slice(0, count - 1); });
  refused([&](auto& bad) { bad.value = bad.value.slice(0, count - 1); });
  refused([&](auto& bad) { bad.value = a.value; });
  EXPECT_TRUE(device().sparse().transpose(a, good).wait().ok());
}

TEST_F(BadArguments, OfTransposedSparseMatrices) {
  const auto indices = put(std::vector<std::int32_t>(16));
  const auto values = put(std::vector<double>(8));
  const sparse::Transposition good{DType::f64,
                                   DType::i32,
                                   4,
                                   4,
                                   8,
                                   i,
                                   i,
                                   x,
                                   indices.slice(0, 8).operand(),
                                   indices.slice(8, 8).operand(),
                                   values.operand()};
  const auto with = [&](auto change, Errc code = Errc::invalid) {
    auto bad = good;
    change(bad);
    expect_refused(bad, code);
  };
  with([](auto& bad) { bad.rows = -1; });
  with([](auto& bad) { bad.columns = -1; });
  with([](auto& bad) { bad.nonzeros = -1; });
  with([](auto& bad) { bad.rows = 16; });    // 17 row offsets needed
  with([](auto& bad) { bad.columns = 8; });  // 9 of the result
  with([](auto& bad) { bad.nonzeros = 9; });
  with([](auto& bad) { bad.columns = std::int64_t{1} << 31; });
  with([](auto& bad) { bad.index_dtype = DType::u8; });
  with([&](auto& bad) { bad.value = absent; });
  with([&](auto& bad) { bad.value = unaligned; });
  with([](auto& bad) { bad.t_column = bad.column; });
  with([](auto& bad) { bad.t_column = bad.t_row_begin; });
  with([](auto& bad) { bad.dtype = DType::f16; }, Errc::unsupported);
}

}  // namespace
}  // namespace troupe::test::reference
