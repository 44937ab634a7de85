// Products of sparse matrices with dense ones.
#include "random_csr.hpp"

namespace troupe::test::reference {
namespace {

template <class Pair>
class SparseDense : public ::testing::Test {};
TYPED_TEST_SUITE(SparseDense, NumbersAndIndices);

struct SpmmShape {
  std::int64_t rows, columns, n;
};
constexpr std::int64_t kSparseGap = 3;

template <class T>
MatrixRef<GpuRef<T>> put_ordered(blas::Order order, const Dense& a) {
  const auto leading = (order == blas::Order::column ? a.rows : a.columns) + kSparseGap;
  return {put_numbers<T>(spread_in(order, a, leading)), a.rows, a.columns, leading};
}

/// Every option, and both sorts of scalars. What lies between the columns stays as it was.
TYPED_TEST(SparseDense, SpmmOfIntegersIsExact) {
  using T = typename TypeParam::first_type;
  using I = typename TypeParam::second_type;
  const T alpha = number<T>(2, -1), beta = number<T>(-1, 1);
  for (const auto& [rows, columns, n] :
       {SpmmShape{1, 1, 1}, SpmmShape{10, 10, 3}, SpmmShape{70, 33, 5}, SpmmShape{33, 170, 40},
        SpmmShape{4, 300, 33}, SpmmShape{3, 4, 0}, SpmmShape{0, 4, 2}, SpmmShape{4, 0, 2}}) {
    const RandomCsr<T, I> a(rows, columns, 61, Data::integers);
    const auto on_device = a.on_device();
    for (const auto transpose : kTransposes) {
      const auto whole = op(a.dense, transpose);
      const auto b = random_matrix<T>(whole.columns, n, 62, Data::integers),
                 c = random_matrix<T>(whole.rows, n, 63, Data::integers);
      const auto product = whole * b;
      const auto expected = widen(alpha) * product + widen(beta) * c;
      for (const auto order_b : {blas::Order::column, blas::Order::row}) {
        for (const auto order_c : {blas::Order::column, blas::Order::row}) {
          SCOPED_TRACE(::testing::Message()
                       << rows << "x" << columns << "x" << n << ", transposed "
                       << static_cast<int>(transpose) << ", orders " << static_cast<int>(order_b)
                       << static_cast<int>(order_c));
          const SpmmOptions options{transpose, order_b, order_c};
          const auto x = put_ordered<T>(order_b, b), y = put_ordered<T>(order_c, c);
          const auto place = order_b == order_c ? Place::host : Place::device;
          device().sparse().spmm(scalar(alpha, place), on_device, x, scalar(beta, Place::host), y,
                                 options);
          EXPECT_EQ(got(y.buffer), spread_in(order_c, expected, y.leading));
          device().sparse().spmm(on_device, x, y, options);
          EXPECT_EQ(got(y.buffer), spread_in(order_c, product, y.leading));
        }
      }
    }
  }
}

TYPED_TEST(SparseDense, SpmmOfFractionsIsCloseAndTheSameEachTime) {
  using T = typename TypeParam::first_type;
  using I = typename TypeParam::second_type;
  const RandomCsr<T, I> a(200, 150, 64, Data::fractions);
  const auto on_device = a.on_device();
  for (const auto transpose : kTransposes) {
    const auto whole = op(a.dense, transpose);
    const auto b = random_matrix<T>(whole.columns, 37, 65, Data::fractions);
    for (const auto order : {blas::Order::column, blas::Order::row}) {
      const auto x = put_ordered<T>(order, b);
      std::vector<T> first;
      for (int run = 0; run < 3; ++run) {
        const auto y = device().template alloc<T>(whole.rows * 37);
        device().sparse().spmm(on_device, x, MatrixRef(y, whole.rows, 37), {transpose, order});
        const auto values = device().download(y);
        EXPECT_TRUE(agree(values, (whole * b).element, Data::fractions, 200));
        if (run == 0) first = values;
        EXPECT_EQ(values, first);
      }
    }
  }
}

TYPED_TEST(SparseDense, SpmmWithBetaZeroOverwritesWhatIsNoNumber) {
  using T = typename TypeParam::first_type;
  using I = typename TypeParam::second_type;
  const RandomCsr<T, I> a(20, 20, 66, Data::integers);
  const auto b = random_matrix<T>(20, 2, 67, Data::integers);
  for (const auto place : kPlaces) {
    const MatrixRef c(put(std::vector<T>(40, T(std::numeric_limits<RealOf<T>>::quiet_NaN()))), 20,
                      2);
    device().sparse().spmm(T(1), a.on_device(), put_matrix<T>(b, 20), scalar(T(0), place), c);
    EXPECT_EQ(got(c.buffer), (a.dense * b).element);
  }
}

TYPED_TEST(SparseDense, SpmmOfAnEmptyMatrix) {
  using T = typename TypeParam::first_type;
  using I = typename TypeParam::second_type;
  const CsrMatrix<T, I> none{3, 3, put(std::vector<I>(4)), device().template alloc<I>(0),
                             device().template alloc<T>(0)};
  const auto c = random_matrix<T>(3, 2, 68, Data::integers);
  for (const auto transpose : kTransposes) {
    const auto x = put_matrix<T>(c, 3), y = put_matrix<T>(c, 3);
    device().sparse().spmm(T(1), none, x, T(2), y, {transpose});
    EXPECT_EQ(got(y.buffer), (Wide(2) * c).element);
  }
}

/// What an engine has prepared holds for other values, and is void for another pattern.
TYPED_TEST(SparseDense, SpmmSeesChangedValuesAndPatterns) {
  using T = typename TypeParam::first_type;
  using I = typename TypeParam::second_type;
  constexpr std::int64_t kOrder = 60;
  RandomCsr<T, I> a(kOrder, kOrder, 69, Data::integers);
  const auto on_device = a.on_device();
  const auto b = random_matrix<T>(kOrder, 2, 70, Data::integers);
  const auto x = put_matrix<T>(b, kOrder), y = put_matrix<T>(Dense{kOrder, 2}, kOrder);
  const auto expect_product = [&](const char* what) {
    for (const auto transpose : {Transpose::yes, Transpose::no}) {
      device().sparse().spmm(on_device, x, y, {transpose});
      EXPECT_EQ(got(y.buffer), (op(a.dense, transpose) * b).element) << what;
    }
  };
  expect_product("at first");
  a.set_values(numbers<T>(std::ssize(a.column), 71, Data::integers));
  device().upload(std::span<const T>(to_numbers<T>(a.value)), on_device.value);
  expect_product("with other values");
  for (auto& column : a.column) column = static_cast<I>(kOrder - 1) - column;
  a.dense = Dense{kOrder, kOrder};
  a.set_values(a.value);
  device().upload(std::span<const I>(a.column), on_device.column);
  expect_product("with other columns");
}

TYPED_TEST(SparseDense, SpmmOfMatricesThatDoNotFit) {
  using T = typename TypeParam::first_type;
  using I = typename TypeParam::second_type;
  const auto a = RandomCsr<T, I>(5, 4, 72, Data::integers).on_device();
  const auto b = device().template alloc<T>(64), c = device().template alloc<T>(64);
  const auto refused = [&](const auto& matrix, const MatrixRef<GpuRef<T>>& left,
                           const MatrixRef<GpuRef<T>>& right, const SpmmOptions& options = {}) {
    const auto future = device().sparse().spmm(matrix, left, right, options);
    ASSERT_TRUE(future.ready());
    EXPECT_EQ(future.wait().code(), Errc::invalid);
    EXPECT_EQ(device().take_error().code(), Errc::invalid);
  };
  refused(a, {b, 5, 3}, {c, 5, 3});
  refused(a, {b, 4, 3}, {c, 4, 3});
  refused(a, {b, 4, 3}, {c, 5, 2});
  refused(a, {b, 4, 3}, {c, 5, 3}, {Transpose::yes});
  refused(a, {b, 4, 3, 3}, {c, 5, 3});
  refused(a, {b, 4, 5}, {c, 5, 5, 4}, {.order_c = blas::Order::row});
  refused(a, {b, 4, 17}, {c, 5, 12});
  auto shorter = a;
  shorter.row_begin = a.row_begin.slice(0, 5);
  refused(shorter, {b, 4, 3}, {c, 5, 3});
  EXPECT_TRUE(device().sparse().spmm(a, MatrixRef(b, 4, 3), MatrixRef(c, 5, 3)).wait().ok());
}

/// The values of a matrix with that pattern.
template <class T, class I>
std::vector<Wide> picked(const RandomCsr<T, I>& pattern, const Dense& from) {
  std::vector<Wide> values;
  for (std::size_t row = 0; row + 1 < pattern.row_begin.size(); ++row) {
    for (auto k = static_cast<std::size_t>(pattern.row_begin[row]);
         k < static_cast<std::size_t>(pattern.row_begin[row + 1]); ++k)
      values.push_back(
          from(static_cast<std::int64_t>(row), static_cast<std::int64_t>(pattern.column[k])));
  }
  return values;
}

TYPED_TEST(SparseDense, SddmmOfIntegersIsExact) {
  using T = typename TypeParam::first_type;
  using I = typename TypeParam::second_type;
  const T alpha = number<T>(2, -1), beta = number<T>(-1, 1);
  for (const auto& [rows, columns, k] :
       {SpmmShape{1, 1, 1}, SpmmShape{10, 10, 3}, SpmmShape{70, 33, 5}, SpmmShape{33, 170, 40}}) {
    const RandomCsr<T, I> c(rows, columns, 73, Data::integers);
    const auto a = random_matrix<T>(rows, k, 74, Data::integers),
               b = random_matrix<T>(k, columns, 75, Data::integers);
    const auto product = a * b;
    for (const auto transpose_a : {Transpose::no, Transpose::yes}) {
      for (const auto transpose_b : {Transpose::no, Transpose::yes}) {
        for (const auto order_a : {blas::Order::column, blas::Order::row}) {
          for (const auto order_b : {blas::Order::column, blas::Order::row}) {
            SCOPED_TRACE(::testing::Message()
                         << rows << "x" << columns << "x" << k << ", transposed "
                         << static_cast<int>(transpose_a) << static_cast<int>(transpose_b)
                         << ", orders " << static_cast<int>(order_a) << static_cast<int>(order_b));
            const SddmmOptions options{transpose_a, transpose_b, order_a, order_b};
            const auto on_device = c.on_device();
            const auto x = put_ordered<T>(order_a, op(a, transpose_a)),
                       y = put_ordered<T>(order_b, op(b, transpose_b));
            const auto place = order_a == order_b ? Place::host : Place::device;
            device().sparse().sddmm(scalar(alpha, place), x, y, scalar(beta, Place::host),
                                    on_device, options);
            EXPECT_EQ(got(on_device.value),
                      picked(c, widen(alpha) * product + widen(beta) * c.dense));
            device().sparse().sddmm(x, y, on_device, options);
            EXPECT_EQ(got(on_device.value), picked(c, product));
          }
        }
      }
    }
  }
}

TYPED_TEST(SparseDense, SddmmOfFractionsIsCloseAndTheSameEachTime) {
  using T = typename TypeParam::first_type;
  using I = typename TypeParam::second_type;
  const RandomCsr<T, I> c(120, 90, 76, Data::fractions);
  const auto a = random_matrix<T>(120, 300, 77, Data::fractions),
             b = random_matrix<T>(300, 90, 78, Data::fractions);
  const auto x = put_matrix<T>(a, 120), y = put_matrix<T>(b, 300);
  const auto on_device = c.on_device();
  std::vector<T> first;
  for (int run = 0; run < 3; ++run) {
    device().sparse().sddmm(x, y, on_device);
    const auto values = device().download(on_device.value);
    EXPECT_TRUE(agree(values, picked(c, a * b), Data::fractions, 300));
    if (run == 0) first = values;
    EXPECT_EQ(values, first);
  }
}

TYPED_TEST(SparseDense, SddmmOfMatricesThatDoNotFit) {
  using T = typename TypeParam::first_type;
  using I = typename TypeParam::second_type;
  const auto c = RandomCsr<T, I>(5, 4, 79, Data::integers).on_device();
  const auto a = device().template alloc<T>(64), b = device().template alloc<T>(64);
  const auto refused = [&](const MatrixRef<GpuRef<T>>& left, const MatrixRef<GpuRef<T>>& right,
                           const SddmmOptions& options = {}) {
    const auto future = device().sparse().sddmm(left, right, c, options);
    ASSERT_TRUE(future.ready());
    EXPECT_EQ(future.wait().code(), Errc::invalid);
    EXPECT_EQ(device().take_error().code(), Errc::invalid);
  };
  refused({a, 4, 3}, {b, 3, 4});
  refused({a, 5, 3}, {b, 2, 4});
  refused({a, 5, 3}, {b, 3, 5});
  refused({a, 5, 0}, {b, 0, 4});
  refused({a, 5, 3}, {b, 3, 4}, {Transpose::yes});
  refused({a, 3, 5}, {b, 3, 4}, {Transpose::conjugate});
  EXPECT_TRUE(device().sparse().sddmm(MatrixRef(a, 5, 3), MatrixRef(b, 3, 4), c).wait().ok());
}

TEST_F(BadArguments, OfSpmm) {
  const auto result = put(std::vector<double>(8));
  const sparse::Form csr{.format = sparse::Format::csr,
                         .index_dtype = DType::i32,
                         .rows = 4,
                         .columns = 4,
                         .nonzeros = 8,
                         .stored = 8};
  const sparse::Spmm good{DType::f64,
                          Transpose::no,
                          blas::Order::column,
                          blas::Order::column,
                          {},
                          csr,
                          2,
                          4,
                          4,
                          one,
                          one,
                          i,
                          i,
                          x,
                          x,
                          result.operand()};
  const auto with = [&](auto change, Errc code = Errc::invalid) {
    auto bad = good;
    change(bad);
    expect_refused(bad, code);
  };
  with([](auto& bad) { bad.a.rows = -1; });
  with([](auto& bad) { bad.a.columns = -1; });
  with([](auto& bad) { bad.a.nonzeros = bad.a.stored = -1; });
  with([](auto& bad) { bad.n = -1; });
  with([](auto& bad) { bad.a.rows = 16; });  // 17 row offsets needed
  with([](auto& bad) { bad.a.nonzeros = bad.a.stored = 17; });
  with([](auto& bad) { bad.n = 3; });  // 12 elements of C
  with([](auto& bad) { bad.ldb = 3; });
  with([](auto& bad) { bad.ldc = 3; });
  with([](auto& bad) { bad.ldc = 5; });
  with([](auto& bad) { bad.order_b = blas::Order::row, bad.ldb = 1; });
  with([](auto& bad) { bad.order_c = blas::Order::row, bad.ldc = 1; });
  with([](auto& bad) { bad.order_c = static_cast<blas::Order>(2); });
  with([](auto& bad) { bad.transpose_a = static_cast<Transpose>(3); });
  with([](auto& bad) { bad.a.columns = std::int64_t{1} << 40; });
  with([](auto& bad) { bad.a.index_dtype = DType::u32; });
  with([&](auto& bad) { bad.alpha = short_scalar; });
  with([&](auto& bad) { bad.b = absent; });
  with([&](auto& bad) { bad.value = unaligned; });
  with([&](auto& bad) { bad.c = x; });  // which is read as well
  with([](auto& bad) { bad.dtype = DType::f16; }, Errc::unsupported);
}

TEST_F(BadArguments, OfSddmm) {
  const auto result = put(std::vector<double>(8));
  const sparse::Form csr{.format = sparse::Format::csr,
                         .index_dtype = DType::i32,
                         .rows = 4,
                         .columns = 4,
                         .nonzeros = 8,
                         .stored = 8};
  const sparse::Sddmm good{DType::f64,
                           Transpose::no,
                           Transpose::no,
                           blas::Order::column,
                           blas::Order::column,
                           {},
                           csr,
                           2,
                           4,
                           2,
                           one,
                           one,
                           i,
                           i,
                           x,
                           x,
                           result.operand()};
  const auto with = [&](auto change, Errc code = Errc::invalid) {
    auto bad = good;
    change(bad);
    expect_refused(bad, code);
  };
  with([](auto& bad) { bad.c.rows = -1; });
  with([](auto& bad) { bad.c.columns = -1; });
  with([](auto& bad) { bad.k = 0; });
  with([](auto& bad) { bad.k = 5; });  // 20 elements of A needed
  with([](auto& bad) { bad.c.nonzeros = bad.c.stored = 9; });
  with([](auto& bad) { bad.c.rows = 16; });  // 17 row offsets needed
  with([](auto& bad) { bad.lda = 3; });
  with([](auto& bad) { bad.ldb = 1; });
  with([](auto& bad) { bad.transpose_b = Transpose::yes; });
  with([](auto& bad) { bad.transpose_a = Transpose::conjugate; });
  with([](auto& bad) { bad.order_a = static_cast<blas::Order>(2); });
  with([](auto& bad) { bad.c.index_dtype = DType::f32; });
  with([](auto& bad) { bad.c.format = sparse::Format::coo; });
  with([&](auto& bad) { bad.beta = short_scalar; });
  with([&](auto& bad) { bad.inner = absent; });
  with([&](auto& bad) { bad.a = unaligned; });
  with([&](auto& bad) { bad.value = x; });  // which is read as well
  with([](auto& bad) { bad.dtype = DType::bf16; }, Errc::unsupported);
}

}  // namespace
}  // namespace troupe::test::reference
