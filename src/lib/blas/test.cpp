#include "bad_arguments.hpp"

namespace troupe::test {
namespace {

template <class T>
class BlasOps : public Typed<T> {};
TYPED_TEST_SUITE(BlasOps, Reals);

TYPED_TEST(BlasOps, NormOfLargeElementsDoesNotOverflow) {
  using T = TypeParam;
  const T large = std::numeric_limits<T>::max() / 4;
  const auto dx = put(std::vector<T>{large, large, large, large}),
             result = device().template alloc<T>(1);
  device().blas().nrm2(dx, result);
  EXPECT_NEAR(static_cast<double>(device().download(result)[0] / large), 2.0, 1e-6);
}

TYPED_TEST(BlasOps, Gemv) {
  using T = TypeParam;
  struct Shape {
    std::int64_t m, n, extra;
  };
  for (const auto& [m, n, extra] :
       {Shape{1, 1, 0}, Shape{5, 3, 0}, Shape{3, 5, 2}, Shape{129, 65, 7}}) {
    for (const auto transpose : {blas::Transpose::no, blas::Transpose::yes}) {
      for (const auto alpha_at : kPlaces) {
        for (const auto beta_at : kPlaces) {
          SCOPED_TRACE(::testing::Message() << m << "x" << n << "+" << extra << " transposed "
                                            << static_cast<int>(transpose));
          const bool plain = transpose == blas::Transpose::no;
          const auto lda = m + extra, rows = plain ? m : n, inner = plain ? n : m;
          const auto a = random_values<T>(lda * n, 12), x = random_values<T>(inner, 13),
                     y = random_values<T>(rows, 14);
          const auto da = put(a), dx = put(x), dy = put(y);
          device().blas().gemv(
              da, dx, dy, {.m = m, .n = n, .lda = extra == 0 ? 0 : lda, .transpose = transpose},
              scalar(T(1.5), alpha_at), scalar(T(-0.5), beta_at));
          std::vector<double> expected;
          for (std::int64_t i = 0; i < rows; ++i) {
            double sum = 0;
            for (std::int64_t j = 0; j < inner; ++j) {
              const auto at = plain ? j * lda + i : i * lda + j;
              sum +=
                  double{a[static_cast<std::size_t>(at)]} * double{x[static_cast<std::size_t>(j)]};
            }
            expected.push_back(1.5 * sum - 0.5 * double{y[static_cast<std::size_t>(i)]});
          }
          EXPECT_TRUE(close(device().download(dy), expected, static_cast<double>(inner), 2));
        }
      }
    }
  }
}

TYPED_TEST(BlasOps, Gemm) {
  using T = TypeParam;
  struct Shape {
    std::int64_t m, n, k, extra;
  };
  using blas::Transpose;
  for (const auto& [m, n, k, extra] :
       {Shape{1, 1, 1, 0}, Shape{4, 3, 5, 0}, Shape{7, 9, 2, 3}, Shape{65, 33, 129, 1}}) {
    for (const auto ta : {Transpose::no, Transpose::yes}) {
      for (const auto tb : {Transpose::no, Transpose::yes}) {
        for (const auto alpha_at : kPlaces) {
          for (const auto beta_at : kPlaces) {
            SCOPED_TRACE(::testing::Message() << m << "x" << n << "x" << k << "+" << extra << " "
                                              << static_cast<int>(ta) << static_cast<int>(tb));
            const auto rows_a = ta == Transpose::no ? m : k,
                       columns_a = ta == Transpose::no ? k : m;
            const auto rows_b = tb == Transpose::no ? k : n,
                       columns_b = tb == Transpose::no ? n : k;
            const auto lda = rows_a + extra, ldb = rows_b + extra, ldc = m + extra;
            const auto a = random_values<T>(lda * columns_a, 15),
                       b = random_values<T>(ldb * columns_b, 16);
            const auto c = random_values<T>(ldc * n, 17);
            const auto da = put(a), db = put(b), dc = put(c);
            device().blas().gemm(da, db, dc,
                                 {.m = m,
                                  .n = n,
                                  .k = k,
                                  .lda = lda,
                                  .ldb = ldb,
                                  .ldc = ldc,
                                  .transpose_a = ta,
                                  .transpose_b = tb},
                                 scalar(T(0.5), alpha_at), scalar(T(2), beta_at));
            auto expected =
                std::vector<double>(c.begin(), c.end());  // rows beyond m stay as they are
            for (std::int64_t j = 0; j < n; ++j) {
              for (std::int64_t i = 0; i < m; ++i) {
                double sum = 0;
                for (std::int64_t l = 0; l < k; ++l) {
                  const auto in_a = ta == Transpose::no ? l * lda + i : i * lda + l;
                  const auto in_b = tb == Transpose::no ? j * ldb + l : l * ldb + j;
                  sum += double{a[static_cast<std::size_t>(in_a)]} *
                         double{b[static_cast<std::size_t>(in_b)]};
                }
                auto& value = expected[static_cast<std::size_t>(j * ldc + i)];
                value = 0.5 * sum + 2 * value;
              }
            }
            EXPECT_TRUE(close(device().download(dc), expected, static_cast<double>(k), 2));
          }
        }
      }
    }
  }
}

TYPED_TEST(BlasOps, BetaZeroIgnoresWhatWasThere) {
  using T = TypeParam;
  const T nan = std::numeric_limits<T>::quiet_NaN();
  const auto one = put(std::vector<T>{T(3)}), y = put(std::vector<T>{nan}),
             c = put(std::vector<T>{nan});
  device().blas().gemv(one, one, y, {.m = 1, .n = 1});
  device().blas().gemm(one, one, c, {.m = 1, .n = 1, .k = 1});
  EXPECT_EQ(device().download(y)[0], T(9));
  EXPECT_EQ(device().download(c)[0], T(9));
}

TYPED_TEST(BlasOps, AChainWithFactorsMadeOnTheDevice) {
  // x scaled to norm 1, the scalar never seen by the host.
  using T = TypeParam;
  const auto x = random_values<T>(1000, 18);
  const auto dx = put(x), norm = device().template alloc<T>(1), one = put(std::vector<T>{1}),
             inverse = device().template alloc<T>(1);
  device().blas().nrm2(dx, norm);
  device().vector().divide(one, norm, inverse);
  device().blas().scal(inverse, dx);
  device().blas().nrm2(dx, norm);
  EXPECT_NEAR(static_cast<double>(device().download(norm)[0]), 1.0,
              100 * std::numeric_limits<T>::epsilon());
}

TEST_F(BadArguments, OfBlasLevelOne) {
  using namespace blas;
  expect_refused(Axpy{DType::f64, 17, 1, 1, one, x, x});
  expect_refused(Axpy{DType::f64, -1, 1, 1, one, x, x});
  expect_refused(Axpy{DType::f64, 4, 0, 1, one, x, x});
  expect_refused(Axpy{DType::f64, 4, 1, -1, one, x, x});  // in place backwards
  expect_refused(Axpy{DType::f64, 4, 6, 1, one, x, x});
  expect_refused(Axpy{DType::f64, 3, std::int64_t{1} << 62, 1, one, x, x});
  expect_refused(Axpy{DType::f64, 4, 1, 1, short_scalar, x, x});
  expect_refused(Dot{DType::f64, 16, 1, 1, x, x, absent});
  expect_refused(Dot{DType::f64, 16, 1, 2, x, x, x});
  expect_refused(Dot{DType::i32, 16, 1, 1, x, x, x}, Errc::unsupported);
  expect_refused(Nrm2{DType::f64, 16, 1, x, absent});
  expect_refused(Nrm2{DType::f64, 16, 2, x, x});
  expect_refused(Scal{DType::f64, 16, 2, one, x});
  expect_refused(Copy{DType::f64, 16, 1, 2, x, x});
}

TEST_F(BadArguments, OfBlasLevelsTwoAndThree) {
  using namespace blas;
  const auto no = Transpose::no;
  expect_refused(Gemv{DType::f64, no, 0, 4, 5, 4, 1, 1, one, one, x, x, x});
  expect_refused(Gemv{DType::f64, no, 0, 4, 4, 3, 1, 1, one, one, x, x, x});
  expect_refused(Gemv{DType::f64, no, 0, -4, 4, 4, 1, 1, one, one, x, x, x});
  expect_refused(Gemv{DType::f64, no, 0, 4, 4, 4, 6, 1, one, one, x, x, x});
  expect_refused(Gemv{DType::f64, static_cast<Transpose>(7), 0, 4, 4, 4, 1, 1, one, one, x, x, x});
  expect_refused(Gemv{DType::f64, no, 0, 4, 4, 4, 1, 1, one, short_scalar, x, x, x});
  expect_refused(Gemv{DType::i64, no, 0, 4, 4, 4, 1, 1, one, one, x, x, x}, Errc::unsupported);
  expect_refused(Gemm{DType::f64, no, no, 4, 4, 5, 4, 5, 4, one, one, x, x, x});
  expect_refused(Gemm{DType::f64, no, no, 4, 4, 4, 3, 4, 4, one, one, x, x, x});
  expect_refused(Gemm{DType::f64, no, no, 4, 4, 4, 4, 3, 4, one, one, x, x, x});
  expect_refused(Gemm{DType::f64, no, no, 4, 4, 4, 4, 4, 3, one, one, x, x, x});
  expect_refused(Gemm{DType::f64, no, no, 4, -4, 4, 4, 4, 4, one, one, x, x, x});
  expect_refused(
      Gemm{DType::f64, static_cast<Transpose>(3), no, 4, 4, 4, 4, 4, 4, one, one, x, x, x});
  expect_refused(Gemm{DType::f64, no, no, 2, std::int64_t{1} << 62, 2, 2, 2, std::int64_t{1} << 62,
                      one, one, x, x, x});
  expect_refused(Gemm{DType::f64, no, no, 4, 4, 4, 4, 4, 4, one, one, x, absent, x});
}

}  // namespace
}  // namespace troupe::test
