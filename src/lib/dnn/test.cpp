#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>

#include "common/core/narrow.hpp"

namespace troupe::test {
namespace {

TEST(DnnNarrow, EveryNumberComesBack) {
  for (std::uint32_t bits = 0; bits <= 0xffff; ++bits) {
    const Half half{static_cast<std::uint16_t>(bits)};
    const BFloat16 brain{static_cast<std::uint16_t>(bits)};
    if (std::isnan(to_float(half))) {
      EXPECT_TRUE(std::isnan(to_float(from_float<Half>(to_float(half))))) << bits;
    } else {
      EXPECT_EQ(from_float<Half>(to_float(half)).bits, bits);
    }
    if (std::isnan(to_float(brain))) {
      EXPECT_TRUE(std::isnan(to_float(from_float<BFloat16>(to_float(brain))))) << bits;
    } else {
      EXPECT_EQ(from_float<BFloat16>(to_float(brain)).bits, bits);
    }
  }
}

TEST(DnnNarrow, RoundsToTheNearestAndTiesToEven) {
  EXPECT_EQ(to_float(Half{0x0001}), 0x1p-24f);
  EXPECT_EQ(to_float(Half{0x7bff}), 65504);
  EXPECT_EQ(to_float(BFloat16{0x3fc0}), 1.5f);
  // Between neighbours of either sign, of normal and of subnormal numbers: the middle goes to the
  // even one, what is beside it to the nearer one.
  for (std::uint32_t bits = 0; bits < 0x7bff; ++bits) {
    const float low = to_float(Half{static_cast<std::uint16_t>(bits)});
    const float high = to_float(Half{static_cast<std::uint16_t>(bits + 1)});
    const float middle = (low + high) / 2;  // f32 has it
    EXPECT_EQ(from_float<Half>(middle).bits, bits + (bits & 1));
    EXPECT_EQ(from_float<Half>(-middle).bits, 0x8000 | (bits + (bits & 1)));
    EXPECT_EQ(from_float<Half>(std::nextafter(middle, 0.0f)).bits, bits);
    EXPECT_EQ(from_float<Half>(std::nextafter(middle, 1e9f)).bits, bits + 1);
  }
  EXPECT_EQ(from_float<Half>(65519).bits, 0x7bff);
  EXPECT_EQ(from_float<Half>(65520).bits, 0x7c00);
  EXPECT_EQ(from_float<Half>(1e30f).bits, 0x7c00);
  for (std::uint32_t bits = 0; bits < 0x7f7f; ++bits) {
    const auto middle = std::bit_cast<float>(bits << 16 | 0x8000u);
    EXPECT_EQ(from_float<BFloat16>(middle).bits, bits + (bits & 1));
    EXPECT_EQ(from_float<BFloat16>(std::nextafter(middle, 0.0f)).bits, bits);
    EXPECT_EQ(
        from_float<BFloat16>(std::nextafter(middle, std::numeric_limits<float>::infinity())).bits,
        bits + 1);
  }
}

}  // namespace
}  // namespace troupe::test
