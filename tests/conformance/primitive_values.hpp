#pragma once

#include <bit>
#include <cmath>
#include <concepts>
#include <cstdint>
#include <limits>
#include <random>
#include <type_traits>
#include <vector>

#include "conformance.hpp"

/// What the tests of primitives try these on: extreme numbers, equal ones, any bits.
namespace troupe::test {

#ifdef TROUPE_BRIEF_TESTS
using PrimitiveNumbers = ::testing::Types<std::int32_t, std::uint64_t, double>;
using PrimitiveIntegers = ::testing::Types<std::int32_t, std::uint64_t>;
inline constexpr std::int64_t kManyElements = 150'001;
#else
using PrimitiveNumbers =
    ::testing::Types<std::int32_t, std::uint32_t, std::int64_t, std::uint64_t, float, double>;
using PrimitiveIntegers =
    ::testing::Types<std::int32_t, std::uint32_t, std::int64_t, std::uint64_t>;
inline constexpr std::int64_t kManyElements =
    1'000'003;  ///< more than one block of every kernel takes
#endif

inline constexpr std::int64_t kPrimitiveLengths[] = {0, 1, 2, 1000, 65'537, kManyElements};

template <class T>
using BitsOf = std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>;

/// For comparisons in which a NaN equals itself and -0 is not +0.
template <class T>
std::vector<BitsOf<T>> bits_of(const std::vector<T>& values) {
  std::vector<BitsOf<T>> bits;
  for (const auto value : values) bits.push_back(std::bit_cast<BitsOf<T>>(value));
  return bits;
}

template <class T>
std::vector<T> extreme_values() {
  using Limits = std::numeric_limits<T>;
  std::vector<T> values{T(0), T(1), Limits::lowest(), Limits::max(), static_cast<T>(-1)};
  if constexpr (std::floating_point<T>) {
    constexpr T kInfinity = Limits::infinity(), kNan = Limits::quiet_NaN();
    for (const T value : {T(0), kInfinity, kNan, Limits::signaling_NaN(), Limits::denorm_min()}) {
      values.push_back(value);
      values.push_back(std::copysign(value, T(-1)));
    }
  }
  return values;
}

enum class Keys { few, any };

/// `few`: many equal ones, for floating types also both zeros. `any`: any bits at all.
template <class T>
std::vector<T> keys_of(Keys kind, std::int64_t n, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  const auto extremes = extreme_values<T>();
  std::vector<T> keys(static_cast<std::size_t>(n));
  for (auto& key : keys) {
    const auto bits = random();
    if (kind == Keys::few || bits % 8 == 0) {
      key = extremes[bits / 8 % extremes.size()];
    } else {
      key = std::bit_cast<T>(static_cast<BitsOf<T>>(bits));
    }
  }
  return keys;
}

}  // namespace troupe::test
