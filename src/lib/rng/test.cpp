#include <troupe/lib/rng.hpp>

#include <numeric>

#include "bad_arguments.hpp"

namespace troupe::test {
namespace {

template <class T>
class RngOps : public Typed<T> {};
TYPED_TEST_SUITE(RngOps, Reals);

constexpr std::int64_t kDraws = 1 << 20;

struct Moments {
  double mean = 0, deviation = 0, lowest = 0, highest = 0;
};
template <class T>
Moments moments_of(const std::vector<T>& values) {
  Moments m;
  double sum = 0, squares = 0;
  for (const T value : values) sum += double{value}, squares += double{value} * double{value};
  m.mean = sum / static_cast<double>(values.size());
  m.deviation = std::sqrt(squares / static_cast<double>(values.size()) - m.mean * m.mean);
  const auto [low, high] = std::minmax_element(values.begin(), values.end());
  m.lowest = double{*low};
  m.highest = double{*high};
  return m;
}

TYPED_TEST(RngOps, UniformHasItsMomentsAndRange) {
  using T = TypeParam;
  const auto x = device().template alloc<T>(kDraws);
  device().rng().uniform(x, {.seed = 31});
  const auto m = moments_of(device().download(x));
  EXPECT_NEAR(m.mean, 0.5, 0.002);  // seven standard errors
  EXPECT_NEAR(m.deviation, std::sqrt(1.0 / 12), 0.002);
  EXPECT_GT(m.lowest, 0.0);
  EXPECT_LE(m.highest, 1.0);
  EXPECT_LT(m.lowest, 1e-4);
  EXPECT_GT(m.highest, 1 - 1e-4);
}

TYPED_TEST(RngOps, NormalHasItsMoments) {
  using T = TypeParam;
  const auto x = device().template alloc<T>(kDraws);
  device().rng().normal(x, {.seed = 32}, T(3), T(2));
  const auto m = moments_of(device().download(x));
  EXPECT_NEAR(m.mean, 3, 0.014);
  EXPECT_NEAR(m.deviation, 2, 0.01);
  EXPECT_GT(m.highest, 3 + 2 * 4.0);
  EXPECT_LT(m.lowest, 3 - 2 * 4.0);
}

TYPED_TEST(RngOps, TheSameOptionsGiveTheSameNumbersAndOthersGiveOthers) {
  using T = TypeParam;
  const auto draw = [](const RandomOptions& options) {
    const auto x = device().template alloc<T>(1000);
    device().rng().uniform(x, options);
    return device().download(x);
  };
  const auto distinct = [](const std::vector<T>& a, const std::vector<T>& b) {
    std::size_t equal = 0;
    for (std::size_t i = 0; i < a.size(); ++i) equal += a[i] == b[i];
    return equal < 3;
  };
  const auto first = draw({.seed = 33, .subsequence = 4});
  EXPECT_EQ(draw({.seed = 33, .subsequence = 4}), first);
  EXPECT_TRUE(distinct(draw({.seed = 34, .subsequence = 4}), first));
  EXPECT_TRUE(distinct(draw({.seed = 33, .subsequence = 5}), first));
  EXPECT_TRUE(distinct(draw({.seed = 33, .subsequence = 4, .offset = 2048}), first));
}

TYPED_TEST(RngOps, LogNormalIsTheExponentialOfNormal) {
  using T = TypeParam;
  const auto x = device().template alloc<T>(kDraws), y = device().template alloc<T>(kDraws);
  device().rng().normal(x, {.seed = 36, .subsequence = 2, .offset = 6}, T(0.5), T(0.25));
  device().rng().log_normal(y, {.seed = 36, .subsequence = 2, .offset = 6}, T(0.5), T(0.25));
  const auto normal = device().download(x), log_normal = device().download(y);
  const double eps = static_cast<double>(std::numeric_limits<T>::epsilon());
  for (std::size_t i = 0; i < normal.size(); ++i) {
    const double expected = std::exp(static_cast<double>(normal[i]));
    ASSERT_NEAR(static_cast<double>(log_normal[i]), expected, 16 * eps * expected) << i;
  }
}

/// A number of 24 or 53 bits of them is uniform(), as cuRAND makes it.
TEST(RngBits, AreThoseThatUniformNumbersAreMadeOf) {
  const auto bits = device().alloc<std::uint32_t>(1000);
  const auto uniform = device().alloc<float>(1000);
  const RandomOptions options{.seed = 37, .subsequence = 3, .offset = 5};
  device().rng().bits(bits, options);
  device().rng().uniform(uniform, options);
  const auto words = device().download(bits);
  const auto numbers = device().download(uniform);
  for (std::size_t i = 0; i < words.size(); ++i)
    ASSERT_EQ(numbers[i], static_cast<float>(words[i]) * 0x1p-32f + 0x1p-33f) << i;

  const auto longs = device().alloc<std::uint64_t>(500);
  device().rng().bits(longs, options);
  const auto pairs = device().download(longs);
  for (std::size_t i = 0; i < pairs.size(); ++i)
    ASSERT_EQ(pairs[i], words[2 * i] | std::uint64_t{words[2 * i + 1]} << 32) << i;
}

TEST(RngBits, OfALongSequenceAreNotRepeated) {
  const auto bits = device().alloc<std::uint64_t>(kDraws);
  device().rng().bits(bits, {.seed = 38});
  auto words = device().download(bits);
  std::sort(words.begin(), words.end());
  EXPECT_EQ(std::adjacent_find(words.begin(), words.end()), words.end());
}

TEST(RngOffsets, AnOffsetSkipsThatManySingles) {
  const auto whole = device().alloc<float>(1000), part = device().alloc<float>(900);
  device().rng().uniform(whole, {.seed = 35});
  device().rng().uniform(part, {.seed = 35, .offset = 100});
  const auto all = device().download(whole);
  EXPECT_EQ(device().download(part), std::vector<float>(all.begin() + 100, all.end()));
}

TEST_F(BadArguments, OfRandomNumbers) {
  using namespace rng;
  expect_refused(Uniform{DType::f64, 17, 0, 0, 0, x});
  expect_refused(Uniform{DType::f64, 16, 0, std::uint64_t{1} << 24, 0, x});
  expect_refused(Uniform{DType::f64, 16, 0, 0, kSubsequenceStride, x});
  expect_refused(Uniform{DType::u64, 16, 0, 0, 0, x}, Errc::unsupported);
  expect_refused(Bits{DType::u64, 17, 0, 0, 0, x});
  expect_refused(Bits{DType::f32, 16, 0, 0, 0, x}, Errc::unsupported);
  expect_refused(LogNormal{DType::f64, 15, 0, 0, 0, 0, 1, x});
  expect_refused(LogNormal{DType::f64, 16, 0, 0, 3, 0, 1, x});
  expect_refused(LogNormal{DType::f64, 16, 0, 0, 0, 0, -1, x});
  expect_refused(Normal{DType::f64, 15, 0, 0, 0, 0, 1, x});
  expect_refused(Normal{DType::f64, 16, 0, 0, 3, 0, 1, x});
}

}  // namespace
}  // namespace troupe::test
