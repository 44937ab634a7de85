// Rows of a matrix's elements, and elements in order.
#include <numeric>

#include "random_csr.hpp"

namespace troupe::test::reference {
namespace {

template <class Pair>
class SparseSortOps : public ::testing::Test {};
TYPED_TEST_SUITE(SparseSortOps, NumbersAndIndices);

constexpr std::pair<std::int64_t, std::int64_t> kSortedShapes[] = {
    {1, 1}, {10, 10}, {70, 33}, {33, 700}, {1, 40}, {40, 1}, {0, 3}, {3, 0}};

/// The elements of a matrix in coordinate form.
template <class T, class I>
struct ElementsToSort {
  std::int64_t rows, columns;
  std::vector<I> row, column;
  std::vector<Wide> value;

  explicit ElementsToSort(const RandomCsr<T, I>& a)
      : rows(a.dense.rows), columns(a.dense.columns), column(a.column), value(a.value) {
    for (std::int64_t i = 0; i < rows; ++i) {
      const auto at = static_cast<std::size_t>(i);
      row.insert(row.end(), static_cast<std::size_t>(a.row_begin[at + 1] - a.row_begin[at]),
                 static_cast<I>(i));
    }
  }
  /// Element i is number place[i] of the others.
  [[nodiscard]] ElementsToSort permuted(const std::vector<I>& place) const {
    auto result = *this;
    for (std::size_t i = 0; i < place.size(); ++i) {
      const auto from = static_cast<std::size_t>(place[i]);
      result.row[i] = row[from], result.column[i] = column[from], result.value[i] = value[from];
    }
    return result;
  }
  /// Which element is the i-th in order.
  [[nodiscard]] std::vector<I> order(sparse::SortBy by) const {
    std::vector<I> place(row.size());
    std::iota(place.begin(), place.end(), I{0});
    std::stable_sort(place.begin(), place.end(), [&](I a, I b) {
      const auto key = [&](I i) {
        const auto at = static_cast<std::size_t>(i);
        return by == sparse::SortBy::row ? std::pair(row[at], column[at])
                                         : std::pair(column[at], row[at]);
      };
      return key(a) < key(b);
    });
    return place;
  }
  [[nodiscard]] CooMatrix<T, I> on_device() const {
    return {rows, columns, put(row), put(column), put_numbers<T>(value)};
  }
};

template <class T, class I>
CooMatrix<T, I> room_to_sort(std::int64_t rows, std::int64_t columns, std::int64_t count) {
  return {rows, columns, device().template alloc<I>(count), device().template alloc<I>(count),
          device().template alloc<T>(count)};
}

TYPED_TEST(SparseSortOps, RowsOfElementsAndBack) {
  using T = typename TypeParam::first_type;
  using I = typename TypeParam::second_type;
  for (const auto& [rows, columns] : kSortedShapes) {
    SCOPED_TRACE(::testing::Message() << rows << "x" << columns);
    const RandomCsr<T, I> a(rows, columns, 111, Data::integers);
    const auto row_begin = put(a.row_begin);
    const auto row = put(std::vector<I>(a.column.size(), I(-7)));
    device().sparse().csr2coo(row_begin, row);
    EXPECT_EQ(device().download(row), (ElementsToSort<T, I>(a).row));
    const auto back = put(std::vector<I>(a.row_begin.size(), I(-7)));
    device().sparse().coo2csr(row, back);
    EXPECT_EQ(device().download(back), a.row_begin);
  }
}

/// Of elements in any order, some of them at the same place.
TYPED_TEST(SparseSortOps, CooSort) {
  using T = typename TypeParam::first_type;
  using I = typename TypeParam::second_type;
  for (const auto& [rows, columns] : kSortedShapes) {
    ElementsToSort<T, I> a{RandomCsr<T, I>(rows, columns, 112, Data::fractions)};
    const auto count = a.row.size();
    for (std::size_t i = 0; i < count; i += 7) {
      a.row.push_back(a.row[i]), a.column.push_back(a.column[i]);
      a.value.push_back(-a.value[i]);
    }
    std::vector<I> shuffled(a.row.size());
    std::iota(shuffled.begin(), shuffled.end(), I{0});
    std::shuffle(shuffled.begin(), shuffled.end(), std::mt19937_64(113));
    a = a.permuted(shuffled);
    const auto given = a.on_device();
    for (const auto by : {sparse::SortBy::row, sparse::SortBy::column}) {
      SCOPED_TRACE(::testing::Message()
                   << rows << "x" << columns << ", by " << static_cast<int>(by));
      const auto place = a.order(by);
      const auto expected = a.permuted(place);
      const auto result = room_to_sort<T, I>(rows, columns, std::ssize(place));
      const auto permutation = device().template alloc<I>(std::ssize(place));
      device().sparse().coosort(given, result, by, permutation);
      EXPECT_EQ(device().download(result.row), expected.row);
      EXPECT_EQ(device().download(result.column), expected.column);
      EXPECT_EQ(got(result.value), expected.value);
      EXPECT_EQ(device().download(permutation), place);
    }
  }
}

TYPED_TEST(SparseSortOps, CsrSort) {
  using T = typename TypeParam::first_type;
  using I = typename TypeParam::second_type;
  for (const auto& [rows, columns] : kSortedShapes) {
    SCOPED_TRACE(::testing::Message() << rows << "x" << columns);
    const RandomCsr<T, I> a(rows, columns, 114, Data::fractions);
    const ElementsToSort<T, I> elements(a);
    const auto place = elements.order(sparse::SortBy::row);
    const auto expected = elements.permuted(place);
    const auto given = a.on_device();
    const auto count = std::ssize(place);
    const CsrMatrix<T, I> result{rows, columns, given.row_begin, device().template alloc<I>(count),
                                 device().template alloc<T>(count)};
    const auto permutation = device().template alloc<I>(count);
    device().sparse().csrsort(given, result, permutation);
    EXPECT_EQ(device().download(result.column), expected.column);
    EXPECT_EQ(got(result.value), expected.value);
    EXPECT_EQ(device().download(permutation), place);
    EXPECT_EQ(device().download(given.row_begin), a.row_begin);
  }
}

/// Without values, and without a permutation.
TYPED_TEST(SparseSortOps, OfWhatIsGiven) {
  using T = typename TypeParam::first_type;
  using I = typename TypeParam::second_type;
  const ElementsToSort<T, I> a{RandomCsr<T, I>(50, 60, 115, Data::integers)};
  const auto place = a.order(sparse::SortBy::column);
  const auto count = std::ssize(place);
  const auto expected = a.permuted(place);
  auto given = a.on_device();
  auto result = room_to_sort<T, I>(50, 60, count);
  device().sparse().coosort(given, result, sparse::SortBy::column);
  EXPECT_EQ(got(result.value), expected.value);
  given.value = {}, result.value = {};
  const auto permutation = device().template alloc<I>(count);
  device().sparse().coosort(given, result, sparse::SortBy::column, permutation);
  EXPECT_EQ(device().download(result.row), expected.row);
  EXPECT_EQ(device().download(result.column), expected.column);
  EXPECT_EQ(device().download(permutation), place);

  const CsrMatrix<T, I> rows{1, 3, put(std::vector<I>{0, 3}), put(std::vector<I>{2, 0, 1}), {}};
  auto sorted = rows;
  sorted.column = device().template alloc<I>(3);
  device().sparse().csrsort(rows, sorted);
  EXPECT_EQ(device().download(sorted.column), (std::vector<I>{0, 1, 2}));
}

/// ElementsToSort that need more than 32 bits together.
TYPED_TEST(SparseSortOps, OfALargeSparseMatrix) {
  using T = typename TypeParam::first_type;
  using I = typename TypeParam::second_type;
  const auto last = static_cast<I>(std::numeric_limits<std::int32_t>::max() - 1);
  const CooMatrix<T, I> a{
      std::int64_t{last} + 1, std::int64_t{last} + 1, put(std::vector<I>{last, 0, last, 5}),
      put(std::vector<I>{last, last, 0, 7}), put(std::vector<T>{T(1), T(2), T(3), T(4)})};
  const auto result = room_to_sort<T, I>(a.rows, a.columns, 4);
  device().sparse().coosort(a, result);
  EXPECT_EQ(device().download(result.row), (std::vector<I>{0, 5, last, last}));
  EXPECT_EQ(device().download(result.column), (std::vector<I>{last, 7, 0, last}));
  EXPECT_EQ(device().download(result.value), (std::vector<T>{T(2), T(4), T(3), T(1)}));
}

/// The cuda engine does not look.
TYPED_TEST(SparseSortOps, OfWhatIsNoMatrix) {
  using T = typename TypeParam::first_type;
  using I = typename TypeParam::second_type;
  if (on_cuda()) GTEST_SKIP() << "what the indices say is checked by the cpu engine only";
  constexpr I kLarge = std::numeric_limits<I>::max();
  const auto row_begin = put(std::vector<I>{-3, 1, kLarge, 2}), row = put(std::vector<I>(3));
  device().sparse().csr2coo(row_begin, row);
  EXPECT_EQ(device().download(row), (std::vector<I>{0, 1, 1}));
  const auto begin = device().template alloc<I>(3);
  device().sparse().coo2csr(put(std::vector<I>{-1, 0, 2, kLarge}), begin);
  EXPECT_EQ(device().download(begin), (std::vector<I>{0, 1, 1}));
  const CsrMatrix<T, I> a{3, 3, row_begin, put(std::vector<I>{kLarge, 2, -1}),
                          put(std::vector<T>{T(1), T(2), T(3)})};
  const CsrMatrix<T, I> result{3, 3, row_begin, device().template alloc<I>(3),
                               device().template alloc<T>(3)};
  device().sparse().csrsort(a, result);
  EXPECT_EQ(device().download(result.column), (std::vector<I>{kLarge, -1, 2}));
}

TYPED_TEST(SparseSortOps, OfMatricesThatDoNotFit) {
  using T = typename TypeParam::first_type;
  using I = typename TypeParam::second_type;
  const RandomCsr<T, I> matrix(6, 5, 116, Data::integers);
  const auto count = std::ssize(matrix.column);
  const auto a = matrix.on_device();
  const auto coordinates = ElementsToSort<T, I>(matrix).on_device();
  const auto good = room_to_sort<T, I>(6, 5, count);
  const auto refused = [&](const Future<void>& future) {
    ASSERT_TRUE(future.ready());
    EXPECT_EQ(future.wait().code(), Errc::invalid);
    EXPECT_EQ(device().take_error().code(), Errc::invalid);
  };
  const auto with = [&](auto change) {
    auto bad = good;
    change(bad);
    refused(device().sparse().coosort(coordinates, bad));
    const CsrMatrix<T, I> rows{bad.rows, bad.columns, a.row_begin, bad.column, bad.value};
    if (bad.row.length() == count) refused(device().sparse().csrsort(a, rows));
  };
  with([](auto& bad) { bad.rows = 5; });
  with([](auto& bad) { bad.columns = 6; });
  with([&](auto& bad) { bad.row = bad.row.slice(0, count - 1); });
  with([&](auto& bad) { bad.column = bad.column.slice(0, count - 1); });
  with([&](auto& bad) { bad.value = bad.value.slice(0, count - 1); });
  with([](auto& bad) { bad.value = {}; });
  refused(device().sparse().coosort(coordinates, good, sparse::SortBy::row,
                                    device().template alloc<I>(count - 1)));
  refused(device().sparse().coosort(coordinates, coordinates));
  refused(device().sparse().csrsort(a, a));
  refused(device().sparse().csr2coo(GpuRef<I>(), a.column));
  refused(device().sparse().coo2csr(a.column, GpuRef<I>()));
}

TEST_F(BadArguments, OfRowsOfElements) {
  using namespace sparse;
  const auto out = put(std::vector<std::int32_t>(16)).operand();
  const auto with = [](auto op, auto change, Errc code = Errc::invalid) {
    change(op);
    expect_refused(op, code);
  };
  const auto wrong = [&](const auto& good) {
    with(good, [](auto& bad) { bad.rows = -1; });
    with(good, [](auto& bad) { bad.rows = 16; });  // 17 row offsets needed
    with(good, [](auto& bad) { bad.rows = std::int64_t{1} << 31; });
    with(good, [](auto& bad) { bad.nonzeros = -1; });
    with(good, [](auto& bad) { bad.nonzeros = 17; });
    with(good, [&](auto& bad) { bad.row = absent; });
    with(good, [&](auto& bad) { bad.row_begin = bad.row; });
    with(
        good, [](auto& bad) { bad.dtype = DType::f64; }, Errc::unsupported);
  };
  wrong(Csr2Coo{DType::i32, 4, 8, i, out});
  wrong(Coo2Csr{DType::i32, 4, 8, i, out});
}

TEST_F(BadArguments, OfSortsOfElements) {
  using namespace sparse;
  const auto indices = put(std::vector<std::int32_t>(32));
  const auto values = put(std::vector<double>(8)).operand();
  const auto part = [&](std::int64_t at) { return indices.slice(8 * at, 8).operand(); };
  const CooSort coosort{DType::f64, DType::i32, SortBy::row, 0,       4,       4,      8,
                        i,          i,          x,           part(0), part(1), values, part(2)};
  const CsrSort csrsort{DType::f64, DType::i32, 4, 4, 8, i, i, x, part(0), values, part(1)};
  const auto with = [](auto op, auto change, Errc code = Errc::invalid) {
    change(op);
    expect_refused(op, code);
  };
  const auto wrong = [&](const auto& good) {
    with(good, [](auto& bad) { bad.rows = -1; });
    with(good, [](auto& bad) { bad.columns = -1; });
    with(good, [](auto& bad) { bad.columns = std::int64_t{1} << 31; });
    with(good, [](auto& bad) { bad.nonzeros = -1; });
    with(good, [](auto& bad) { bad.nonzeros = 9; });
    with(good, [](auto& bad) { bad.index_dtype = DType::u32; });
    with(good, [](auto& bad) {
      bad.index_dtype = DType::i64;
      bad.rows = bad.columns = std::int64_t{1} << 40;
    });
    with(good, [&](auto& bad) { bad.column = absent; });
    with(good, [&](auto& bad) { bad.value = absent; });
    with(good, [&](auto& bad) { bad.value = unaligned; });
    with(good, [&](auto& bad) { bad.sorted_value = absent; });
    with(good, [&](auto& bad) { bad.sorted_value = x; });  // which is read as well
    with(good, [](auto& bad) { bad.permutation = bad.sorted_column; });
    with(good, [](auto& bad) { bad.permutation.bytes -= 4; });
    with(
        good, [](auto& bad) { bad.dtype = DType::f16; }, Errc::unsupported);
  };
  wrong(coosort);
  wrong(csrsort);
  with(coosort, [](auto& bad) { bad.by = static_cast<SortBy>(2); });
  with(coosort, [&](auto& bad) { bad.row = absent; });
  with(coosort, [&](auto& bad) { bad.sorted_row = absent; });
  with(csrsort, [](auto& bad) { bad.rows = 16; });  // 17 row offsets needed
}

}  // namespace
}  // namespace troupe::test::reference
