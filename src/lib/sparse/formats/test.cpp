// CSR matrices in other forms.
#include "random_csr.hpp"

namespace troupe::test::reference {
namespace {

template <class Pair>
class SparseFormatOps : public ::testing::Test {};
TYPED_TEST_SUITE(SparseFormatOps, NumbersAndIndices);

constexpr BlockOrder kBlockOrders[] = {BlockOrder::row, BlockOrder::column};
constexpr std::pair<std::int64_t, std::int64_t> kFormatShapes[] = {
    {1, 1}, {10, 10}, {70, 33}, {33, 300}, {1, 40}, {40, 1}, {0, 3}, {3, 0}};

std::int64_t format_parts(std::int64_t extent, std::int64_t size) {
  return (extent + size - 1) / size;
}
/// So many elements that nothing has written yet.
template <class V>
GpuRef<V> format_room(std::int64_t length) {
  return put(std::vector<V>(static_cast<std::size_t>(length), V(-7)));
}
/// `values`, and behind them what nothing has written.
template <class V>
std::vector<V> with_unwritten_room(std::vector<V> values, std::int64_t length) {
  values.resize(static_cast<std::size_t>(length), V(-7));
  return values;
}

/// A random matrix whose rows are not sorted.
template <class T, class I>
RandomCsr<T, I> format_matrix(std::int64_t rows, std::int64_t columns) {
  return {rows, columns, 131, Data::fractions};
}

/// The blocks of a matrix that have an element.
template <class I>
struct ExpectedBlocks {
  std::vector<I> row_begin{0}, column;
  std::vector<Wide> value;

  ExpectedBlocks(const Dense& a, std::int64_t block, BlockOrder order) {
    const auto at = [&](std::int64_t i, std::int64_t j) {
      return i < a.rows && j < a.columns ? a(i, j) : Wide(0);
    };
    for (std::int64_t row = 0; row < a.rows; row += block) {
      for (std::int64_t j = 0; j < a.columns; j += block) {
        std::vector<Wide> elements;
        for (std::int64_t k = 0; k < block * block; ++k) {
          elements.push_back(order == BlockOrder::row ? at(row + k / block, j + k % block)
                                                      : at(row + k % block, j + k / block));
        }
        if (std::count(elements.begin(), elements.end(), Wide(0)) == block * block) continue;
        column.push_back(static_cast<I>(j / block));
        value.insert(value.end(), elements.begin(), elements.end());
      }
      row_begin.push_back(static_cast<I>(column.size()));
    }
  }
};

template <class T, class I>
BsrMatrix<T, I> room_for_blocks(const RandomCsr<T, I>& a, std::int64_t block, BlockOrder order,
                                std::int64_t room) {
  const auto rows = format_parts(a.dense.rows, block),
             columns = format_parts(a.dense.columns, block);
  return {rows,
          columns,
          block,
          order,
          format_room<I>(rows + 1),
          format_room<I>(room),
          format_room<T>(room * block * block)};
}

/// Extents that are multiples of the block, and others.
TYPED_TEST(SparseFormatOps, InBlocksAndBack) {
  using T = typename TypeParam::first_type;
  using I = typename TypeParam::second_type;
  for (const auto& [rows, columns] : kFormatShapes) {
    const auto a = format_matrix<T, I>(rows, columns);
    const auto given = a.on_device();
    for (const std::int64_t block : {1, 2, 5, 16}) {
      for (const auto order : kBlockOrders) {
        SCOPED_TRACE(::testing::Message() << rows << "x" << columns << ", block " << block
                                          << ", order " << static_cast<int>(order));
        const ExpectedBlocks<I> expected(a.dense, block, order);
        const auto count = std::ssize(expected.column);
        const auto size = block * block;
        const auto more = room_for_blocks(a, block, order, count + 2);
        EXPECT_EQ(device().sparse().csr2bsr(given, more).get(), count);
        EXPECT_EQ(device().download(more.row_begin), expected.row_begin);
        EXPECT_EQ(device().download(more.column), with_unwritten_room(expected.column, count + 2));
        EXPECT_EQ(got(more.value), with_unwritten_room(expected.value, (count + 2) * size));

        const auto bsr = room_for_blocks(a, block, order, count);
        EXPECT_EQ(device().sparse().csr2bsr(given, bsr).get(), count);
        const auto all_rows = bsr.block_rows * block, all_columns = bsr.block_columns * block;
        const CsrMatrix<T, I> back{all_rows, all_columns, format_room<I>(all_rows + 1),
                                   format_room<I>(count * size), format_room<T>(count * size)};
        device().sparse().bsr2csr(bsr, back);
        // All elements of each block, row by row.
        std::vector<I> row_begin{0}, column;
        std::vector<Wide> value;
        for (std::int64_t i = 0; i < all_rows; ++i) {
          const auto block_row = static_cast<std::size_t>(i / block);
          for (I k = expected.row_begin[block_row]; k < expected.row_begin[block_row + 1]; ++k) {
            for (std::int64_t j = 0; j < block; ++j) {
              const auto at =
                  std::int64_t{expected.column[static_cast<std::size_t>(k)]} * block + j;
              column.push_back(static_cast<I>(at));
              value.push_back(i < rows && at < columns ? a.dense(i, at) : Wide(0));
            }
          }
          row_begin.push_back(static_cast<I>(column.size()));
        }
        EXPECT_EQ(device().download(back.row_begin), row_begin);
        EXPECT_EQ(device().download(back.column), column);
        EXPECT_EQ(got(back.value), value);
      }
    }
  }
}

/// Columns within a row of the result stand in the order of the blocks.
TYPED_TEST(SparseFormatOps, RowsOfUnsortedBlocks) {
  using T = typename TypeParam::first_type;
  using I = typename TypeParam::second_type;
  const BsrMatrix<T, I> a{2,
                          3,
                          2,
                          BlockOrder::row,
                          put(std::vector<I>{0, 2, 2}),
                          put(std::vector<I>{2, 0}),
                          put(std::vector<T>{1, 2, 3, 4, 5, 6, 7, 8})};
  const CsrMatrix<T, I> b{4, 6, format_room<I>(5), format_room<I>(8), format_room<T>(8)};
  device().sparse().bsr2csr(a, b);
  EXPECT_EQ(device().download(b.row_begin), (std::vector<I>{0, 4, 8, 8, 8}));
  EXPECT_EQ(device().download(b.column), (std::vector<I>{4, 5, 0, 1, 4, 5, 0, 1}));
  EXPECT_EQ(device().download(b.value), (std::vector<T>{1, 2, 5, 6, 3, 4, 7, 8}));
}

/// What a matrix is in slices.
template <class I>
struct ExpectedSlices {
  std::vector<I> begin{0}, column;
  std::vector<Wide> value;

