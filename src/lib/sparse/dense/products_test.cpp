// Products of sparse matrices of all formats with dense ones; those in CSR form are in
// test.cpp.
#include <limits>

#include "sparse_formats.hpp"

namespace troupe::test::reference {
namespace {

using sparse::Format;

template <class Pair>
class SparseFormats : public ::testing::Test {};
TYPED_TEST_SUITE(SparseFormats, NumbersAndIndices);

const std::vector<Format> kOfSpmm{Format::csc, Format::coo, Format::bsr, Format::blocked_ell};

template <class T>
MatrixRef<GpuRef<T>> put_with_gaps(blas::Order order, const Dense& a) {
  const auto leading = (order == blas::Order::column ? a.rows : a.columns) + 2;
  return {put_numbers<T>(spread_in(order, a, leading)), a.rows, a.columns, leading};
}

struct FormatShape {
  std::int64_t rows, columns, n;
};

/// Every format, transposition and order, and both sorts of scalars.
TYPED_TEST(SparseFormats, SpmmOfIntegersIsExact) {
  using T = typename TypeParam::first_type;
  using I = typename TypeParam::second_type;
  const T alpha = number<T>(2, -1), beta = number<T>(-1, 1);
  for (const auto& [rows, columns, n] :
       {FormatShape{1, 1, 1}, FormatShape{40, 33, 5}, FormatShape{13, 70, 40}, FormatShape{0, 4, 2},
        FormatShape{4, 0, 2}, FormatShape{3, 4, 0}}) {
    for (const auto& [name, a, dense] :
         in_formats<T, I>(rows, columns, 181, Data::integers, kOfSpmm)) {
      for (const auto transpose : kTransposes) {
        const auto whole = op(dense, transpose);
        const auto b = random_matrix<T>(whole.columns, n, 182, Data::integers),
                   c = random_matrix<T>(whole.rows, n, 183, Data::integers);
        const auto product = whole * b;
        const auto expected = widen(alpha) * product + widen(beta) * c;
        for (const auto order_b : {blas::Order::column, blas::Order::row}) {
          const auto order_c = n == 5 ? order_b : blas::Order::column;
          SCOPED_TRACE(::testing::Message()
                       << rows << "x" << columns << "x" << n << " " << name << ", transposed "
                       << static_cast<int>(transpose) << ", order " << static_cast<int>(order_b));
          const SpmmOptions options{transpose, order_b, order_c};
          const auto x = put_with_gaps<T>(order_b, b), y = put_with_gaps<T>(order_c, c);
          const auto place = order_b == blas::Order::row ? Place::host : Place::device;
          device().sparse().spmm(scalar(alpha, place), a, x, scalar(beta, Place::host), y, options);
          EXPECT_EQ(got(y.buffer), spread_in(order_c, expected, y.leading));
          device().sparse().spmm(a, x, y, options);
          EXPECT_EQ(got(y.buffer), spread_in(order_c, product, y.leading));
        }
      }
    }
  }
}

TYPED_TEST(SparseFormats, SpmmTakesEveryStruct) {
  using T = typename TypeParam::first_type;
  using I = typename TypeParam::second_type;
  const RandomCsr<T, I> a(30, 20, 184, Data::integers);
  const RandomBlocks<T, I> blocks(10, 10, 2, 185, Data::integers);
  const auto b = random_matrix<T>(20, 3, 186, Data::integers);
  const auto x = put_matrix<T>(b, 20);
  const auto expect_product = [&](const auto& matrix, const Dense& dense) {
    const MatrixRef y(device().template alloc<T>(dense.rows * 3), dense.rows, 3);
    device().sparse().spmm(matrix, x, y);
    EXPECT_EQ(got(y.buffer), (dense * b).element);
  };
  expect_product(a.on_device(), a.dense);
  expect_product(put_csc(a), a.dense);
  expect_product(put_coo(a), a.dense);
  expect_product(blocks.put_bsr(BlockOrder::row), blocks.dense);
  expect_product(blocks.put_ell(), blocks.dense);
}

TYPED_TEST(SparseFormats, SpmmOfFractionsIsCloseAndTheSameEachTime) {
  using T = typename TypeParam::first_type;
  using I = typename TypeParam::second_type;
  for (const auto& [name, a, dense] : in_formats<T, I>(120, 90, 187, Data::fractions, kOfSpmm)) {
    for (const auto transpose : kTransposes) {
      SCOPED_TRACE(::testing::Message() << name << ", transposed " << static_cast<int>(transpose));
      const auto whole = op(dense, transpose);
      const auto b = random_matrix<T>(whole.columns, 24, 188, Data::fractions);
      for (const auto order : {blas::Order::column, blas::Order::row}) {
        const auto x = put_with_gaps<T>(order, b);
        std::vector<T> first;
        for (int run = 0; run < 2; ++run) {
          const auto y = device().template alloc<T>(whole.rows * 24);
          device().sparse().spmm(a, x, MatrixRef(y, whole.rows, 24), {transpose, order});
          const auto values = device().download(y);
          EXPECT_TRUE(agree(values, (whole * b).element, Data::fractions, 120));
          if (run == 0) first = values;
          EXPECT_EQ(values, first);
        }
      }
    }
  }
}

/// Rows so long that the cuda engine shares them among the warps of a block.
TYPED_TEST(SparseFormats, SpmmOfLongRows) {
  using T = typename TypeParam::first_type;
  using I = typename TypeParam::second_type;
  auto formats = kOfSpmm;
  formats.push_back(Format::csr);
  for (const auto& [rows, columns, n] : {FormatShape{3, 5000, 3}, FormatShape{9000, 3, 37}}) {
    for (const auto& [name, a, dense] :
         in_formats<T, I>(rows, columns, 189, Data::integers, formats)) {
      for (const auto transpose : {Transpose::no, Transpose::yes}) {
        const auto whole = op(dense, transpose);
        const auto b = random_matrix<T>(whole.columns, n, 190, Data::integers);
        for (const auto order : {blas::Order::column, blas::Order::row}) {
          SCOPED_TRACE(::testing::Message()
                       << rows << "x" << columns << "x" << n << " " << name << ", transposed "
                       << static_cast<int>(transpose) << ", order " << static_cast<int>(order));
          const MatrixRef y(device().template alloc<T>(whole.rows * n), whole.rows, n);
          device().sparse().spmm(a, put_with_gaps<T>(order, b), y, {transpose, order});
          EXPECT_EQ(got(y.buffer), (whole * b).element);
        }
      }
    }
  }
}

/// What an engine has prepared holds for other values, and is void for another pattern.
TYPED_TEST(SparseFormats, SpmmSeesChangedIndices) {
  using T = typename TypeParam::first_type;
  using I = typename TypeParam::second_type;
  constexpr std::int64_t kOrder = 40;
  const auto b = random_matrix<T>(kOrder, 2, 191, Data::integers);
  const auto x = put_matrix<T>(b, kOrder);
  const MatrixRef y(device().template alloc<T>(kOrder * 2), kOrder, 2);
  for (const auto& [name, a, dense] :
       in_formats<T, I>(kOrder, kOrder, 192, Data::integers, kOfSpmm)) {
    const auto extent = a.form.blocked() ? a.form.block : 1;
    Dense turned{kOrder, kOrder};
    const auto other = [&](std::int64_t k) {
      return (kOrder / extent - 1 - k / extent) * extent + k % extent;
    };
    for (std::int64_t i = 0; i < kOrder; ++i) {
      for (std::int64_t j = 0; j < kOrder; ++j)
        (a.form.format == Format::csc ? turned(other(i), j) : turned(i, other(j))) = dense(i, j);
    }
    for (const Dense* const matrix : std::initializer_list<const Dense*>{&dense, &turned}) {
      for (const auto transpose : {Transpose::yes, Transpose::no}) {
        device().sparse().spmm(a, x, y, {transpose});
        EXPECT_EQ(got(y.buffer), (op(*matrix, transpose) * b).element)
            << name << (matrix == &turned ? " turned round" : "");
      }
      auto indices = device().download(a.inner);
      for (auto& index : indices)
        index = index < 0 ? index : static_cast<I>(kOrder / extent - 1) - index;
      device().upload(std::span<const I>(indices), a.inner).get();
    }
  }
}

TYPED_TEST(SparseFormats, SpmmOfMatricesThatDoNotFit) {
  using T = typename TypeParam::first_type;
  using I = typename TypeParam::second_type;
  const auto b = device().template alloc<T>(64), c = device().template alloc<T>(64);
  const auto refused = [&](const SparseRef<T, I>& a, std::int64_t rows_of_b, std::int64_t rows_of_c,
                           const std::string& words) {
    const auto future =
        device().sparse().spmm(a, MatrixRef(b, rows_of_b, 3), MatrixRef(c, rows_of_c, 3));
    ASSERT_TRUE(future.ready()) << words;
    EXPECT_EQ(future.wait().code(), Errc::invalid) << words;
    EXPECT_EQ(future.wait().error().message, "sparse.spmm: " + words);
    EXPECT_EQ(device().take_error().code(), Errc::invalid);
  };
  const RandomBlocks<T, I> blocks(3, 4, 2, 193, Data::integers);
  const auto bsr = blocks.put_bsr(BlockOrder::row);
  refused(bsr, 7, 6, "b, in rows, has 7 elements, not 8");
  refused(bsr, 8, 7, "c, in rows, has 7 elements, not 6");
  auto shorter = bsr;
  shorter.value = bsr.value.slice(0, bsr.value.length() - 1);
  refused(shorter, 8, 6,
          "column has " + std::to_string(bsr.column.length()) + " elements, not " +
              std::to_string(bsr.column.length() - 1));
  auto ell = blocks.put_ell();
  ++ell.width;
  refused(ell, 8, 6, "column has 12 elements, not 15");
  const RandomCsr<T, I> csr(6, 8, 194, Data::integers);
  refused(put_sell(csr, 2), 8, 6, "it takes no matrix in sliced ELL form");
}

/// The values of a matrix of blocks, row by row in each.
template <class T, class I>
std::vector<Wide> picked_blocks(const RandomBlocks<T, I>& c, const Dense& from) {
  std::vector<Wide> values;
  c.each_block([&](std::int64_t row, std::int64_t column, std::int64_t) {
    for (std::int64_t i = 0; i < c.block; ++i) {
      for (std::int64_t j = 0; j < c.block; ++j)
        values.push_back(from(row * c.block + i, column * c.block + j));
    }
  });
  return values;
}

TYPED_TEST(SparseFormats, SddmmOfBlocksOfIntegersIsExact) {
  using T = typename TypeParam::first_type;
  using I = typename TypeParam::second_type;
  const T alpha = number<T>(2, -1), beta = number<T>(-1, 1);
  for (const std::int64_t block : {1, 2, 7}) {
    RandomBlocks<T, I> c(10, 9, block, 195, Data::integers);
    const auto a = random_matrix<T>(c.dense.rows, 6, 196, Data::integers),
               b = random_matrix<T>(6, c.dense.columns, 197, Data::integers);
    const auto product = a * b, sum = widen(alpha) * product + widen(beta) * c.dense;
    for (const auto transpose : {Transpose::no, Transpose::yes}) {
      for (const auto order : {blas::Order::column, blas::Order::row}) {
        for (const auto block_order : {BlockOrder::row, BlockOrder::column}) {
          SCOPED_TRACE(::testing::Message()
                       << block << ", transposed " << static_cast<int>(transpose) << ", orders "
                       << static_cast<int>(order) << static_cast<int>(block_order));
          const SddmmOptions options{transpose, transpose, order, blas::Order::column};
          const auto matrix = c.put_bsr(block_order);
          const auto x = put_with_gaps<T>(order, op(a, transpose)),
                     y = put_with_gaps<T>(blas::Order::column, op(b, transpose));
          // The expected values, in the order of the blocks.
          const auto ordered = [&](const Dense& from) {
            auto expected = c;
            expected.value = picked_blocks(c, from);
            return got(expected.put_bsr(block_order).value);
          };
          const auto place = order == blas::Order::row ? Place::host : Place::device;
          device().sparse().sddmm(scalar(alpha, place), x, y, scalar(beta, Place::host), matrix,
                                  options);
          EXPECT_EQ(got(matrix.value), ordered(sum));
          device().sparse().sddmm(x, y, matrix, options);
          EXPECT_EQ(got(matrix.value), ordered(product));
        }
      }
    }
  }
}

TYPED_TEST(SparseFormats, SddmmOfBlocksOfFractionsIsCloseAndTheSameEachTime) {
  using T = typename TypeParam::first_type;
  using I = typename TypeParam::second_type;
  const RandomBlocks<T, I> c(20, 15, 4, 198, Data::fractions);
  const auto a = random_matrix<T>(80, 300, 199, Data::fractions),
             b = random_matrix<T>(300, 60, 200, Data::fractions);
  const auto x = put_matrix<T>(a, 80), y = put_matrix<T>(b, 300);
  const auto matrix = c.put_bsr(BlockOrder::row);
  std::vector<T> first;
  for (int run = 0; run < 2; ++run) {
    device().sparse().sddmm(x, y, matrix);
    const auto values = device().download(matrix.value);
    EXPECT_TRUE(agree(values, picked_blocks(c, a * b), Data::fractions, 300));
    if (run == 0) first = values;
    EXPECT_EQ(values, first);
  }
}

TYPED_TEST(SparseFormats, SddmmTakesNoOtherFormat) {
  using T = typename TypeParam::first_type;
  using I = typename TypeParam::second_type;
  const auto c = put_coo(RandomCsr<T, I>(6, 8, 201, Data::integers));
  const auto a = device().template alloc<T>(64);
  const auto future = device().sparse().sddmm(MatrixRef(a, 6, 3), MatrixRef(a, 3, 8), c);
  ASSERT_TRUE(future.ready());
  EXPECT_EQ(future.wait().error().message, "sparse.sddmm: it takes no matrix in coordinate form");
  EXPECT_EQ(device().take_error().code(), Errc::invalid);
}

TEST_F(BadArguments, OfSpmmOfBlocks) {
  const auto result = put(std::vector<double>(8));
  sparse::Spmm good;
  good.dtype = DType::f64;
  good.a = {.format = Format::blocked_ell,
            .index_dtype = DType::i32,
            .rows = 4,
            .columns = 4,
            .nonzeros = 8,
            .stored = 8,
            .block = 2,
            .width = 1};
  good.n = 2, good.ldb = good.ldc = 4;
  good.alpha = good.beta = one;
  good.inner = i, good.value = x, good.b = x, good.c = result.operand();
  EXPECT_TRUE(good.check().ok());
  const auto with = [&](auto change) {
    auto bad = good;
    change(bad);
    expect_refused(bad);
  };
  with([](auto& bad) { bad.a.width = 2; });
  with([](auto& bad) { bad.a.width = -1; });
  with([](auto& bad) { bad.a.width = std::numeric_limits<std::int64_t>::max(); });
  with([](auto& bad) { bad.a.block = 3; });
  with([](auto& bad) { bad.a.rows = 5; });
  with([](auto& bad) { bad.a.order = BlockOrder::column; });
  with([](auto& bad) { bad.a.nonzeros = 4; });
  with([&](auto& bad) { bad.inner = absent; });
  with([](auto& bad) { bad.a.format = Format::sell, bad.a.width = 0; });
}

}  // namespace
}  // namespace troupe::test::reference
