// Products of sparse matrices whose elements are narrower than what they are computed in.
#include <limits>

#include "sparse_formats.hpp"

namespace troupe::test::reference {
namespace {

using sparse::Format;

/// Elements of the matrix, of the result, and indices.
template <class In, class Out, class I>
struct NarrowTypes {
  using in = In;
  using out = Out;
  using index = I;
};
using EachOfNarrowTypes =
    ::testing::Types<NarrowTypes<std::int8_t, std::int32_t, std::int32_t>,
                     NarrowTypes<std::int8_t, float, std::int64_t>,
                     NarrowTypes<Half, Half, std::int64_t>, NarrowTypes<Half, float, std::int32_t>,
                     NarrowTypes<BFloat16, BFloat16, std::int32_t>,
                     NarrowTypes<BFloat16, float, std::int64_t>>;
template <class Types>
class SparseNarrow : public ::testing::Test {};
TYPED_TEST_SUITE(SparseNarrow, EachOfNarrowTypes);

const std::vector<Format> kOfNarrowVectors{Format::csr, Format::csc, Format::coo, Format::bsr,
                                           Format::sell};
const std::vector<Format> kOfNarrowMatrices{Format::csr, Format::csc, Format::coo, Format::bsr,
                                            Format::blocked_ell};

/// The nearest numbers of T. Fractions become integers up to 100 where T has no others.
template <class T>
std::vector<Wide> nearest(std::vector<Wide> values, Data data) {
  const double unit = data == Data::fractions && std::is_same_v<T, std::int8_t> ? 100 : 1;
  for (auto& value : values) value = to_wide(from_wide<T>(unit * value));
  return values;
}
template <class T>
Dense nearest(Dense a, Data data) {
  a.element = nearest<T>(std::move(a.element), data);
  return a;
}
template <class T>
Dense narrow_matrix(std::int64_t rows, std::int64_t columns, std::uint64_t seed, Data data) {
  return nearest<T>(random_matrix<float>(rows, columns, seed, data), data);
}

template <class T, class I>
struct NarrowFormatted {
  std::string name;
  SparseRef<T, I> on_device;
  Dense dense;
};
template <class T, class I>
std::vector<NarrowFormatted<T, I>> in_narrow_formats(std::int64_t rows, std::int64_t columns,
                                                     std::uint64_t seed, Data data,
                                                     const std::vector<Format>& formats) {
  std::vector<NarrowFormatted<T, I>> result;
  for (const auto& [name, a, dense] : in_formats<float, I>(rows, columns, seed, data, formats)) {
    SparseRef<T, I> narrow(
        CsrMatrix<T, I>{0, 0, a.outer, a.inner, put_any<T>(nearest<T>(got(a.value), data))});
    narrow.form = a.form;
    result.push_back({name, narrow, nearest<T>(dense, data)});
  }
  return result;
}
Dense absolute(Dense a) {
  for (auto& value : a.element) value = std::abs(value);
  return a;
}

/// |a - b| <= 2 (k + 2) eps(sum) sum of |a| |x|, and one eps of a narrower result; of integers 0.
template <class Out>
::testing::AssertionResult agree_narrow(const std::vector<Wide>& actual,
                                        const std::vector<Wide>& expected,
                                        const std::vector<Wide>& scale, double terms) {
  if (actual.size() != expected.size()) return ::testing::AssertionFailure() << "sizes differ";
  const double sum_eps = std::is_same_v<Out, std::int32_t> ? 0 : 0x1p-23;
  const double own_eps = std::is_same_v<Out, Half>       ? 0x1p-10
                         : std::is_same_v<Out, BFloat16> ? 0x1p-7
                                                         : 0;
  for (std::size_t i = 0; i < actual.size(); ++i) {
    const double tolerance =
        2 * (terms + 2) * sum_eps * std::abs(scale[i]) + own_eps * std::abs(expected[i]);
    if (std::abs(actual[i] - expected[i]) <= tolerance) continue;
    return ::testing::AssertionFailure() << "element " << i << " is " << actual[i] << ", not "
                                         << expected[i] << " within " << tolerance;
  }
  return ::testing::AssertionSuccess();
}

struct NarrowShape {
  std::int64_t rows, columns, n;
};

/// Every format and transposition, and both sorts of scalars.
TYPED_TEST(SparseNarrow, VectorsOfIntegersAreExact) {
  using In = typename TypeParam::in;
  using Out = typename TypeParam::out;
  using Sum = detail::SumOf<Out>;
  for (const auto& [rows, columns, n] :
       {NarrowShape{1, 1, 1}, NarrowShape{70, 33, 1}, NarrowShape{33, 70, 1}, NarrowShape{0, 4, 1},
        NarrowShape{4, 0, 1}, NarrowShape{3, 5000, 1}, NarrowShape{2000, 60, 1}}) {
    for (const auto& [name, a, dense] : in_narrow_formats<In, typename TypeParam::index>(
             rows, columns, 401, Data::integers, kOfNarrowVectors)) {
      for (const auto transpose : kTransposes) {
        SCOPED_TRACE(::testing::Message() << rows << "x" << columns << " " << name
                                          << ", transposed " << static_cast<int>(transpose));
        const auto whole = op(dense, transpose);
        const auto x = narrow_matrix<In>(whole.columns, 1, 402, Data::integers),
                   y = narrow_matrix<In>(whole.rows, 1, 403, Data::integers);
        const auto product = whole * x;
        const auto expected = nearest<Out>(Wide(2) * product + Wide(-1) * y, Data::integers);
        const auto dx = put_any<In>(x.element), dy = put_any<Out>(y.element);
        for (const auto place : kPlaces) {
          const auto z = put_any<Out>(y.element);
          device().sparse().spmv_ex(transpose, scalar(Sum(2), place), a, dx,
                                    scalar(Sum(-1), Place::host), z);
          EXPECT_EQ(got(z), expected.element);
        }
        if constexpr (!std::is_same_v<Out, std::int32_t>) {
          const Wide nan(std::numeric_limits<double>::quiet_NaN());
          device().fill(dy, from_wide<Out>(nan));
        }
        device().sparse().spmv_ex(transpose, Sum(1), a, dx, Sum(0), dy);
        EXPECT_EQ(got(dy), nearest<Out>(product, Data::integers).element) << "beta = 0";
      }
    }
  }
}

TYPED_TEST(SparseNarrow, VectorsOfFractionsAreCloseAndTheSameEachTime) {
  using In = typename TypeParam::in;
  using Out = typename TypeParam::out;
  for (const auto& [name, a, dense] : in_narrow_formats<In, typename TypeParam::index>(
           200, 150, 404, Data::fractions, kOfNarrowVectors)) {
    for (const auto transpose : {Transpose::no, Transpose::yes}) {
      SCOPED_TRACE(::testing::Message() << name << ", transposed " << static_cast<int>(transpose));
      const auto whole = op(dense, transpose);
      const auto x = narrow_matrix<In>(whole.columns, 1, 405, Data::fractions);
      const auto dx = put_any<In>(x.element);
      std::vector<Wide> first;
      for (int run = 0; run < 3; ++run) {
        const auto y = device().template alloc<Out>(whole.rows);
        device().sparse().spmv_ex(transpose, detail::SumOf<Out>(1), a, dx, detail::SumOf<Out>(0),
                                  y);
        const auto values = got(y);
        EXPECT_TRUE(agree_narrow<Out>(values, (whole * x).element,
                                      (absolute(whole) * absolute(x)).element, 200));
        if (run == 0) first = values;
        EXPECT_EQ(values, first);
      }
    }
  }
}

template <class T>
MatrixRef<GpuRef<T>> put_narrow(blas::Order order, const Dense& a) {
  const auto leading = (order == blas::Order::column ? a.rows : a.columns) + 2;
  return {put_any<T>(spread_in(order, a, leading)), a.rows, a.columns, leading};
}

/// Every format, transposition and order, and both sorts of scalars; what lies between the columns
/// stays as it was.
TYPED_TEST(SparseNarrow, MatricesOfIntegersAreExact) {
  using In = typename TypeParam::in;
  using Out = typename TypeParam::out;
  using Sum = detail::SumOf<Out>;
  for (const auto& [rows, columns, n] :
       {NarrowShape{1, 1, 1}, NarrowShape{40, 33, 5}, NarrowShape{13, 70, 70}, NarrowShape{0, 4, 2},
        NarrowShape{4, 0, 2}, NarrowShape{3, 4, 0}, NarrowShape{3, 3000, 3},
        NarrowShape{3000, 3, 37}}) {
    for (const auto& [name, a, dense] : in_narrow_formats<In, typename TypeParam::index>(
             rows, columns, 406, Data::integers, kOfNarrowMatrices)) {
      for (const auto transpose : {Transpose::no, Transpose::yes}) {
        const auto whole = op(dense, transpose);
        const auto b = narrow_matrix<In>(whole.columns, n, 407, Data::integers),
                   c = narrow_matrix<In>(whole.rows, n, 408, Data::integers);
        const auto product = whole * b;
        const auto sum = nearest<Out>(Wide(3) * product + Wide(-1) * c, Data::integers);
        for (const auto order_b : {blas::Order::column, blas::Order::row}) {
          const auto order_c = n == 5 ? order_b : blas::Order::column;
          SCOPED_TRACE(::testing::Message()
                       << rows << "x" << columns << "x" << n << " " << name << ", transposed "
                       << static_cast<int>(transpose) << ", order " << static_cast<int>(order_b));
          const SpmmOptions options{transpose, order_b, order_c};
          const auto x = put_narrow<In>(order_b, b);
          const auto y = put_narrow<Out>(order_c, c);
          const auto place = order_b == blas::Order::row ? Place::host : Place::device;
          device().sparse().spmm_ex(scalar(Sum(3), place), a, x, scalar(Sum(-1), Place::host), y,
                                    options);
          EXPECT_EQ(got(y.buffer), spread_in(order_c, sum, y.leading));
          device().sparse().spmm_ex(a, x, y, options);
          EXPECT_EQ(got(y.buffer),
                    spread_in(order_c, nearest<Out>(product, Data::integers), y.leading));
        }
      }
    }
  }
}

TYPED_TEST(SparseNarrow, MatricesOfFractionsAreCloseAndTheSameEachTime) {
  using In = typename TypeParam::in;
  using Out = typename TypeParam::out;
  for (const auto& [name, a, dense] : in_narrow_formats<In, typename TypeParam::index>(
           120, 90, 409, Data::fractions, kOfNarrowMatrices)) {
    const auto b = narrow_matrix<In>(dense.columns, 24, 410, Data::fractions);
    for (const auto order : {blas::Order::column, blas::Order::row}) {
      SCOPED_TRACE(::testing::Message() << name << ", order " << static_cast<int>(order));
      const auto x = put_narrow<In>(order, b);
      std::vector<Wide> first;
      for (int run = 0; run < 2; ++run) {
        const MatrixRef y(device().template alloc<Out>(dense.rows * 24), dense.rows, 24);
        device().sparse().spmm_ex(a, x, y, {Transpose::no, order});
        const auto values = got(y.buffer);
        EXPECT_TRUE(agree_narrow<Out>(values, (dense * b).element,
                                      (absolute(dense) * absolute(b)).element, 120));
        if (run == 0) first = values;
        EXPECT_EQ(values, first);
      }
    }
  }
}

TYPED_TEST(SparseNarrow, ProductsWithMatricesWithoutElements) {
  using In = typename TypeParam::in;
  using Out = typename TypeParam::out;
  using I = typename TypeParam::index;
  using Sum = detail::SumOf<Out>;
  const auto none = device().template alloc<I>(0);
  const auto no_values = device().template alloc<In>(0);
  const auto begin = put(std::vector<I>(7));
  const SparseRef<In, I> matrices[] = {
      CsrMatrix<In, I>{6, 6, begin, none, no_values}, CooMatrix<In, I>{6, 6, none, none, no_values},
      BsrMatrix<In, I>{3, 3, 2, BlockOrder::row, begin.slice(0, 4), none, no_values}};
  const auto x = narrow_matrix<In>(6, 1, 411, Data::integers);
  for (const auto& a : matrices) {
    const auto y = put_any<Out>(x.element), z = put_any<Out>(x.element);
    device().sparse().spmv_ex(Transpose::no, Sum(1), a, put_any<In>(x.element), Sum(2), y);
    EXPECT_EQ(got(y), (Wide(2) * x).element) << static_cast<int>(a.form.format);
    device().sparse().spmm_ex(Sum(1), a, MatrixRef(put_any<In>(x.element), 6, 1), Sum(3),
                              MatrixRef(z, 6, 1));
    EXPECT_EQ(got(z), (Wide(3) * x).element) << static_cast<int>(a.form.format);
  }
}

/// Called with the structs themselves, in one program: what is prepared for a matrix is of one type
/// of result.
TEST(SparseNarrowProducts, OneMatrixHasResultsOfSeveralTypes) {
  const RandomCsr<float, std::int32_t> a(30, 20, 412, Data::integers);
  const auto row_begin = put(a.row_begin), column = put(a.column);
  const auto value = put_any<std::int8_t>(a.value);
  const CsrMatrix<std::int8_t, std::int32_t> csr{30, 20, row_begin, column, value};
  const auto x = random_matrix<float>(20, 1, 413, Data::integers);
  const auto dx = put_any<std::int8_t>(x.element);
  const auto integers = device().alloc<std::int32_t>(30);
  const auto reals = device().alloc<float>(30);
  const auto expected = (a.dense * x).element;
  for (int run = 0; run < 2; ++run) {
    device().sparse().spmv_ex(csr, dx, integers);
    device().sparse().spmv_ex(csr, dx, reals);
    EXPECT_EQ(got(integers), expected);
    EXPECT_EQ(got(reals), expected);
    device().sparse().spmm_ex(csr, MatrixRef(dx, 20, 1), MatrixRef(integers, 30, 1));
    device().sparse().spmm_ex(csr, MatrixRef(dx, 20, 1), MatrixRef(reals, 30, 1));
    EXPECT_EQ(got(integers), expected);
    EXPECT_EQ(got(reals), expected);
  }
}

/// Modulo 2^32.
TEST(SparseNarrowProducts, IntegersWrapAround) {
  const CsrMatrix<std::int8_t, std::int32_t> a{1, 2, put(std::vector<std::int32_t>{0, 2}),
                                               put(std::vector<std::int32_t>{0, 1}),
                                               put(std::vector<std::int8_t>{-128, 127})};
  const auto x = put(std::vector<std::int8_t>{-128, 127});  // 16384 + 16129 = 32513
  const auto y = put(std::vector<std::int32_t>{7}), z = put(std::vector<std::int32_t>{7});
  const std::int32_t alpha = 1 << 18, beta = 1 << 30;
  const std::vector<std::int32_t> expected{
      static_cast<std::int32_t>((std::uint32_t{32513} << 18) + (std::uint32_t{7} << 30))};
  device().sparse().spmv_ex(Transpose::no, alpha, a, x, beta, y);
  EXPECT_EQ(device().download(y), expected);
  device().sparse().spmm_ex(alpha, a, MatrixRef(x, 2, 1), beta, MatrixRef(z, 1, 1));
  EXPECT_EQ(device().download(z), expected);
}

TEST(SparseNarrowProducts, OfMatricesThatDoNotFit) {
  const RandomCsr<float, std::int32_t> random(6, 8, 414, Data::integers);
  const CsrMatrix<Half, std::int32_t> a{6, 8, put(random.row_begin), put(random.column),
                                        put_any<Half>(random.value)};
  const auto x = device().alloc<Half>(8), y = device().alloc<Half>(6);
  const auto refused = [&](const Future<void>& future, const std::string& words) {
    ASSERT_TRUE(future.ready()) << words;
    EXPECT_EQ(future.wait().code(), Errc::invalid) << words;
    EXPECT_EQ(future.wait().error().message, words);
    EXPECT_EQ(device().take_error().code(), Errc::invalid);
  };
  auto sparse = device().sparse();
  refused(sparse.spmv_ex(a, y, y), "sparse.spmv_ex: x has 6 elements, not 8");
  refused(sparse.spmv_ex(a, x, x), "sparse.spmv_ex: y has 8 elements, not 6");
  refused(sparse.spmm_ex(a, MatrixRef(y, 6, 1), MatrixRef(y, 6, 1)),
          "sparse.spmm_ex: b, in rows, has 6 elements, not 8");
  refused(sparse.spmm_ex(a, MatrixRef(x, 8, 1), MatrixRef(x, 8, 1)),
          "sparse.spmm_ex: c, in rows, has 8 elements, not 6");
  const SellMatrix<Half, std::int32_t> sell{6,
                                            8,
                                            0,
                                            6,
                                            put(std::vector<std::int32_t>(2)),
                                            device().alloc<std::int32_t>(0),
                                            device().alloc<Half>(0)};
  refused(sparse.spmm_ex(sell, MatrixRef(x, 8, 1), MatrixRef(y, 6, 1)),
          "sparse.spmm_ex: it takes no matrix in sliced ELL form");
}

TEST_F(BadArguments, OfNarrowProducts) {
  const auto result = put(std::vector<double>(8));
  sparse::SpmmEx good;
  good.dtype = DType::f16, good.c_dtype = DType::f32;
  good.a = {.format = Format::csr,
            .index_dtype = DType::i32,
            .rows = 4,
            .columns = 4,
            .nonzeros = 8,
            .stored = 8};
  good.n = 2, good.ldb = good.ldc = 4;
  good.outer = good.inner = i, good.value = good.b = x, good.c = result.operand();
  EXPECT_TRUE(good.check().ok());
  const auto both = [&](auto change, Errc code = Errc::invalid) {
    auto bad = good;
    DType out = DType::f32;
    change(bad, out);
    bad.c_dtype = out;
    expect_refused(bad, code);
    sparse::SpmvEx same;
    same.dtype = bad.dtype, same.y_dtype = out, same.a = bad.a;
    same.transpose = bad.transpose_a, same.alpha = bad.alpha, same.beta = bad.beta;
    same.outer = bad.outer, same.inner = bad.inner, same.value = bad.value;
    same.x = bad.b, same.y = bad.c;
    expect_refused(same, code);
  };
  constexpr auto kUnsupported = Errc::unsupported;
  both([](auto&, auto& out) { out = DType::bf16; }, kUnsupported);
  both([](auto&, auto& out) { out = DType::f64; }, kUnsupported);
  both([](auto&, auto& out) { out = DType::i32; }, kUnsupported);
  both([](auto&, auto& out) { out = static_cast<DType>(77); }, kUnsupported);
  both([](auto& bad, auto& out) { bad.dtype = DType::i8, out = DType::i8; }, kUnsupported);
  both([](auto& bad, auto&) { bad.dtype = DType::f32; }, kUnsupported);
  both([](auto& bad, auto&) { bad.dtype = DType::u8; }, kUnsupported);
  both([](auto& bad, auto&) { bad.dtype = static_cast<DType>(77); }, kUnsupported);
  both([](auto& bad, auto&) { bad.transpose_a = static_cast<Transpose>(3); });
  both([&](auto& bad, auto&) { bad.alpha.device = x, bad.alpha.device.bytes = 2; });
  both([&](auto& bad, auto&) { bad.beta.device = x, bad.beta.device.bytes = 2; });
  both([](auto& bad, auto&) { bad.a.rows = -1; });
  both([](auto& bad, auto&) { bad.a.index_dtype = DType::u32; });
  both([](auto& bad, auto&) { bad.a.nonzeros = bad.a.stored = 17; });
  both([](auto& bad, auto&) { bad.value.bytes = 14; });
  both([](auto& bad, auto&) { bad.b.bytes = 6; });
  both([](auto& bad, auto&) { bad.c.bytes = 12; });
  both([](auto& bad, auto&) { bad.c.offset += 2, bad.c.bytes -= 2; });
  both([&](auto& bad, auto&) { bad.outer = absent; });
  both([&](auto& bad, auto&) { bad.c = bad.b; });
  const auto alone = [&](auto change) {
    auto bad = good;
    change(bad);
    expect_refused(bad);
  };
  alone([](auto& bad) { bad.n = -1; });
  alone([](auto& bad) { bad.n = 9; });
  alone([](auto& bad) { bad.ldb = 3; });
  alone([](auto& bad) { bad.ldc = 3; });
  alone([](auto& bad) { bad.ldc = 13; });
  alone([](auto& bad) { bad.order_c = static_cast<blas::Order>(2); });
  alone([](auto& bad) { bad.a.format = Format::sell, bad.a.block = 2; });
}

}  // namespace
}  // namespace troupe::test::reference
