#include <troupe/lib/rng.hpp>

#include <functional>
#include <numbers>
#include <numeric>

#include "bad_arguments.hpp"
#include "lib/rng/laws/laws.hpp"

namespace troupe::test {
namespace {

using host::rng_numbers::Draw;

template <class T>
class RngLaws : public Typed<T> {};
TYPED_TEST_SUITE(RngLaws, Reals);

constexpr std::int64_t kLawDraws = 1 << 17;
constexpr RandomOptions kOptions{.seed = 0x1234567890abcdef, .subsequence = 5, .offset = 3};

/// The law's numbers as the host computes them, each from its own place.
template <class Law>
std::vector<double> expected_of(const Law& law, std::int64_t n) {
  std::vector<double> values;
  const auto first = kOptions.subsequence * rng::kSubsequenceStride + kOptions.offset;
  for (std::int64_t i = 0; i < n; ++i) {
    Draw draw(kOptions.seed, first + static_cast<std::uint64_t>(i));
    values.push_back(static_cast<double>(law(draw)));
  }
  return values;
}

/// Kolmogorov and Smirnov: sqrt(n) D is below 2.225 with a probability of 1 - 1e-4.
template <class T>
void expect_distributed(std::vector<T> values, const std::function<double(double)>& cumulative) {
  std::sort(values.begin(), values.end());
  const auto n = static_cast<double>(values.size());
  double distance = 0;
  for (std::size_t i = 0; i < values.size(); ++i) {
    const double at = cumulative(static_cast<double>(values[i])), rank = static_cast<double>(i);
    distance = std::max({distance, at - rank / n, (rank + 1) / n - at});
  }
  EXPECT_LT(std::sqrt(n) * distance, 2.225);
}

/// Chi squared of counts against probabilities, by the approximation of Wilson and Hilferty: below
/// 3.72 with a probability of 1 - 1e-4. Values that are expected less than 10 times are one class.
void expect_counts(const std::vector<std::uint32_t>& values,
                   const std::function<double(std::uint32_t)>& probability) {
  const auto highest = *std::max_element(values.begin(), values.end());
  std::vector<double> counts(highest + 1);
  for (const auto value : values) ++counts[value];
  const auto n = static_cast<double>(values.size());
  double statistic = 0, rest = 0, expected_rest = n;
  int classes = 0;
  for (std::uint32_t k = 0; k <= highest; ++k) {
    const double expected = n * probability(k);
    if (expected < 10) {
      rest += counts[k];
      continue;
    }
    statistic += (counts[k] - expected) * (counts[k] - expected) / expected;
    expected_rest -= expected;
    ++classes;
  }
  if (expected_rest >= 10) {
    statistic += (rest - expected_rest) * (rest - expected_rest) / expected_rest;
    ++classes;
  } else {
    EXPECT_LT(rest, 60);
  }
  const double freedom = std::max(1, classes - 1), spread = 2 / (9 * freedom);
  EXPECT_LT((std::cbrt(statistic / freedom) - (1 - spread)) / std::sqrt(spread), 3.72);
}

/// Rounding of functions that amplify little, or for f32 that of the result.
template <class T>
constexpr double kOfRounding = std::is_same_v<T, float> ? 0x1p-23 : 0x1p-43;

template <class T, class Law, class Call>
std::vector<T> drawn(const Law& law, const Call& call, double tolerance = kOfRounding<T>) {
  const auto x = device().alloc<T>(kLawDraws);
  call(x);
  const auto values = device().download(x);
  const auto expected = expected_of(law, kLawDraws);
  for (std::size_t i = 0; i < values.size(); ++i) {
    const auto value = static_cast<double>(values[i]);
    if (value == static_cast<double>(static_cast<T>(expected[i]))) continue;
    EXPECT_NEAR(value, expected[i], tolerance * (1 + std::abs(expected[i]))) << i;
    if (std::abs(value - expected[i]) > tolerance * (1 + std::abs(expected[i]))) break;
  }
  return values;
}

/// The regularised incomplete gamma function P(shape, x), by its series.
double gamma_cumulative(double shape, double x) {
  double term = 1, sum = 1;
  for (int i = 1; term > 1e-17 * sum; ++i) sum += term *= x / (shape + i);
  return x <= 0 ? 0 : sum * std::exp(shape * std::log(x) - x - std::lgamma(shape + 1));
}

TYPED_TEST(RngLaws, Exponential) {
  const auto values = drawn<TypeParam>(host::rng_numbers::ExponentialLaw{2.5}, [](const auto& x) {
    device().rng().exponential(x, kOptions, 2.5);
  });
  expect_distributed(values, [](double x) { return -std::expm1(-2.5 * x); });
}

TYPED_TEST(RngLaws, Cauchy) {
  const auto values = drawn<TypeParam>(host::rng_numbers::CauchyLaw{1, 3}, [](const auto& x) {
    device().rng().cauchy(x, kOptions, 1, 3);
  });
  expect_distributed(values,
                     [](double x) { return std::atan((x - 1) / 3) / std::numbers::pi + 0.5; });
}

TYPED_TEST(RngLaws, Gamma) {
  for (const double shape : {0.3, 1.0, 2.5, 40.0}) {
    SCOPED_TRACE(shape);
    const auto values = drawn<TypeParam>(host::rng_numbers::GammaLaw{shape, 2}, [&](const auto& x) {
      device().rng().gamma(x, kOptions, shape, 2);
    });
    expect_distributed(values, [&](double x) { return gamma_cumulative(shape, x / 2); });
  }
}

TYPED_TEST(RngLaws, Beta) {
  const auto with = [](double a, double b, double tolerance = kOfRounding<TypeParam>) {
    return drawn<TypeParam>(
        host::rng_numbers::BetaLaw{a, b},
        [&](const auto& x) { device().rng().beta(x, kOptions, a, b); }, tolerance);
  };
  expect_distributed(with(2, 3), [](double x) { return x * x * (6 - 8 * x + 3 * x * x); });
  expect_distributed(with(0.5, 0.5), [](double x) {
    return 2 / std::numbers::pi * std::asin(std::sqrt(std::min(x, 1.0)));
  });
  expect_distributed(with(0.25, 1), [](double x) { return std::pow(x, 0.25); });
  // Both gamma numbers lie below the smallest f64; their logarithms are of the order of 10^4.
  for (const auto value : with(1e-3, 1e-3, std::max(kOfRounding<TypeParam>, 0x1p-35)))
    ASSERT_TRUE(value >= 0 && value <= 1);
}

TYPED_TEST(RngLaws, BetaOfExtremeShapes) {
  using T = TypeParam;
  const auto x = device().template alloc<T>(kLawDraws);
  const auto mean_of = [&](double a, double b) {
    device().rng().beta(x, kOptions, a, b);
    double sum = 0;
    for (const T value : device().download(x)) {
      if (!(value >= 0 && value <= 1)) return std::numeric_limits<double>::quiet_NaN();
      sum += static_cast<double>(value);
    }
    return sum / static_cast<double>(kLawDraws);
  };
  // With such shapes all numbers are close to 0 or 1. The tolerance is seven standard errors.
  for (const double tiny : {1e-10, 1e-100, 1e-300, 1e-310, 5e-324}) {
    EXPECT_NEAR(mean_of(tiny, tiny), 0.5, 0.01) << tiny;
    EXPECT_NEAR(mean_of(tiny, 3 * tiny), 0.25, 0.01) << tiny;
  }
  EXPECT_EQ(mean_of(1e-310, 1), 0);
  EXPECT_EQ(mean_of(1, 1e-310), 1);
  // And all next to the mean.
  for (const double huge : {1e30, 1e300, 1e308}) {
    EXPECT_NEAR(mean_of(huge, huge), 0.5, 1e-6) << huge;
    EXPECT_NEAR(mean_of(huge, 1.5 * huge), 0.4, 1e-6) << huge;
  }
  EXPECT_EQ(mean_of(1e308, 0.5), 1);
  const double least = mean_of(0.5, 1e308);
  EXPECT_LE(least, 1e-300);
  if (std::is_same_v<T, double>) {
    EXPECT_GT(least, 0);
  }
}

TYPED_TEST(RngLaws, GammaOfExtremeShapesAndScales) {
  using T = TypeParam;
  const auto x = device().template alloc<T>(kLawDraws);
  for (const double shape : {1e-310, 1e-3, 1e308}) {
    device().rng().gamma(x, kOptions, shape);
    for (const T value : device().download(x)) ASSERT_TRUE(value >= 0) << shape << ' ' << value;
  }
  if (!std::is_same_v<T, double>) return;
  // Some are below the smallest f64 before they are scaled.
  device().rng().gamma(x, kOptions, 0.012, 1e300);
  for (const T value : device().download(x)) ASSERT_GT(value, 0);
}

TEST(RngCounts, Poisson) {
  for (const double mean : {0.2, 4.0, 9.99, 10.0, 55.5, 3000.0}) {
    SCOPED_TRACE(mean);
    const auto values =
        drawn<std::uint32_t>(host::rng_numbers::PoissonLaw{mean},
                             [&](const auto& x) { device().rng().poisson(x, kOptions, mean); });
    expect_counts(values, [&](std::uint32_t k) {
      return std::exp(k * std::log(mean) - mean - std::lgamma(k + 1.0));
    });
  }
}

TEST(RngCounts, Binomial) {
  struct Case {
    std::uint32_t trials;
    double p;
  };
  for (const auto [trials, p] : {Case{1, 0.5}, Case{20, 0.25}, Case{30, 0.9}, Case{40, 0.5},
                                 Case{1000, 0.3}, Case{1'000'000, 2e-6}, Case{500, 0.99}}) {
    SCOPED_TRACE(::testing::Message() << trials << " trials of " << p);
    const auto values = drawn<std::uint32_t>(
        host::rng_numbers::BinomialLaw{static_cast<double>(trials), p},
        [&](const auto& x) { device().rng().binomial(x, kOptions, trials, p); });
    const double n = trials;
    expect_counts(values, [&](std::uint32_t k) {
      return k > n ? 0
                   : std::exp(std::lgamma(n + 1) - std::lgamma(k + 1.0) - std::lgamma(n - k + 1) +
                              k * std::log(p) + (n - k) * std::log1p(-p));
    });
  }
  const auto x = device().alloc<std::uint32_t>(100);
  device().rng().binomial(x, kOptions, 17, 1);
  EXPECT_EQ(device().download(x), std::vector<std::uint32_t>(100, 17));
  device().rng().binomial(x, kOptions, 17, 0);
  EXPECT_EQ(device().download(x), std::vector<std::uint32_t>(100, 0));
}

TEST(RngCounts, Discrete) {
  const std::vector<double> weights{3, 0, 0.5, 7, 2.25, 1e-9, 4};
  const auto table = rng::alias_table(weights).take();
  const auto threshold = put(table.threshold);
  const auto alias = put(table.alias);
  const auto values = drawn<std::uint32_t>(
      host::rng_numbers::DiscreteLaw{table.threshold.data(), table.alias.data(), 7},
      [&](const auto& x) { device().rng().discrete(x, kOptions, threshold, alias); });
  const double sum = std::accumulate(weights.begin(), weights.end(), 0.0);
  expect_counts(values, [&](std::uint32_t k) { return weights[k] / sum; });
  EXPECT_EQ(std::count(values.begin(), values.end(), 1u), 0);

  for (const auto& wrong :
       {std::vector<double>{}, {0, 0}, {1, -1}, {1, std::numeric_limits<double>::infinity()}})
    EXPECT_EQ(rng::alias_table(wrong).code(), Errc::invalid);
  EXPECT_EQ(device()
                .rng()
                .discrete(device().alloc<std::uint32_t>(1), {}, threshold, alias.slice(0, 6))
                .wait()
                .code(),
            Errc::invalid);
}

TEST(RngCounts, AnOffsetSkipsThatManyNumbersOfALaw) {
  const auto whole = device().alloc<std::uint32_t>(1000), part = device().alloc<std::uint32_t>(900);
  device().rng().poisson(whole, {.seed = 35}, 20);
  device().rng().poisson(part, {.seed = 35, .offset = 100}, 20);
  const auto all = device().download(whole);
  EXPECT_EQ(device().download(part), std::vector<std::uint32_t>(all.begin() + 100, all.end()));
}

TEST_F(BadArguments, OfLawsOfRandomNumbers) {
  using namespace rng;
  const double nan = std::numeric_limits<double>::quiet_NaN();
  for (const double wrong : {0.0, -1.0, nan, std::numeric_limits<double>::infinity()}) {
    expect_refused(Exponential{DType::f64, 16, 0, 0, 0, wrong, 0, x});
    expect_refused(Cauchy{DType::f64, 16, 0, 0, 0, 0, wrong, x});
    expect_refused(Gamma{DType::f64, 16, 0, 0, 0, wrong, 1, x});
    expect_refused(Gamma{DType::f64, 16, 0, 0, 0, 1, wrong, x});
    expect_refused(Beta{DType::f64, 16, 0, 0, 0, wrong, 1, x});
    expect_refused(Beta{DType::f64, 16, 0, 0, 0, 1, wrong, x});
    expect_refused(Poisson{DType::u32, 16, 0, 0, 0, wrong, 0, x});
  }
  expect_refused(Cauchy{DType::f64, 16, 0, 0, 0, nan, 1, x});
  expect_refused(Poisson{DType::u32, 16, 0, 0, 0, 0x1p31, 0, x});
  expect_refused(Poisson{DType::f64, 16, 0, 0, 0, 1, 0, x}, Errc::unsupported);
  expect_refused(Binomial{DType::u32, 16, 0, 0, 0, -1, 0.5, x});
  expect_refused(Binomial{DType::u32, 16, 0, 0, 0, 2.5, 0.5, x});
  expect_refused(Binomial{DType::u32, 16, 0, 0, 0, 2, 1.5, x});
  expect_refused(Binomial{DType::u32, 16, 0, 0, 0, 2, nan, x});
  expect_refused(Exponential{DType::f64, 17, 0, 0, 0, 1, 0, x});
  expect_refused(Exponential{DType::f64, 16, 0, 0, kSubsequenceStride, 1, 0, x});
  expect_refused(Discrete{DType::u32, 16, 0, 0, 0, 0, x, i, i});
  expect_refused(Discrete{DType::u32, 16, 0, 0, 0, 17, x, i, i});
}

}  // namespace
}  // namespace troupe::test