  template <class T>
  ExpectedSlices(const RandomCsr<T, I>& a, std::int64_t slice_rows) {
    const auto row = [&](std::int64_t i) -> std::pair<I, I> {
      const auto at = static_cast<std::size_t>(i);
      return i < a.dense.rows ? std::pair(a.row_begin[at], a.row_begin[at + 1])
                              : std::pair(I{}, I{});
    };
    for (std::int64_t first = 0; first < a.dense.rows; first += slice_rows) {
      I longest = 0;
      for (auto i = first; i < first + slice_rows; ++i)
        longest = std::max(longest, static_cast<I>(row(i).second - row(i).first));
      for (I k = 0; k < longest; ++k) {
        for (auto i = first; i < first + slice_rows; ++i) {
          const auto at = static_cast<std::size_t>(row(i).first + k);
          const bool padding = row(i).first + k >= row(i).second;
          column.push_back(padding ? I(-1) : a.column[at]);
          value.push_back(padding ? Wide(0) : a.value[at]);
        }
      }
      begin.push_back(static_cast<I>(column.size()));
    }
  }
};

template <class T, class I>
SellMatrix<T, I> room_for_slices(const RandomCsr<T, I>& a, std::int64_t slice_rows,
                                 std::int64_t room) {
  return {a.dense.rows,
          a.dense.columns,
          std::ssize(a.column),
          slice_rows,
          format_room<I>(format_parts(a.dense.rows, slice_rows) + 1),
          format_room<I>(room),
          format_room<T>(room)};
}

TYPED_TEST(SparseFormatOps, InSlices) {
  using T = typename TypeParam::first_type;
  using I = typename TypeParam::second_type;
  for (const auto& [rows, columns] : kFormatShapes) {
    const auto a = format_matrix<T, I>(rows, columns);
    const auto given = a.on_device();
    for (const std::int64_t slice_rows : {1, 2, 32, 50}) {
      for (const std::int64_t more : {0, 3}) {
        SCOPED_TRACE(::testing::Message() << rows << "x" << columns << ", slices of " << slice_rows
                                          << ", room for " << more << " more");
        const ExpectedSlices<I> expected(a, slice_rows);
        const auto count = std::ssize(expected.column);
        const auto sell = room_for_slices(a, slice_rows, count + more);
        EXPECT_EQ(device().sparse().csr2sell(given, sell).get(), count);
        EXPECT_EQ(device().download(sell.slice_begin), expected.begin);
        EXPECT_EQ(device().download(sell.column),
                  with_unwritten_room(expected.column, count + more));
        EXPECT_EQ(got(sell.value), with_unwritten_room(expected.value, count + more));
      }
    }
  }
}

TYPED_TEST(SparseFormatOps, WithoutRoomTheyFailOrTell) {
  using T = typename TypeParam::first_type;
  using I = typename TypeParam::second_type;
  const auto a = format_matrix<T, I>(40, 30);
  const auto given = a.on_device();
  const auto short_of = [](const auto& result, std::int64_t count, const std::string& what) {
    EXPECT_EQ(result.wait().code(), Errc::invalid);
    EXPECT_NE(
        result.wait().error().message.find("overflow: the result has " + std::to_string(count) +
                                           what + ", room for " + std::to_string(count - 1)),
        std::string::npos)
        << result.wait().error().message;
    EXPECT_EQ(device().take_error().code(), Errc::invalid);
  };
  const ExpectedBlocks<I> blocks(a.dense, 3, BlockOrder::row);
  const auto count = std::ssize(blocks.column);
  const auto bsr = room_for_blocks(a, 3, BlockOrder::row, count - 1);
  EXPECT_EQ(device().sparse().csr2bsr(given, bsr, OnFailure::report).get(), count);
  EXPECT_EQ(device().download(bsr.row_begin), blocks.row_begin);
  EXPECT_EQ(device().download(bsr.column), with_unwritten_room(std::vector<I>(), count - 1));
  EXPECT_EQ(device().download(bsr.value), with_unwritten_room(std::vector<T>(), 9 * (count - 1)));
  short_of(device().sparse().csr2bsr(given, bsr), count, " blocks");
  EXPECT_FALSE(bsr.value.valid());

  const ExpectedSlices<I> slices(a, 4);
  const auto stored = std::ssize(slices.column);
  const auto sell = room_for_slices(a, 4, stored - 1);
  EXPECT_EQ(device().sparse().csr2sell(given, sell, OnFailure::report).get(), stored);
  EXPECT_EQ(device().download(sell.slice_begin), slices.begin);
  EXPECT_EQ(device().download(sell.column), with_unwritten_room(std::vector<I>(), stored - 1));
  EXPECT_EQ(device().download(sell.value), with_unwritten_room(std::vector<T>(), stored - 1));
  short_of(device().sparse().csr2sell(given, sell), stored, " entries");
  EXPECT_FALSE(sell.value.valid());
}

TYPED_TEST(SparseFormatOps, TheyCountFirst) {
  using T = typename TypeParam::first_type;
  using I = typename TypeParam::second_type;
  const auto a = format_matrix<T, I>(40, 30);
  const auto given = a.on_device();
  const ExpectedBlocks<I> blocks(a.dense, 4, BlockOrder::column);
  auto bsr = room_for_blocks(a, 4, BlockOrder::column, 0);
  bsr.column = {}, bsr.value = {};
  EXPECT_EQ(device().sparse().csr2bsr(given, bsr, OnFailure::report).get(),
            std::ssize(blocks.column));
  EXPECT_EQ(device().download(bsr.row_begin), blocks.row_begin);
  const ExpectedSlices<I> slices(a, 8);
  auto sell = room_for_slices(a, 8, 0);
  sell.column = {}, sell.value = {};
  EXPECT_EQ(device().sparse().csr2sell(given, sell, OnFailure::report).get(),
            std::ssize(slices.column));
  EXPECT_EQ(device().download(sell.slice_begin), slices.begin);
}

TYPED_TEST(SparseFormatOps, OfAnEmptyMatrix) {
  using T = typename TypeParam::first_type;
  using I = typename TypeParam::second_type;
  RandomCsr<T, I> a(0, 0, 132, Data::integers);
  a.dense = Dense{5, 7};
  a.row_begin.assign(6, I{0});
  const auto bsr = room_for_blocks(a, 2, BlockOrder::row, 1);
  EXPECT_EQ(device().sparse().csr2bsr(a.on_device(), bsr).get(), 0);
  EXPECT_EQ(device().download(bsr.row_begin), std::vector<I>(4));
  EXPECT_EQ(device().download(bsr.column), std::vector<I>{I(-7)});
  const auto sell = room_for_slices(a, 2, 1);
  EXPECT_EQ(device().sparse().csr2sell(a.on_device(), sell).get(), 0);
  EXPECT_EQ(device().download(sell.slice_begin), std::vector<I>(4));
  EXPECT_EQ(device().download(sell.column), std::vector<I>{I(-7)});
}

/// The cuda engine does not look.
TYPED_TEST(SparseFormatOps, ElementsOutsideAreLeftOut) {
  using T = typename TypeParam::first_type;
  using I = typename TypeParam::second_type;
  if (on_cuda()) GTEST_SKIP() << "what the indices say is checked by the cpu engine only";
  constexpr I kLarge = std::numeric_limits<I>::max();
  const CsrMatrix<T, I> a{2, 2, put(std::vector<I>{-3, 2, kLarge}), put(std::vector<I>{-1, 1, 2}),
                          put(std::vector<T>{1, 2, 3})};
  const BsrMatrix<T, I> bsr{
      1, 1, 2, BlockOrder::row, format_room<I>(2), format_room<I>(1), format_room<T>(4)};
  EXPECT_EQ(device().sparse().csr2bsr(a, bsr).get(), 1);
  EXPECT_EQ(device().download(bsr.value), (std::vector<T>{0, 2, 0, 0}));
  const SellMatrix<T, I> sell{2, 2, 3, 2, format_room<I>(2), format_room<I>(4), format_room<T>(4)};
  EXPECT_EQ(device().sparse().csr2sell(a, sell).get(), 4);
  EXPECT_EQ(device().download(sell.column), (std::vector<I>{-1, -1, 1, -1}));
  EXPECT_EQ(device().download(sell.value), (std::vector<T>{0, 0, 2, 0}));
  const BsrMatrix<T, I> bad{2,
                            1,
                            1,
                            BlockOrder::row,
                            put(std::vector<I>{-4, kLarge, -1}),
                            put(std::vector<I>{0, 0}),
                            put(std::vector<T>{1, 2})};
  const CsrMatrix<T, I> back{2, 1, format_room<I>(3), format_room<I>(2), format_room<T>(2)};
  device().sparse().bsr2csr(bad, back);
  EXPECT_EQ(device().download(back.row_begin), (std::vector<I>{0, 2, 2}));
}

TYPED_TEST(SparseFormatOps, OfMatricesThatDoNotFit) {
  using T = typename TypeParam::first_type;
  using I = typename TypeParam::second_type;
  const auto matrix = format_matrix<T, I>(10, 9);
  const auto a = matrix.on_device();
  const auto bsr = room_for_blocks(matrix, 2, BlockOrder::row, 25);
  const auto sell = room_for_slices(matrix, 4, 100);
  const CsrMatrix<T, I> csr{10, 10, format_room<I>(11), format_room<I>(100), format_room<T>(100)};
  const auto refused = [&](const auto& future) {
    ASSERT_TRUE(future.ready());
    EXPECT_EQ(future.wait().code(), Errc::invalid);
    EXPECT_EQ(device().take_error().code(), Errc::invalid);
  };
  const auto with = [&](auto good, auto change) {
    change(good);
    return good;
  };
  for (const auto& bad :
       {with(bsr, [](auto& b) { b.block_rows = 4; }),
        with(bsr, [](auto& b) { b.block_columns = 4; }), with(bsr, [](auto& b) { b.block = 0; }),
        with(bsr, [](auto& b) { b.block = -2; }),
        with(bsr, [](auto& b) { b.block = std::int64_t{1} << 62; }),
        with(bsr, [](auto& b) { b.row_begin = b.row_begin.slice(0, 5); }),
        with(bsr, [](auto& b) { b.column = b.column.slice(0, 24); }),
        with(bsr, [](auto& b) { b.value = b.value.slice(0, 99); })}) {
    refused(device().sparse().csr2bsr(a, bad));
    refused(device().sparse().bsr2csr(bad, csr));
  }
  for (const auto& bad :
       {with(csr, [](auto& b) { b.rows = 9; }), with(csr, [](auto& b) { b.columns = 9; }),
        with(csr, [](auto& b) { b.row_begin = b.row_begin.slice(0, 10); }),
        with(csr, [](auto& b) { b.column = b.column.slice(0, 99); }),
        with(csr, [](auto& b) { b.value = b.value.slice(0, 99); }),
        with(csr, [&](auto& b) { b.value = bsr.value; })})
    refused(device().sparse().bsr2csr(bsr, bad));
  for (const auto& bad :
       {with(sell, [](auto& b) { b.rows = 9; }), with(sell, [](auto& b) { b.columns = 8; }),
        with(sell, [](auto& b) { b.nonzeros = 1; }), with(sell, [](auto& b) { b.slice_rows = 0; }),
        with(sell, [](auto& b) { b.slice_rows = 5; }),
        with(sell, [](auto& b) { b.column = b.column.slice(0, 99); })})
    refused(device().sparse().csr2sell(a, bad));
}

}  // namespace
}  // namespace troupe::test::reference
