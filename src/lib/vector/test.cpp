#include "bad_arguments.hpp"

namespace troupe::test {
namespace {

template <class T>
class VectorOps : public Typed<T> {};
TYPED_TEST_SUITE(VectorOps, Reals);

TYPED_TEST(VectorOps, MultiplyAndDivide) {
  using T = TypeParam;
  for (const auto n : kLengths) {
    SCOPED_TRACE(n);
    const auto x = random_values<T>(n, 1);
    auto y = random_values<T>(n, 2);
    if (n > 2) y[2] = 0;  // IEEE: infinity with the sign of x
    const auto dx = put(x), dy = put(y), dz = device().template alloc<T>(n);
    std::vector<T> product(x.size()), quotient(x.size());
    for (std::size_t i = 0; i < x.size(); ++i) product[i] = x[i] * y[i], quotient[i] = x[i] / y[i];
    device().vector().multiply(dx, dy, dz);
    EXPECT_EQ(device().download(dz), product);
    device().vector().divide(dx, dy, dz);
    EXPECT_EQ(device().download(dz), quotient);
    device().vector().multiply(dx, dy, dx);  // in place
    EXPECT_EQ(device().download(dx), product);
  }
}

TYPED_TEST(VectorOps, AxpbyWithFactorsAnywhere) {
  using T = TypeParam;
  for (const auto n : kLengths) {
    for (const auto alpha_at : kPlaces) {
      for (const auto beta_at : kPlaces) {
        const auto x = random_values<T>(n, 3), y = random_values<T>(n, 4);
        const T alpha = T(0.75), beta = T(-1.25);
        const auto dx = put(x), dy = put(y);
        device().vector().axpby(scalar(alpha, alpha_at), dx, scalar(beta, beta_at), dy);
        std::vector<double> expected(x.size());
        for (std::size_t i = 0; i < x.size(); ++i)
          expected[i] = double{alpha} * double{x[i]} + double{beta} * double{y[i]};
        EXPECT_TRUE(close(device().download(dy), expected, 2)) << n;
      }
    }
  }
}

TYPED_TEST(VectorOps, AxpbyWithBetaZeroIgnoresWhatWasThere) {
  using T = TypeParam;
  const auto x = random_values<T>(100, 5);
  const auto dx = put(x), dy = put(std::vector<T>(100, std::numeric_limits<T>::quiet_NaN()));
  device().vector().axpby(T(1), dx, T(0), dy);
  EXPECT_EQ(device().download(dy), x);
}

TEST_F(BadArguments, OfVectorOperations) {
  using namespace troupe::vectors;
  expect_refused(Multiply{DType::f64, 17, x, x, x});
  expect_refused(Multiply{DType::f64, -1, x, x, x});
  expect_refused(Multiply{DType::f64, 16, x, absent, x});
  expect_refused(Multiply{DType::i32, 4, x, x, x}, Errc::unsupported);
  expect_refused(Divide{DType::f64, 15, x, x, unaligned});
  expect_refused(Axpby{DType::f64, 16, short_scalar, one, x, x});
  expect_refused(Axpby{DType::f64, 16, one, short_scalar, x, x});
  expect_refused(Axpby{DType::c64, 16, one, one, x, x}, Errc::unsupported);
  // Lengths that differ, through the typed calls.
  EXPECT_EQ(device().vector().multiply(ref, ref.slice(0, 8), ref).wait().code(), Errc::invalid);
}

}  // namespace
}  // namespace troupe::test
