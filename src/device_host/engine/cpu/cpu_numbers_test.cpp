#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numeric>
#include <string>
#include <vector>

#include "common/core/narrow_float.hpp"
#include "cpu_engine_rig.hpp"
#include "lib/rng/philox.hpp"
#include "lib/rng/random_cpu.hpp"

namespace troupe::host {
namespace {

template <class T>
class CpuEngineRandom : public ::testing::Test {
 protected:
  Rig rig;
};
using Reals = ::testing::Types<float, double>;
TYPED_TEST_SUITE(CpuEngineRandom, Reals);

// Random numbers

/// 0 where cuRAND is not loaded: then there is nothing to compare with.
bool has_curand() {
  return cpu::random_library().find("Philox") == std::string::npos;
}

TYPED_TEST(CpuEngineRandom, OwnPhiloxGivesWhatCurandGives) {
  using T = TypeParam;
  if (!has_curand()) GTEST_SKIP() << "no cuRAND on this machine";
  cpu::Random curand;
  constexpr std::uint64_t kRound = 262144;  // numbers after which the streams come round again
  const std::uint64_t positions[] = {0,
                                     1,
                                     2,
                                     3,
                                     4,
                                     6,
                                     kRound - 2,
                                     kRound,
                                     kRound + 1,
                                     3 * kRound + 4,
                                     rng::kSubsequenceStride,
                                     7 * rng::kSubsequenceStride + 10,
                                     ((1ull << 24) - 1) * rng::kSubsequenceStride + 123456};
  [[maybe_unused]] std::uint32_t pair = 0;
  for (const std::uint64_t seed : {0ull, 1234ull, 0xfeedfacecafebeefull}) {
    for (const std::uint64_t position : positions) {
#ifdef TROUPE_BRIEF_TESTS  // each position with one of the seeds
      if (pair++ % 3 != 0) continue;
#endif
      for (const std::size_t n : {1u, 2u, 6u, 1001u, 300000u}) {
        std::vector<T> ours(n), theirs(n);
        cpu::Philox(seed, position).uniform(ours.data(), static_cast<std::int64_t>(n));
        curand.uniform({seed, position, static_cast<std::int64_t>(n)}, theirs.data());
        ASSERT_EQ(ours, theirs) << "seed " << seed << " position " << position << " n " << n;
        if (n % 2 != 0 || position % 2 != 0) continue;
        cpu::Philox(seed, position).normal(ours.data(), static_cast<std::int64_t>(n), T(0.5), T(2));
        curand.normal({seed, position, static_cast<std::int64_t>(n)}, T(0.5), T(2), theirs.data());
        expect_near(ours, theirs, 8);
        curand.log_normal({seed, position, static_cast<std::int64_t>(n)}, T(0.5), T(2),
                          theirs.data());
        for (T& value : ours) value = std::exp(value);
        for (std::size_t i = 0; i < n; ++i)  // a normal number's rounding error is amplified
          ASSERT_NEAR(ours[i] / theirs[i], 1, 64 * std::numeric_limits<T>::epsilon());
      }
    }
  }
}

TEST(CpuEngineRandomBits, OwnPhiloxGivesWhatCurandGives) {
  if (!has_curand()) GTEST_SKIP() << "no cuRAND on this machine";
  cpu::Random curand;
  for (const std::uint64_t position : {std::uint64_t{0}, std::uint64_t{3}, std::uint64_t{262143},
                                       7 * rng::kSubsequenceStride + 10}) {
    std::vector<std::uint32_t> ours(300001), theirs(ours.size());
    cpu::Philox(99, position).bits(ours.data(), std::ssize(ours));
    curand.bits({99, position, std::ssize(theirs)}, theirs.data());
    ASSERT_EQ(ours, theirs) << position;
  }
}

TYPED_TEST(CpuEngineRandom, RandomNumbersHaveTheirDistribution) {
  using T = TypeParam;
  const std::int64_t n = 100000;
  const auto x = this->rig.put(std::vector<T>(static_cast<std::size_t>(n)));
  ASSERT_TRUE(this->rig.execute(rng::Uniform{dtype_of<T>, n, 1, 2, 3, x}));
  const auto uniform = this->rig.template get<T>(x);
  EXPECT_GT(*std::min_element(uniform.begin(), uniform.end()), T(0));
  EXPECT_LE(*std::max_element(uniform.begin(), uniform.end()), T(1));
  EXPECT_NEAR(std::accumulate(uniform.begin(), uniform.end(), 0.0) / static_cast<double>(n), 0.5,
              0.005);
  std::vector<T> own(uniform.size());
  cpu::Philox(1, 2 * rng::kSubsequenceStride + 3).uniform(own.data(), n);
  EXPECT_EQ(uniform, own);

  ASSERT_TRUE(this->rig.execute(rng::Normal{dtype_of<T>, n, 1, 2, 4, 3.0, 2.0, x}));
  const auto normal = this->rig.template get<T>(x);
  const double mean = std::accumulate(normal.begin(), normal.end(), 0.0) / static_cast<double>(n);
  double variance = 0;
  for (const T value : normal) variance += (value - mean) * (value - mean) / static_cast<double>(n);
  EXPECT_NEAR(mean, 3, 0.03);
  EXPECT_NEAR(variance, 4, 0.1);
  EXPECT_EQ(this->rig.queue(rng::Normal{dtype_of<T>, 3, 1, 2, 4, 3.0, 2.0, x}).code(),
            Errc::invalid);
}

TEST(Philox, KnownAnswers) {
  // Counter 0, key 0 and the first output word, from the Random123 distribution's kat_vectors:
  // 6627e8d5.
  std::array<float, 1> first{};
  cpu::Philox(0, 0).uniform(first.data(), 1);
  EXPECT_EQ(first[0], static_cast<float>(0x6627e8d5u) * 0x1p-32f + 0x1p-33f);
}

// Narrow floats

template <class T>
class NarrowFloat : public ::testing::Test {};
using Narrows = ::testing::Types<Half, BFloat16, Float8E4M3, Float8E5M2>;
TYPED_TEST_SUITE(NarrowFloat, Narrows);

TYPED_TEST(NarrowFloat, RoundsToTheNearestValueTiesToEven) {
  using T = TypeParam;
  using Bits = decltype(T::bits);
  using Format = troupe::NarrowFormat<T>;
  // Every neighbouring pair of non-negative finite values: their midpoint goes to the even one,
  // what is next to the midpoint to the nearer one; every value comes back as itself, with either
  // sign.
  for (std::uint32_t code = 0; code <= Format::kLargest; ++code) {
    const float low = troupe::widen(T{static_cast<Bits>(code)});
    ASSERT_EQ(troupe::narrow<T>(low).bits, code);
    const auto negative = static_cast<Bits>(code | 1u << (8 * sizeof(T) - 1));
    ASSERT_EQ(troupe::narrow<T>(-low).bits, negative);
    ASSERT_EQ(troupe::widen(T{negative}), -low);
    if (code == Format::kLargest) break;
    const float high = troupe::widen(T{static_cast<Bits>(code + 1)});
    ASSERT_LT(low, high);
    const float middle = low + (high - low) / 2;
    ASSERT_EQ(troupe::narrow<T>(middle).bits, code % 2 == 0 ? code : code + 1)
        << low << " " << high;
    ASSERT_EQ(troupe::narrow<T>(std::nextafter(middle, low)).bits, code);
    ASSERT_EQ(troupe::narrow<T>(std::nextafter(middle, high)).bits, code + 1);
  }
  EXPECT_TRUE(
      std::isnan(troupe::widen(troupe::narrow<T>(std::numeric_limits<float>::quiet_NaN()))));
  EXPECT_EQ(troupe::narrow<T>(std::numeric_limits<float>::infinity()).bits, Format::kOverflow);
}

TEST(NarrowFloatValues, KnownOnes) {
  EXPECT_EQ(troupe::widen(Half{0x3c00}), 1.0f);
  EXPECT_EQ(troupe::widen(Half{0x7bff}), 65504.0f);
  EXPECT_EQ(troupe::widen(Half{0x7c00}), std::numeric_limits<float>::infinity());
  EXPECT_EQ(troupe::widen(Half{0x0001}), 0x1p-24f);
  EXPECT_EQ(troupe::widen(BFloat16{0x3f80}), 1.0f);
  EXPECT_EQ(troupe::widen(Float8E4M3{0x7e}), 448.0f);
  EXPECT_TRUE(std::isnan(troupe::widen(Float8E4M3{0x7f})));
  EXPECT_EQ(troupe::widen(Float8E5M2{0x7b}), 57344.0f);
  EXPECT_EQ(troupe::widen(Float8E5M2{0x7c}), std::numeric_limits<float>::infinity());
  EXPECT_EQ(troupe::narrow<Float8E4M3>(1e6f).bits, 0x7e);
}

}  // namespace
}  // namespace troupe::host
