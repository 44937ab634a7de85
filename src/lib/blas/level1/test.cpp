// Level 1 in all types and with increments of either sign.
#include "dense_reference.hpp"

namespace troupe::test::reference {
namespace {

template <class T>
class BlasLevel1Ops : public Typed<T> {};
TYPED_TEST_SUITE(BlasLevel1Ops, Numbers);

struct Steps {
  std::int64_t x, y;
};
constexpr Steps kSteps[] = {{1, 1}, {2, 3}, {-1, 1}, {1, -2}, {-3, -1}};
constexpr std::int64_t kSizes[] = {0, 1, 5, 257};

/// Calls body(n, steps, data, x, y) with vectors of the reference.
template <class T, class Body>
void for_vectors(Body&& body) {
  for (const auto n : kSizes) {
    for (const auto steps : kSteps) {
      for (const auto data : kData) {
        SCOPED_TRACE(::testing::Message() << n << " elements, " << steps.x << " and " << steps.y
                                          << " apart, data " << static_cast<int>(data));
        body(n, steps, data, numbers<T>(n, 6, data), numbers<T>(n, 7, data));
      }
    }
  }
}

/// What is in memory is `values`, and nothing between them was written.
template <FieldElement T>
::testing::AssertionResult holds(const VectorRef<GpuRef<T>>& vector,
                                 const std::vector<Wide>& values, Data data, double terms = 2) {
  return agree(device().download(vector.buffer), spread(values, vector.increment), data, terms);
}

TYPED_TEST(BlasLevel1Ops, AxpyScalCopySwap) {
  using T = TypeParam;
  for_vectors<T>([](std::int64_t n, Steps steps, Data data, auto x, auto y) {
    for (const auto place : kPlaces) {
      const auto alpha = number<T>(2, -1);
      const auto dx = put_vector<T>(x, steps.x), dy = put_vector<T>(y, steps.y),
                 dz = put_vector<T>(numbers<T>(n, 8, data), -2);
      device().blas().axpy(scalar(alpha, place), dx, dy);
      auto sum = y;
      for (std::size_t i = 0; i < x.size(); ++i) sum[i] += widen(alpha) * x[i];
      EXPECT_TRUE(holds(dy, sum, data));
      EXPECT_TRUE(holds(dx, x, data));

      device().blas().copy(dx, dz);
      EXPECT_TRUE(holds(dz, x, data));
      device().blas().swap(dy, dz);
      EXPECT_TRUE(holds(dy, x, data));
      EXPECT_TRUE(holds(dz, sum, data));

      const auto du = put_vector<T>(x, std::abs(steps.x));
      device().blas().scal(scalar(alpha, place), du);
      auto scaled = x;
      for (auto& value : scaled) value *= widen(alpha);
      EXPECT_TRUE(holds(du, scaled, data));
      if constexpr (ComplexElement<T>) {
        device().blas().scal_real(scalar(RealOf<T>(-2), place), du);
        for (auto& value : scaled) value *= -2;
        EXPECT_TRUE(holds(du, scaled, data));
      }
    }
  });
}

TYPED_TEST(BlasLevel1Ops, Products) {
  using T = TypeParam;
  for_vectors<T>([](std::int64_t n, Steps steps, Data data, auto x, auto y) {
    const auto dx = put_vector<T>(x, steps.x), dy = put_vector<T>(y, steps.y);
    const auto result = device().template alloc<T>(2);
    Wide plain = 0, conjugated = 0;
    for (std::size_t i = 0; i < x.size(); ++i)
      plain += x[i] * y[i], conjugated += std::conj(x[i]) * y[i];
    device().blas().dot(dx, dy, result.slice(0, 1));
    if constexpr (ComplexElement<T>) {
      device().blas().dotc(dx, dy, result.slice(1, 1));
    } else {
      device().blas().dot(dx, dy, result.slice(1, 1));
    }
    EXPECT_TRUE(
        agree(device().download(result), {plain, conjugated}, data, static_cast<double>(n)));
  });
}

TYPED_TEST(BlasLevel1Ops, NormsAndExtremes) {
  using T = TypeParam;
  using R = RealOf<T>;
  for (const auto n : kSizes) {
    for (const std::int64_t step : {1, 3}) {
      for (const auto data : kData) {
        SCOPED_TRACE(::testing::Message() << n << " elements, " << step << " apart");
        const auto x = numbers<T>(n, 9, data);
        const auto dx = put_vector<T>(x, step);
        const auto sums = device().template alloc<R>(2);
        const auto places = device().template alloc<std::int64_t>(2);
        device().blas().asum(dx, sums.slice(0, 1));
        device().blas().nrm2(dx, sums.slice(1, 1));
        device().blas().iamax(dx, places.slice(0, 1));
        device().blas().iamin(dx, places.slice(1, 1));
        const auto size = [](const Wide& z) { return std::abs(z.real()) + std::abs(z.imag()); };
        double sum = 0, square = 0;
        std::int64_t largest = -1, smallest = -1;
        for (std::int64_t i = 0; i < n; ++i) {
          const auto& z = x[static_cast<std::size_t>(i)];
          sum += size(z), square += std::norm(z);
          if (largest < 0 || size(z) > size(x[static_cast<std::size_t>(largest)])) largest = i;
          if (smallest < 0 || size(z) < size(x[static_cast<std::size_t>(smallest)])) smallest = i;
        }
        const auto computed = device().download(sums);
        EXPECT_TRUE(agree(std::vector{computed[0]}, {sum}, data, static_cast<double>(n)));
        EXPECT_TRUE(agree(std::vector{computed[1]}, {std::sqrt(square)}, Data::fractions,
                          std::sqrt(static_cast<double>(n))));
        // The magnitudes of complex fractions are themselves rounded, but differ by more than that.
        EXPECT_EQ(device().download(places), (std::vector{largest, smallest}));
      }
    }
  }
}

TYPED_TEST(BlasLevel1Ops, Rotations) {
  using T = TypeParam;
  using R = RealOf<T>;
  for_vectors<T>([](std::int64_t, Steps steps, Data data, auto x, auto y) {
    for (const auto c_at : kPlaces) {
      for (const auto s_at : kPlaces) {
        const R c = data == Data::integers ? R(2) : R(0.6);
        const auto s = data == Data::integers ? number<T>(1, -2) : number<T>(0.5, 0.3);
        const auto dx = put_vector<T>(x, steps.x), dy = put_vector<T>(y, steps.y);
        auto rotated_x = x, rotated_y = y;
        const auto rotate = [&](Wide sine) {
          for (std::size_t i = 0; i < x.size(); ++i) {
            const auto u = rotated_x[i], v = rotated_y[i];
            rotated_x[i] = double{c} * u + sine * v;
            rotated_y[i] = double{c} * v - std::conj(sine) * u;
          }
        };
        device().blas().rot(dx, dy, scalar(c, c_at), scalar(s, s_at));
        rotate(widen(s));
        EXPECT_TRUE(holds(dx, rotated_x, data));
        EXPECT_TRUE(holds(dy, rotated_y, data));
        if constexpr (ComplexElement<T>) {
          device().blas().rot_real(dx, dy, scalar(c, c_at), scalar(R(-1), s_at));
          rotate(-1);
          EXPECT_TRUE(holds(dx, rotated_x, data, 8));
          EXPECT_TRUE(holds(dy, rotated_y, data, 8));
        }
      }
    }
  });
}

TYPED_TEST(BlasLevel1Ops, ARotationTakesAPairToTheAxis) {
  using T = TypeParam;
  using R = RealOf<T>;
  const auto drawn = numbers<T>(2, 11, Data::fractions);
  const typename decltype(drawn)::value_type zero(0);
  for (const auto& [first, second] : {std::pair(drawn[0], drawn[1]), std::pair(drawn[0], zero),
                                      std::pair(zero, drawn[1]), std::pair(zero, zero)}) {
    const auto a = put_numbers<T>({first}), b = put_numbers<T>({second}),
               s = device().template alloc<T>(1);
    const auto c = device().template alloc<R>(1);
    const auto x = put_numbers<T>({first}), y = put_numbers<T>({second});
    device().blas().rotg(a, b, c, s);
    device().blas().rot(x, y, c, s);  // the scalars are where rotg has put them
    EXPECT_TRUE(agree(device().download(y), {0}, Data::fractions, 1));
    EXPECT_TRUE(agree(device().download(x), {widen(device().download(a)[0])}, Data::fractions, 1));
    const double length = std::sqrt(std::norm(first) + std::norm(second));
    EXPECT_NEAR(std::abs(widen(device().download(x)[0])), length,
                16 * double{std::numeric_limits<R>::epsilon()});
  }
}

template <class T>
class BlasLevel1Reals : public Typed<T> {};
TYPED_TEST_SUITE(BlasLevel1Reals, Reals);

TYPED_TEST(BlasLevel1Reals, ModifiedRotations) {
  using T = TypeParam;
  // H of all four kinds: the flag says which elements are given.
  for (const double flag : {-1.0, 0.0, 1.0, -2.0}) {
    const std::vector<double> h = flag == -1  ? std::vector<double>{2, -1, 3, 1}
                                  : flag == 0 ? std::vector<double>{1, -1, 3, 1}
                                  : flag == 1 ? std::vector<double>{2, -1, 1, 3}
                                              : std::vector<double>{1, 0, 0, 1};
    const auto h11 = h[0], h21 = h[1], h12 = flag == 1 ? 1.0 : h[2], h22 = h[3];
    const auto used21 = flag == 1 ? -1.0 : h21;
    const auto param = put_numbers<T>({flag, h11, used21, h12, h22});
    for_vectors<T>([&](std::int64_t, Steps steps, Data data, auto x, auto y) {
      const auto dx = put_vector<T>(x, steps.x), dy = put_vector<T>(y, steps.y);
      device().blas().rotm(dx, dy, param);
      auto turned_x = x, turned_y = y;
      for (std::size_t i = 0; i < x.size(); ++i) {
        turned_x[i] = h11 * x[i] + h12 * y[i];
        turned_y[i] = used21 * x[i] + h22 * y[i];
      }
      EXPECT_TRUE(holds(dx, turned_x, data));
      EXPECT_TRUE(holds(dy, turned_y, data));
    });
  }
}

TYPED_TEST(BlasLevel1Reals, AModifiedRotationTakesAPairToTheAxis) {
  using T = TypeParam;
  const auto one = [](double value) { return put_numbers<T>({value}); };
  const auto d1 = one(0.7), d2 = one(1.1), x1 = one(0.5), y1 = one(-0.8),
             param = device().template alloc<T>(5);
  device().template fill<T>(param, T(0));
  const auto x = one(0.5), y = one(-0.8);
  device().blas().rotmg(d1, d2, x1, y1, param);
  device().blas().rotm(x, y, param);
  EXPECT_TRUE(agree(device().download(y), {0}, Data::fractions, 1));
  const auto first = double{device().download(d1)[0]}, length = double{device().download(x)[0]};
  EXPECT_NEAR(first * length * length, 0.7 * 0.5 * 0.5 + 1.1 * 0.8 * 0.8,
              32 * double{std::numeric_limits<T>::epsilon()});
}

template <class T>
class BlasLevel1Narrow : public Typed<T> {};
using NarrowNumbers = ::testing::Types<Half, BFloat16>;
TYPED_TEST_SUITE(BlasLevel1Narrow, NarrowNumbers);

TYPED_TEST(BlasLevel1Narrow, SumsAndProductsOfIntegersAreExact) {
  using T = TypeParam;
  for_vectors<float>([](std::int64_t, Steps steps, Data data, auto x, auto y) {
    if (data != Data::integers || x.size() > 16) return;  // sums stay below 2^8
    const VectorRef dx{put_any<T>(spread(x, steps.x)), std::ssize(x), steps.x},
        dy{put_any<T>(spread(y, steps.y)), std::ssize(y), steps.y},
        du{put_any<T>(spread(x, 2)), std::ssize(x), 2};
    const auto results = device().template alloc<T>(2);
    device().blas().dot(dx, dy, results.slice(0, 1));
    device().blas().nrm2(du, results.slice(1, 1));
    Wide dot = 0;
    double square = 0;
    for (std::size_t i = 0; i < x.size(); ++i) dot += x[i] * y[i], square += std::norm(x[i]);
    const auto computed = got(results);
    EXPECT_EQ(computed[0], dot);
    const double norm = std::sqrt(square);
    const double rounding = std::is_same_v<T, Half> ? 0x1p-11 : 0x1p-8;
    EXPECT_NEAR(computed[1].real(), norm, 1.01 * rounding * norm);
    device().blas().axpy(2.0f, dx, dy);
    device().blas().scal(-3.0f, du);
    auto sum = y, scaled = x;
    for (std::size_t i = 0; i < x.size(); ++i) sum[i] += 2.0 * x[i], scaled[i] *= -3;
    EXPECT_EQ(got(dy.buffer), spread(sum, steps.y));
    EXPECT_EQ(got(du.buffer), spread(scaled, 2));
  });
}

TEST_F(BadArguments, OfTheRestOfBlasLevelOne) {
  using namespace blas;
  const auto z = put(std::vector<double>(16, 0.0)).operand();
  expect_refused(Asum{DType::f64, 16, -1, x, z});
  expect_refused(Asum{DType::f64, 17, 1, x, z});
  expect_refused(Asum{DType::f64, 16, 1, x, absent});
  expect_refused(Asum{DType::f16, 16, 1, x, z}, Errc::unsupported);
  expect_refused(Iamax{DType::f64, static_cast<Iamax::Which>(2), 0, 16, 1, x, z});
  expect_refused(Iamax{DType::f64, {}, 0, 16, 1, x, absent});
  expect_refused(Iamax{DType::f64, {}, 0, 16, 0, x, z});
  expect_refused(Scal{DType::c128, 9, 1, one, x, {}, 0});
  expect_refused(Scal{DType::f64, 4, 1, one, x, static_cast<ScalarKind>(2), 0});
  expect_refused(Scal{DType::f64, 4, -1, one, x, {}, 0});
  expect_refused(Dot{DType::f64, 4, 1, 1, x, x, z, static_cast<Conjugate>(2), 0});
  expect_refused(Dot{DType::f64, 4, INT64_MIN, 1, x, x, z, {}, 0});
  expect_refused(Swap{DType::f64, 16, 1, 1, x, x});
  expect_refused(Swap{DType::f64, 16, 1, -2, x, z});
  expect_refused(Swap{DType::f64, 16, 0, 1, x, z});
  expect_refused(Rot{DType::f64, static_cast<ScalarKind>(2), 0, 4, 1, 1, one, one, x, z});
  expect_refused(Rot{DType::f64, {}, 0, 17, 1, 1, one, one, x, z});
  expect_refused(Rot{DType::f64, {}, 0, 4, 1, 1, short_scalar, one, x, z});
  expect_refused(Rot{DType::f64, {}, 0, 4, 1, 1, one, one, x, x});
  expect_refused(Rotg{DType::f64, x, absent, z, z});
  expect_refused(Rotg{DType::f64, x, z, x, z});
  expect_refused(Rotm{DType::c64, 4, 1, 1, x, z, x}, Errc::unsupported);
  expect_refused(Rotm{DType::f64, 4, 1, 1, x, z, short_scalar.device});
  expect_refused(Rotmg{DType::f64, x, z, z, z, z});
  EXPECT_EQ(device().blas().dot(ref, VectorRef{ref, 8, 2}, ref.slice(0, 1)).wait().code(),
            Errc::invalid);
}

}  // namespace
}  // namespace troupe::test::reference
