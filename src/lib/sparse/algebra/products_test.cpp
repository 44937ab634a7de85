#include <troupe/lib/sparse.hpp>

#include <map>
#include <numeric>

#include "bad_arguments.hpp"
#include "csr_matrix.hpp"

// Products of two sparse matrices.

namespace troupe::test {
namespace {

template <class Pair>
class SparseProducts : public ::testing::Test {};
TYPED_TEST_SUITE(SparseProducts, RealsAndIndices);

template <class T, class I>
Matrix<T, I> product(const Matrix<T, I>& a, const Matrix<T, I>& b) {
  Matrix<T, I> c(0, b.columns, 0);
  c.rows = a.rows;
  const auto each_in_row = [](const Matrix<T, I>& matrix, std::size_t row, auto&& visit) {
    for (auto at = static_cast<std::size_t>(matrix.row_begin[row]);
         at < static_cast<std::size_t>(matrix.row_begin[row + 1]); ++at)
      visit(static_cast<std::size_t>(matrix.column[at]), matrix.value[at]);
  };
  for (std::size_t row = 0; row < static_cast<std::size_t>(a.rows); ++row) {
    std::map<std::size_t, T> sums;
    each_in_row(a, row, [&](std::size_t k, T left) {
      each_in_row(b, k, [&](std::size_t column, T right) { sums[column] += left * right; });
    });
    for (const auto& [column, sum] : sums) {
      c.column.push_back(static_cast<I>(column));
      c.value.push_back(sum);
    }
    c.row_begin.push_back(static_cast<I>(c.column.size()));
  }
  return c;
}

/// With integers of -4 to 4 as values.
template <class T, class I>
Matrix<T, I> integers(std::int64_t rows, std::int64_t columns, std::uint64_t seed) {
  Matrix<T, I> matrix(rows, columns, seed);
  std::mt19937_64 random(seed);
  for (auto& value : matrix.value) value = static_cast<T>(static_cast<int>(random() % 9) - 4);
  return matrix;
}

/// Room for a matrix with so many nonzeros, all -7.
template <class T, class I>
CsrMatrix<T, I> room_for(std::int64_t rows, std::int64_t columns, std::int64_t nonzeros) {
  const auto count = static_cast<std::size_t>(nonzeros);
  return {rows, columns, put(std::vector<I>(static_cast<std::size_t>(rows) + 1, I(-7))),
          put(std::vector<I>(count, I(-7))), put(std::vector<T>(count, T(-7)))};
}

/// The matrix c has these elements, and -7 behind them.
template <class T, class I>
void expect_product(const CsrMatrix<T, I>& c, Matrix<T, I> expected) {
  EXPECT_EQ(device().download(c.row_begin), expected.row_begin);
  expected.column.resize(static_cast<std::size_t>(c.column.length()), I(-7));
  expected.value.resize(static_cast<std::size_t>(c.value.length()), T(-7));
  EXPECT_EQ(device().download(c.column), expected.column);
  EXPECT_EQ(device().download(c.value), expected.value);
}

struct ProductExtents {
  std::int64_t rows, inner, columns;
};

TYPED_TEST(SparseProducts, OfIntegersIsExact) {
  using T = typename TypeParam::first_type;
  using I = typename TypeParam::second_type;
  for (const auto& [rows, inner, columns] :
       {ProductExtents{1, 1, 1}, ProductExtents{10, 10, 10}, ProductExtents{64, 1000, 30},
        ProductExtents{300, 170, 257}, ProductExtents{1, 500, 2000}, ProductExtents{2000, 3, 1},
        ProductExtents{0, 3, 4}, ProductExtents{3, 0, 4}, ProductExtents{3, 4, 0}}) {
    for (const std::int64_t extra : {0, 5}) {
      SCOPED_TRACE(::testing::Message() << rows << "x" << inner << "x" << columns << "+" << extra);
      const auto a = integers<T, I>(rows, inner, 41), b = integers<T, I>(inner, columns, 42);
      const auto expected = product(a, b);
      const auto count = std::ssize(expected.column);
      const auto c = room_for<T, I>(rows, columns, count + extra);
      EXPECT_EQ(device().sparse().spgemm(a.on_device(), b.on_device(), c).get(), count);
      expect_product(c, expected);
    }
  }
}

TYPED_TEST(SparseProducts, OfEmptyMatrices) {
  using T = typename TypeParam::first_type;
  using I = typename TypeParam::second_type;
  auto empty = Matrix<T, I>(0, 5, 0);
  empty.rows = 5;
  empty.row_begin.assign(6, I{0});
  const auto full = integers<T, I>(5, 5, 43);
  const auto none = empty.on_device(), some = full.on_device();
  for (const auto& [a, b] : {std::pair(none, some), std::pair(some, none), std::pair(none, none)}) {
    const auto c = room_for<T, I>(5, 5, 2);
    EXPECT_EQ(device().sparse().spgemm(a, b, c).get(), 0);
    expect_product(c, empty);
  }
}

/// No row of B that A selects has an element.
TYPED_TEST(SparseProducts, WithoutAProduct) {
  using T = typename TypeParam::first_type;
  using I = typename TypeParam::second_type;
  const CsrMatrix<T, I> a{2, 2, put(std::vector<I>{0, 1, 2}), put(std::vector<I>{0, 0}),
                          put(std::vector<T>{1, 2})};
  const CsrMatrix<T, I> b{2, 3, put(std::vector<I>{0, 0, 2}), put(std::vector<I>{0, 2}),
                          put(std::vector<T>{3, 4})};
  const auto c = room_for<T, I>(2, 3, 2);
  EXPECT_EQ(device().sparse().spgemm(a, b, c).get(), 0);
  EXPECT_EQ(device().download(c.row_begin), (std::vector<I>{0, 0, 0}));
  EXPECT_EQ(device().download(c.column), (std::vector<I>{-7, -7}));
}

/// A matrix times itself, each row stored backwards. The columns of the result ascend all the same.
TYPED_TEST(SparseProducts, OfUnsortedRows) {
  using T = typename TypeParam::first_type;
  using I = typename TypeParam::second_type;
  auto a = integers<T, I>(90, 90, 44);
  const auto expected = product(a, a);
  for (std::size_t row = 0; row < 90; ++row) {
    const auto reverse = [&](auto& values) {
      std::reverse(values.begin() + static_cast<std::ptrdiff_t>(a.row_begin[row]),
                   values.begin() + static_cast<std::ptrdiff_t>(a.row_begin[row + 1]));
    };
    reverse(a.column);
    reverse(a.value);
  }
  const auto on_device = a.on_device();
  const auto c = room_for<T, I>(90, 90, std::ssize(expected.column));
  EXPECT_EQ(device().sparse().spgemm(on_device, on_device, c).get(), std::ssize(expected.column));
  expect_product(c, expected);
}

TYPED_TEST(SparseProducts, KeepsWhatCancels) {
  using T = typename TypeParam::first_type;
  using I = typename TypeParam::second_type;
  const CsrMatrix<T, I> a{1, 2, put(std::vector<I>{0, 2}), put(std::vector<I>{0, 1}),
                          put(std::vector<T>{1, 1})};
  const CsrMatrix<T, I> b{2, 1, put(std::vector<I>{0, 1, 2}), put(std::vector<I>{0, 0}),
                          put(std::vector<T>{3, -3})};
  const auto c = room_for<T, I>(1, 1, 1);
  EXPECT_EQ(device().sparse().spgemm(a, b, c).get(), 1);
  EXPECT_EQ(device().download(c.row_begin), (std::vector<I>{0, 1}));
  EXPECT_EQ(device().download(c.column), (std::vector<I>{0}));
  EXPECT_EQ(device().download(c.value), (std::vector<T>{0}));
}

TYPED_TEST(SparseProducts, OfRealsIsCloseAndTheSameEachTime) {
  using T = typename TypeParam::first_type;
  using I = typename TypeParam::second_type;
  const Matrix<T, I> a(400, 700, 45), b(700, 300, 46);
  const auto expected = product(a, b);
  const auto on_device_a = a.on_device(), on_device_b = b.on_device();
  std::vector<T> first;
  for (int run = 0; run < 3; ++run) {
    const auto c = room_for<T, I>(400, 300, std::ssize(expected.column));
    EXPECT_EQ(device().sparse().spgemm(on_device_a, on_device_b, c).get(),
              std::ssize(expected.column));
    EXPECT_EQ(device().download(c.row_begin), expected.row_begin);
    EXPECT_EQ(device().download(c.column), expected.column);
    const auto value = device().download(c.value);
    // The expected values are rounded in T as well, hence twice the terms.
    EXPECT_TRUE(close(value, std::vector<double>(expected.value.begin(), expected.value.end()),
                      2 * 700, 1));
    if (run == 0) first = value;
    EXPECT_EQ(value, first);
  }
}

TYPED_TEST(SparseProducts, WithoutRoomFailsOrTells) {
  using T = typename TypeParam::first_type;
  using I = typename TypeParam::second_type;
  const auto a = integers<T, I>(50, 40, 47), b = integers<T, I>(40, 60, 48);
  const auto expected = product(a, b);
  const auto count = std::ssize(expected.column);
  const auto on_device_a = a.on_device(), on_device_b = b.on_device();
  const auto small = room_for<T, I>(50, 60, count - 1);
  const auto reported =
      device().sparse().spgemm(on_device_a, on_device_b, small, OnFailure::report);
  EXPECT_EQ(reported.get(), count);
  const auto room = static_cast<std::size_t>(count - 1);
  EXPECT_EQ(device().download(small.row_begin), expected.row_begin);
  EXPECT_EQ(device().download(small.column), std::vector<I>(room, I(-7)));
  EXPECT_EQ(device().download(small.value), std::vector<T>(room, T(-7)));
  EXPECT_TRUE(device().take_error().ok());

  const auto failed = device().sparse().spgemm(on_device_a, on_device_b, small);
  EXPECT_EQ(failed.wait().code(), Errc::invalid);
  EXPECT_NE(failed.wait().error().message.find("overflow: the result has " + std::to_string(count) +
                                               " nonzeros, room for " + std::to_string(count - 1)),
            std::string::npos)
      << failed.wait().error().message;
  EXPECT_FALSE(small.row_begin.valid());
  EXPECT_FALSE(small.value.valid());
  EXPECT_TRUE(on_device_a.value.valid());
  EXPECT_EQ(device().take_error().code(), Errc::invalid);
}

TYPED_TEST(SparseProducts, CountsFirst) {
  using T = typename TypeParam::first_type;
  using I = typename TypeParam::second_type;
  const auto a = integers<T, I>(50, 40, 49), b = integers<T, I>(40, 60, 50);
  const auto expected = product(a, b);
  const auto on_device_a = a.on_device(), on_device_b = b.on_device();
  CsrMatrix<T, I> c{50, 60, device().template alloc<I>(51), {}, {}};
  const auto counted = device().sparse().spgemm(on_device_a, on_device_b, c, OnFailure::report);
  ASSERT_EQ(counted.get(), std::ssize(expected.column));
  EXPECT_EQ(device().download(c.row_begin), expected.row_begin);
  const auto no_room = room_for<T, I>(50, 60, 0);
  EXPECT_EQ(device().sparse().spgemm(on_device_a, on_device_b, no_room, OnFailure::report).get(),
            counted.get());
  EXPECT_EQ(device().download(no_room.row_begin), expected.row_begin);
  c.column = device().template alloc<I>(counted.get());
  c.value = device().template alloc<T>(counted.get());
  EXPECT_EQ(device().sparse().spgemm(on_device_a, on_device_b, c).get(), counted.get());
  expect_product(c, expected);
}

TYPED_TEST(SparseProducts, OfMatricesThatDoNotFit) {
  using T = typename TypeParam::first_type;
  using I = typename TypeParam::second_type;
  const auto a = integers<T, I>(5, 4, 51).on_device(), b = integers<T, I>(4, 6, 52).on_device();
  const auto good = room_for<T, I>(5, 6, 30);
  const auto refused = [&](const auto& left, const auto& right, const auto& to) {
    const auto future = device().sparse().spgemm(left, right, to);
    ASSERT_TRUE(future.ready());
    EXPECT_EQ(future.wait().code(), Errc::invalid);
    EXPECT_EQ(device().take_error().code(), Errc::invalid);
  };
  const auto with = [&](auto change) {
    auto c = good;
    change(c);
    refused(a, b, c);
  };
  refused(b, b, good);
  with([](auto& c) { c.rows = 4; });
  with([](auto& c) { c.columns = 5; });
  with([](auto& c) { c.row_begin = c.row_begin.slice(0, 5); });
  with([](auto& c) { c.column = c.column.slice(0, 29); });
  with([&](auto& c) { c.row_begin = a.row_begin; });
  EXPECT_EQ(device().sparse().spgemm(a, b, good).wait().code(), Errc::ok);
}

/// The cuda engine does not look: see sparse::Spgemm.
TYPED_TEST(SparseProducts, OfWhatIsNoMatrix) {
  using T = typename TypeParam::first_type;
  using I = typename TypeParam::second_type;
  if (on_cuda()) GTEST_SKIP() << "what the indices say is checked by the cpu engine only";
  const Matrix<T, I> good(20, 20, 53);
  const auto refused = [&](auto change) {
    auto bad = good;
    change(bad);
    for (const bool left : {true, false}) {
      const auto a = (left ? bad : good).on_device(), b = (left ? good : bad).on_device();
      const auto c = room_for<T, I>(20, 20, 400);
      const auto failed = device().sparse().spgemm(a, b, c, OnFailure::report);
      EXPECT_EQ(failed.wait().code(), Errc::invalid);
      EXPECT_NE(failed.wait().error().message.find("an index of A or B is out of range"),
                std::string::npos);
      EXPECT_EQ(device().take_error().code(), Errc::invalid);
    }
  };
  refused([](auto& m) { m.column[3] = 20; });
  refused([](auto& m) { m.column[3] = -1; });
  refused([](auto& m) { m.column[3] = std::numeric_limits<I>::max(); });
  refused([](auto& m) { m.row_begin[0] = -1; });
  refused([](auto& m) { m.row_begin[0] = 1; });
  refused([](auto& m) { m.row_begin[5] = m.row_begin[4] - 1; });
  refused([](auto& m) { m.row_begin[5] = std::numeric_limits<I>::max(); });
  refused([](auto& m) { m.row_begin[20] -= 1; });
  refused([](auto& m) { m.row_begin[20] += 1; });
}

}  // namespace
}  // namespace troupe::test
