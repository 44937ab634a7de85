// CSR matrices in blocked ELL form.
#include "random_csr.hpp"

namespace troupe::test::reference {
namespace {

template <class Pair>
class SparseBlockedEllOps : public ::testing::Test {};
TYPED_TEST_SUITE(SparseBlockedEllOps, NumbersAndIndices);

/// What a matrix is in that form.
template <class I>
struct EllBlocks {
  std::int64_t width = 0;  ///< that it needs
  std::vector<I> column;
  std::vector<Wide> value;

  /// With `more` places for blocks than it needs.
  EllBlocks(const Dense& a, std::int64_t block, std::int64_t more) {
    std::vector<std::vector<std::int64_t>> rows;
    for (std::int64_t i = 0; i < a.rows; i += block) {
      auto& columns = rows.emplace_back();
      for (std::int64_t j = 0; j < a.columns; j += block) {
        bool found = false;
        for (std::int64_t k = 0; k < block * block; ++k)
          found = found || a(i + k / block, j + k % block) != Wide(0);
        if (found) columns.push_back(j / block);
      }
      width = std::max(width, std::ssize(columns));
    }
    const auto places = static_cast<std::size_t>(width + more);
    for (auto& columns : rows) {
      columns.resize(places, -1);
      for (const auto j : columns) column.push_back(static_cast<I>(j));
    }
    for (std::int64_t i = 0; i < a.rows; ++i) {
      for (const auto j : rows[static_cast<std::size_t>(i / block)]) {
        for (std::int64_t k = 0; k < block; ++k)
          value.push_back(j < 0 ? Wide(0) : a(i, j * block + k));
      }
    }
  }
};

template <class T, class I>
BlockedEllMatrix<T, I> ell_for(const Dense& a, std::int64_t block, std::int64_t width) {
  const auto filled = [](std::int64_t count, auto value) {
    return put(std::vector<decltype(value)>(static_cast<std::size_t>(count), value));
  };
  return {a.rows,
          a.columns,
          block,
          width,
          filled(a.rows / block * width, I(-7)),
          filled(a.rows * width * block, T(-7))};
}

struct EllShape {
  std::int64_t rows, columns, block;
};

/// With just enough places, and with more. Back again as a dense matrix.
TYPED_TEST(SparseBlockedEllOps, OfMatricesOfAnyShape) {
  using T = typename TypeParam::first_type;
  using I = typename TypeParam::second_type;
  for (const auto& [rows, columns, block] :
       {EllShape{1, 1, 1}, EllShape{12, 20, 1}, EllShape{12, 20, 2}, EllShape{70, 35, 5},
        EllShape{32, 320, 16}, EllShape{2, 600, 2}, EllShape{600, 2, 2}, EllShape{0, 4, 2},
        EllShape{4, 0, 2}}) {
    const RandomCsr<T, I> a(rows, columns, 141, Data::fractions);
    const auto given = a.on_device();
    for (const std::int64_t more : {0, 2}) {
      SCOPED_TRACE(::testing::Message() << rows << "x" << columns << ", block " << block << ", "
                                        << more << " places more");
      const EllBlocks<I> expected(a.dense, block, more);
      const auto ell = ell_for<T, I>(a.dense, block, expected.width + more);
      EXPECT_EQ(device().sparse().csr2blocked_ell(given, ell).get(), expected.width);
      EXPECT_EQ(device().download(ell.column), expected.column);
      EXPECT_EQ(got(ell.value), expected.value);
      const MatrixRef<GpuRef<T>> dense(put_numbers<T>(a.dense.element), rows, columns);
      device().fill(dense.buffer, T(-7));
      device().sparse().sparse_to_dense(ell, dense);
      EXPECT_EQ(got(dense.buffer), a.dense.element);
    }
  }
}

TYPED_TEST(SparseBlockedEllOps, WithoutRoomItFailsOrTells) {
  using T = typename TypeParam::first_type;
  using I = typename TypeParam::second_type;
  const RandomCsr<T, I> a(40, 60, 142, Data::integers);
  const auto given = a.on_device();
  const EllBlocks<I> expected(a.dense, 4, 0);
  const auto small = ell_for<T, I>(a.dense, 4, expected.width - 1);
  EXPECT_EQ(device().sparse().csr2blocked_ell(given, small, OnFailure::report).get(),
            expected.width);
  EXPECT_EQ(device().download(small.column),
            std::vector<I>(static_cast<std::size_t>(small.column.length()), I(-7)));
  EXPECT_EQ(device().download(small.value),
            std::vector<T>(static_cast<std::size_t>(small.value.length()), T(-7)));
  const BlockedEllMatrix<T, I> none{40, 60, 4, 0, {}, {}};
  EXPECT_EQ(device().sparse().csr2blocked_ell(given, none, OnFailure::report).get(),
            expected.width);

  const auto failed = device().sparse().csr2blocked_ell(given, small);
  EXPECT_EQ(failed.wait().code(), Errc::invalid);
  EXPECT_NE(failed.wait().error().message.find(
                "overflow: the result has " + std::to_string(expected.width) +
                " blocks in a row of them, room for " + std::to_string(expected.width - 1)),
            std::string::npos)
      << failed.wait().error().message;
  EXPECT_FALSE(small.value.valid());
  EXPECT_EQ(device().take_error().code(), Errc::invalid);
}

TYPED_TEST(SparseBlockedEllOps, OfAnEmptyMatrix) {
  using T = typename TypeParam::first_type;
  using I = typename TypeParam::second_type;
  const CsrMatrix<T, I> a{4, 6, put(std::vector<I>(5)), device().template alloc<I>(0),
                          device().template alloc<T>(0)};
  const auto ell = ell_for<T, I>(Dense{4, 6}, 2, 1);
  EXPECT_EQ(device().sparse().csr2blocked_ell(a, ell).get(), 0);
  EXPECT_EQ(device().download(ell.column), (std::vector<I>{-1, -1}));
  EXPECT_EQ(device().download(ell.value), std::vector<T>(8));
}

TEST_F(BadArguments, OfBlockedEllMatrices) {
  const auto cell = device().submitter().result_cell(sizeof(std::int64_t)).take();
  const auto column = put(std::vector<std::int32_t>(4)).operand();
  const auto values = put(std::vector<double>(16));
  const sparse::Csr2BlockedEll good{
      DType::f64, DType::i32, OnFailure::error, 0,         4, 4, 8, 2, 2, i, i,
      x,          column,     values.operand(), cell.where};
  const auto with = [&](auto change, Errc code = Errc::invalid) {
    auto bad = good;
    change(bad);
    expect_refused(bad, code);
  };
  with([](auto& bad) { bad.rows = -2; });
  with([](auto& bad) { bad.rows = 5; });
  with([](auto& bad) { bad.rows = 16; });  // 17 row offsets needed
  with([](auto& bad) { bad.columns = 5; });
  with([](auto& bad) { bad.columns = -2; });
  with([](auto& bad) { bad.columns = std::int64_t{1} << 32; });
  with([](auto& bad) { bad.nonzeros = 17; });
  with([](auto& bad) { bad.block = 0; });
  with([](auto& bad) { bad.block = 2048; });
  with([](auto& bad) { bad.capacity = 3; });
  with([](auto& bad) { bad.capacity = -1; });
  with([](auto& bad) { bad.on_failure = static_cast<OnFailure>(2); });
  with([](auto& bad) { bad.index_dtype = DType::u32; });
  with([&](auto& bad) { bad.row_begin = absent; });
  with([&](auto& bad) { bad.value = unaligned; });
  with([&](auto& bad) { bad.ell_column = absent; });
  with([&](auto& bad) { bad.ell_value = x; });  // which is read as well
  with([&](auto& bad) { bad.width = i; });      // not pinned
  with([](auto& bad) { bad.dtype = DType::f16; }, Errc::unsupported);
}

}  // namespace
}  // namespace troupe::test::reference
