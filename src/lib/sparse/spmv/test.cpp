// Products of sparse matrices of all formats with vectors.
#include <limits>

#include "sparse_formats.hpp"

namespace troupe::test::reference {
namespace {

using sparse::Form;
using sparse::Format;

template <class Pair>
class SparseSpmv : public ::testing::Test {};
TYPED_TEST_SUITE(SparseSpmv, NumbersAndIndices);

const std::vector<Format> kOfSpmv{Format::csr, Format::csc, Format::coo, Format::bsr, Format::sell};

struct SpmvShape {
  std::int64_t rows, columns;
};

/// Every format and transposition, and both sorts of scalars.
TYPED_TEST(SparseSpmv, OfIntegersIsExact) {
  using T = typename TypeParam::first_type;
  using I = typename TypeParam::second_type;
  const T alpha = number<T>(2, -1), beta = number<T>(-1, 1);
  for (const auto& [rows, columns] :
       {SpmvShape{1, 1}, SpmvShape{70, 33}, SpmvShape{33, 170}, SpmvShape{0, 4}, SpmvShape{4, 0}}) {
    for (const auto& [name, a, dense] :
         in_formats<T, I>(rows, columns, 161, Data::integers, kOfSpmv)) {
      for (const auto transpose : kTransposes) {
        SCOPED_TRACE(::testing::Message() << rows << "x" << columns << " " << name
                                          << ", transposed " << static_cast<int>(transpose));
        const auto whole = op(dense, transpose);
        const auto x = random_matrix<T>(whole.columns, 1, 162, Data::integers),
                   y = random_matrix<T>(whole.rows, 1, 163, Data::integers);
        const auto product = whole * x;
        const auto dx = put_numbers<T>(x.element), dy = put_numbers<T>(y.element);
        for (const auto place : kPlaces) {
          const auto z = put_numbers<T>(y.element);
          device().sparse().spmv(transpose, scalar(alpha, place), a, dx, scalar(beta, Place::host),
                                 z);
          EXPECT_EQ(got(z), (widen(alpha) * product + widen(beta) * y).element);
        }
        device().fill(dy, T(std::numeric_limits<RealOf<T>>::quiet_NaN()));
        device().sparse().spmv(transpose, T(1), a, dx, T(0), dy);
        EXPECT_EQ(got(dy), product.element) << "beta = 0 over NaN";
      }
    }
  }
}

/// Called with the structs themselves.
TYPED_TEST(SparseSpmv, TakesEveryStruct) {
  using T = typename TypeParam::first_type;
  using I = typename TypeParam::second_type;
  const RandomCsr<T, I> a(30, 20, 164, Data::integers);
  const RandomBlocks<T, I> blocks(10, 10, 2, 165, Data::integers);
  const auto x = random_matrix<T>(20, 1, 166, Data::integers);
  const auto dx = put_numbers<T>(x.element), dy = device().template alloc<T>(30);
  const auto expect_product = [&](const auto& matrix, const Dense& dense) {
    const auto y = dy.slice(0, dense.rows);
    device().sparse().spmv(matrix, dx, y);
    EXPECT_EQ(got(y), (dense * x).element);
  };
  expect_product(a.on_device(), a.dense);
  expect_product(put_csc(a), a.dense);
  expect_product(put_coo(a), a.dense);
  expect_product(put_sell(a, 8), a.dense);
  expect_product(blocks.put_bsr(BlockOrder::column), blocks.dense);
}

TYPED_TEST(SparseSpmv, OfFractionsIsCloseAndTheSameEachTime) {
  using T = typename TypeParam::first_type;
  using I = typename TypeParam::second_type;
  for (const auto& [name, a, dense] : in_formats<T, I>(200, 150, 167, Data::fractions, kOfSpmv)) {
    for (const auto transpose : kTransposes) {
      SCOPED_TRACE(::testing::Message() << name << ", transposed " << static_cast<int>(transpose));
      const auto whole = op(dense, transpose);
      const auto x = random_matrix<T>(whole.columns, 1, 168, Data::fractions);
      const auto dx = put_numbers<T>(x.element);
      std::vector<T> first;
      for (int run = 0; run < 3; ++run) {
        const auto y = device().template alloc<T>(whole.rows);
        device().sparse().spmv(transpose, T(1), a, dx, T(0), y);
        const auto values = device().download(y);
        EXPECT_TRUE(agree(values, (whole * x).element, Data::fractions, 200));
        if (run == 0) first = values;
        EXPECT_EQ(values, first);
      }
    }
  }
}

/// Rows so long, or so many, that engines share them among threads.
TYPED_TEST(SparseSpmv, OfLongRowsAndManyElements) {
  using T = typename TypeParam::first_type;
  using I = typename TypeParam::second_type;
  for (const auto& [rows, columns] :
       {SpmvShape{3, 5000}, SpmvShape{9000, 3}, SpmvShape{900, 180}}) {
    for (const auto& [name, a, dense] :
         in_formats<T, I>(rows, columns, 169, Data::integers, kOfSpmv)) {
      for (const auto transpose : kTransposes) {
        SCOPED_TRACE(::testing::Message() << rows << "x" << columns << " " << name
                                          << ", transposed " << static_cast<int>(transpose));
        const auto whole = op(dense, transpose);
        const auto x = random_matrix<T>(whole.columns, 1, 170, Data::integers);
        const auto dx = put_numbers<T>(x.element), dy = device().template alloc<T>(whole.rows);
        device().sparse().spmv(transpose, T(1), a, dx, T(0), dy);
        EXPECT_EQ(got(dy), (whole * x).element);
      }
    }
  }
}

TYPED_TEST(SparseSpmv, OfMatricesWithoutElements) {
  using T = typename TypeParam::first_type;
  using I = typename TypeParam::second_type;
  const auto none = device().template alloc<I>(0);
  const auto no_values = device().template alloc<T>(0);
  const auto begin = put(std::vector<I>(7));
  const SparseRef<T, I> matrices[] = {
      CsrMatrix<T, I>{6, 6, begin, none, no_values},
      CscMatrix<T, I>{6, 6, begin, none, no_values},
      CooMatrix<T, I>{6, 6, none, none, no_values},
      BsrMatrix<T, I>{3, 3, 2, BlockOrder::row, begin.slice(0, 4), none, no_values},
      SellMatrix<T, I>{6, 6, 0, 6, begin.slice(0, 2), none, no_values},
      SellMatrix<T, I>{6, 6, 0, 3, put(std::vector<I>{0, 3, 3}), put(std::vector<I>(3, I(-1))),
                       put(std::vector<T>(3))}};
  const auto x = random_matrix<T>(6, 1, 171, Data::integers);
  for (const auto& a : matrices) {
    for (const auto transpose : kTransposes) {
      const auto y = put_numbers<T>(x.element);
      device().sparse().spmv(transpose, T(1), a, put_numbers<T>(x.element), T(2), y);
      EXPECT_EQ(got(y), (Wide(2) * x).element) << static_cast<int>(a.form.format);
    }
  }
}

/// What an engine has prepared holds for other values, and is void for another pattern.
TYPED_TEST(SparseSpmv, SeesChangedValuesAndPatterns) {
  using T = typename TypeParam::first_type;
  using I = typename TypeParam::second_type;
  constexpr std::int64_t kOrder = 60;
  const auto x = random_matrix<T>(kOrder, 1, 172, Data::integers);
  const auto dx = put_numbers<T>(x.element), dy = device().template alloc<T>(kOrder);
  const auto before = in_formats<T, I>(kOrder, kOrder, 173, Data::integers, kOfSpmv);
  const auto values_changed = [&](const Formatted<T, I>& a) {
    auto values = device().download(a.on_device.value);
    for (auto& value : values) value = value * T(3);
    device().upload(std::span<const T>(values), a.on_device.value);
    return Wide(3) * a.dense;
  };
  /// Turned round: what was in the last column, or block column, is in the first.
  const auto indices_changed = [&](const Formatted<T, I>& a, const Dense& dense) {
    const auto& form = a.on_device.form;
    const auto extent = form.blocked() ? form.block : 1;
    const auto last = static_cast<I>(kOrder / extent - 1);
    auto indices = device().download(a.on_device.inner);
    for (auto& index : indices) index = index < 0 ? index : static_cast<I>(last - index);
    device().upload(std::span<const I>(indices), a.on_device.inner);
    Dense turned{kOrder, kOrder};
    for (std::int64_t i = 0; i < kOrder; ++i) {
      for (std::int64_t j = 0; j < kOrder; ++j) {
        const auto other = [&](std::int64_t k) {
          return (kOrder / extent - 1 - k / extent) * extent + k % extent;
        };
        (form.format == Format::csc ? turned(other(i), j) : turned(i, other(j))) = dense(i, j);
      }
    }
    return turned;
  };
  for (const auto& a : before) {
    const auto expect_product = [&](const Dense& dense, const char* what) {
      for (const auto transpose : {Transpose::no, Transpose::yes}) {
        device().sparse().spmv(transpose, T(1), a.on_device, dx, T(0), dy);
        EXPECT_EQ(got(dy), (op(dense, transpose) * x).element) << a.name << " " << what;
      }
    };
    expect_product(a.dense, "at first");
    const auto with_values = values_changed(a);
    expect_product(with_values, "with other values");
    expect_product(indices_changed(a, with_values), "with other indices");
  }
}

/// The same of what tells the rows of a matrix in coordinate form.
TYPED_TEST(SparseSpmv, SeesChangedRows) {
  using T = typename TypeParam::first_type;
  using I = typename TypeParam::second_type;
  const CooMatrix<T, I> a{3, 3, put(std::vector<I>{0, 1, 2}), put(std::vector<I>{0, 1, 2}),
                          put(std::vector<T>{T(1), T(2), T(3)})};
  const auto x = put(std::vector<T>{T(1), T(10), T(100)}), y = device().template alloc<T>(3);
  const auto expect = [&](const std::vector<T>& plain, const std::vector<T>& transposed) {
    device().sparse().spmv(a, x, y);
    EXPECT_EQ(device().download(y), plain);
    device().sparse().spmv(Transpose::yes, T(1), a, x, T(0), y);
    EXPECT_EQ(device().download(y), transposed);
  };
  expect({T(1), T(20), T(300)}, {T(1), T(20), T(300)});
  device().upload(std::span<const I>(std::vector<I>{0, 0, 0}), a.row).get();
  expect({T(321), T(0), T(0)}, {T(1), T(2), T(3)});
}

/// Padding has no column: x is not read there.
TYPED_TEST(SparseSpmv, PaddingDoesNotMeetTheVector) {
  using T = typename TypeParam::first_type;
  using I = typename TypeParam::second_type;
  const T infinite = T(std::numeric_limits<RealOf<T>>::infinity());
  // The diagonal (0, 2, 3, 4) in slices of three: row 0 has no element where x is infinite.
  const SellMatrix<T, I> a{4,
                           4,
                           3,
                           3,
                           put(std::vector<I>{0, 3, 6}),
                           put(std::vector<I>{-1, 1, 2, 3, -1, -1}),
                           put(std::vector<T>{T(0), T(2), T(3), T(4), T(0), T(0)})};
  const auto y = device().template alloc<T>(4);
  device().sparse().spmv(a, put(std::vector<T>{infinite, T(1), T(1), T(1)}), y);
  EXPECT_EQ(device().download(y), (std::vector<T>{T(0), T(2), T(3), T(4)}));
}

/// The cuda engine does not look.
TYPED_TEST(SparseSpmv, WrongIndicesReadNothingOutside) {
  using T = typename TypeParam::first_type;
  using I = typename TypeParam::second_type;
  if (on_cuda()) GTEST_SKIP() << "what the indices say is checked by the cpu engine only";
  constexpr auto kFar = std::numeric_limits<I>::max();
  const auto values = put(std::vector<T>{T(1), T(2), T(3)});
  const auto index = put(std::vector<I>{0, kFar, I(-5)});
  const auto x = put(std::vector<T>{T(1), T(1), T(1)}), y = device().template alloc<T>(3);
  const SparseRef<T, I> matrices[] = {
      CsrMatrix<T, I>{3, 3, put(std::vector<I>{0, 1, 2, 3}), index, values},
      CscMatrix<T, I>{3, 3, put(std::vector<I>{0, 1, 2, 3}), index, values},
      CooMatrix<T, I>{3, 3, index, put(std::vector<I>{0, 0, 0}), values},
      BsrMatrix<T, I>{3, 3, 1, BlockOrder::row, put(std::vector<I>{0, 1, 2, 3}), index, values},
      SellMatrix<T, I>{3, 3, 3, 3, put(std::vector<I>{0, 3}), index, values}};
  for (const auto& a : matrices) {
    for (const auto transpose : kTransposes) {
      device().sparse().spmv(transpose, T(1), a, x, T(0), y);
      EXPECT_EQ(device().download(y), (std::vector<T>{T(1), T(0), T(0)}))
          << static_cast<int>(a.form.format);
    }
  }
  const CsrMatrix<T, I> begins{3, 3, put(std::vector<I>{-7, 1, kFar, 3}),
                               put(std::vector<I>{0, 1, 2}), values};
  device().sparse().spmv(begins, x, y);
  EXPECT_EQ(device().download(y), (std::vector<T>{T(1), T(5), T(0)}));
}

TYPED_TEST(SparseSpmv, OfBuffersThatDoNotFit) {
  using T = typename TypeParam::first_type;
  using I = typename TypeParam::second_type;
  const auto x = device().template alloc<T>(20), y = device().template alloc<T>(20);
  const auto refused = [&](const SparseRef<T, I>& a, std::int64_t of_x, std::int64_t of_y,
                           const std::string& words, Transpose transpose = Transpose::no) {
    const auto future =
        device().sparse().spmv(transpose, T(1), a, x.slice(0, of_x), T(0), y.slice(0, of_y));
    ASSERT_TRUE(future.ready()) << words;
    EXPECT_EQ(future.wait().code(), Errc::invalid) << words;
    EXPECT_EQ(future.wait().error().message, "sparse.spmv: " + words);
    EXPECT_EQ(device().take_error().code(), Errc::invalid);
  };
  const RandomCsr<T, I> random(10, 20, 174, Data::integers);
  const auto csr = random.on_device();
  refused(csr, 19, 10, "x has 19 elements, not 20");
  refused(csr, 20, 9, "y has 9 elements, not 10");
  refused(csr, 20, 10, "x has 20 elements, not 10", Transpose::conjugate);
  auto shorter = csr;
  shorter.row_begin = csr.row_begin.slice(0, 10);
  refused(shorter, 20, 10, "row_begin has 10 elements, not 11");
  auto csc = put_csc(random);
  csc.column_begin = csr.row_begin;
  refused(csc, 20, 10, "column_begin has 11 elements, not 21");
  auto coo = put_coo(random);
  coo.row = coo.row.slice(0, 3);
  refused(coo, 20, 10, "row has 3 elements, not " + std::to_string(std::ssize(random.column)));
  auto sell = put_sell(random, 4);
  sell.slice_rows = 5;
  refused(sell, 20, 10, "slice_begin has 4 elements, not 3");
  const RandomBlocks<T, I> blocks(5, 10, 2, 175, Data::integers);
  auto bsr = blocks.put_bsr(BlockOrder::row);
  bsr.row_begin = bsr.row_begin.slice(0, 5);
  refused(bsr, 20, 10, "row_begin has 5 elements, not 6");
  refused(blocks.put_ell(), 20, 10, "it takes no matrix in blocked ELL form");
}

TEST_F(BadArguments, OfSpmv) {
  const auto result = put(std::vector<double>(8));
  const Form csr{.format = Format::csr,
                 .index_dtype = DType::i32,
                 .rows = 4,
                 .columns = 4,
                 .nonzeros = 4,
                 .stored = 4};
  const sparse::Spmv good{DType::f64, Transpose::no,   {}, csr, one, one, i, i, x,
                          x,          result.operand()};
  const auto with = [&](auto change, Errc code = Errc::invalid) {
    auto bad = good;
    change(bad);
    expect_refused(bad, code);
  };
  EXPECT_TRUE(good.check().ok());
  with([](auto& bad) { bad.a.format = static_cast<Format>(6); });
  with([](auto& bad) { bad.a.format = Format::blocked_ell, bad.a.width = 1; });
  with([](auto& bad) { bad.a.rows = -1; });
  with([](auto& bad) { bad.a.columns = -1; });
  with([](auto& bad) { bad.a.nonzeros = bad.a.stored = -1; });
  with([](auto& bad) { bad.a.nonzeros = 3; });
  with([](auto& bad) { bad.a.stored = 3; });
  with([](auto& bad) { bad.a.rows = 16; });  // 17 row offsets needed
  with([](auto& bad) { bad.a.nonzeros = bad.a.stored = 17; });
  with([](auto& bad) { bad.a.columns = 17; });
  with([](auto& bad) { bad.a.columns = 0; });  // and elements
  with([](auto& bad) { bad.a.columns = std::int64_t{1} << 40; });
  with([](auto& bad) { bad.a.rows = std::numeric_limits<std::int64_t>::max(); });
  with([](auto& bad) { bad.a.block = 2; });
  with([](auto& bad) { bad.a.width = 1; });
  with([](auto& bad) { bad.a.order = BlockOrder::column; });
  with([](auto& bad) { bad.a.index_dtype = DType::f64; });
  with([](auto& bad) { bad.transpose = static_cast<Transpose>(3); });
  with([](auto& bad) { bad.transpose = Transpose::yes, bad.a.columns = 9; });  // of y
  with([&](auto& bad) { bad.alpha = short_scalar; });
  with([&](auto& bad) { bad.outer = absent; });
  with([&](auto& bad) { bad.inner = absent; });
  with([&](auto& bad) { bad.value = unaligned; });
  with([&](auto& bad) { bad.y = x; });  // which is read as well
  with([](auto& bad) { bad.dtype = DType::bf16; }, Errc::unsupported);

  const auto of_blocks = [&](auto change) {
    with([&](auto& bad) {
      bad.a.format = Format::bsr, bad.a.block = 2;
      EXPECT_TRUE(bad.check().ok());
      change(bad);
    });
  };
  of_blocks([](auto& bad) { bad.a.block = 0; });
  of_blocks([](auto& bad) { bad.a.block = 3; });
  of_blocks([](auto& bad) { bad.a.rows = 5; });
  of_blocks([](auto& bad) { bad.a.columns = 3; });
  of_blocks([](auto& bad) { bad.a.nonzeros = bad.a.stored = 6; });  // a block and a half
  of_blocks([](auto& bad) { bad.a.order = static_cast<BlockOrder>(2); });

  const auto of_slices = [&](auto change) {
    with([&](auto& bad) {
      bad.a.format = Format::sell, bad.a.block = 2, bad.a.nonzeros = 3;
      EXPECT_TRUE(bad.check().ok());
      change(bad);
    });
  };
  of_slices([](auto& bad) { bad.a.block = 0; });
  of_slices([](auto& bad) { bad.a.block = 3; });
  of_slices([](auto& bad) { bad.a.nonzeros = 5; });
  of_slices([](auto& bad) { bad.a.stored = 18; });
  of_slices([](auto& bad) { bad.a.rows = 0; });
}

}  // namespace
}  // namespace troupe::test::reference
