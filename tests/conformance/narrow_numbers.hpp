#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numeric>
#include <random>
#include <type_traits>
#include <vector>

#include "conformance.hpp"

/// f16 and bf16 by their bits, decoded and rounded in a way of their own.
namespace troupe::test {

using NarrowBits = std::vector<std::uint16_t>;

template <class T>
inline constexpr int kFractionBits = std::is_same_v<T, Half> ? 10 : 7;
template <class T>
inline constexpr int kInfinityBits = std::is_same_v<T, Half> ? 0x7c00 : 0x7f80;

/// The number without its sign; that of infinity is what comes after the largest one.
template <class T>
double magnitude_of(int bits) {
  constexpr int kHidden = 1 << kFractionBits<T>, kLeast = std::is_same_v<T, Half> ? -24 : -133;
  const int exponent = bits / kHidden, fraction = bits % kHidden;
  return exponent == 0 ? std::ldexp(fraction, kLeast)
                       : std::ldexp(kHidden + fraction, kLeast + exponent - 1);
}
template <class T>
double number_of(std::uint16_t bits) {
  const int magnitude = bits & 0x7fff;
  double number = magnitude_of<T>(magnitude);
  if (magnitude == kInfinityBits<T>) number = std::numeric_limits<double>::infinity();
  if (magnitude > kInfinityBits<T>) number = std::numeric_limits<double>::quiet_NaN();
  return bits >= 0x8000 ? -number : number;
}

/// The nearest_bits number, of two the one with even bits.
template <class T>
std::uint16_t nearest_bits(double number) {
  if (std::isnan(number)) return 0x7fff;
  const double magnitude = std::fabs(number);
  int low = 0, high = kInfinityBits<T>;  // low <= magnitude < high
  while (high - low > 1) {
    const int middle = (low + high) / 2;
    (magnitude_of<T>(middle) <= magnitude ? low : high) = middle;
  }
  const double below = magnitude - magnitude_of<T>(low), above = magnitude_of<T>(high) - magnitude;
  const int bits = below < above || (below == above && low % 2 == 0) ? low : high;
  return static_cast<std::uint16_t>(bits | (std::signbit(number) ? 0x8000 : 0));
}

template <class T>
GpuRef<T> put_bits(const NarrowBits& bits) {
  std::vector<T> elements;
  for (const auto one : bits) elements.push_back({one});
  return put(elements);
}
template <class T>
NarrowBits bits_in(const GpuRef<T>& buffer) {
  NarrowBits bits;
  for (const auto element : device().download(buffer)) bits.push_back(element.bits);
  return bits;
}
/// With one NaN for all of them.
template <class T>
NarrowBits without_payload(NarrowBits bits) {
  for (auto& one : bits) {
    if ((one & 0x7fff) > kInfinityBits<T>) one = 0x7fff;
  }
  return bits;
}

/// Each there is, in any order, some of them twice.
inline NarrowBits every_number() {
  NarrowBits bits(70'001);
  std::iota(bits.begin(), bits.end(), std::uint16_t{0});
  std::shuffle(bits.begin(), bits.end(), std::mt19937_64(131));
  return bits;
}
/// Many equal ones: zeros, infinities, NaNs and small integers.
template <class T>
NarrowBits few_numbers(std::int64_t n) {
  const std::array<std::uint16_t, 8> few{0,
                                         0x8000,
                                         nearest_bits<T>(1),
                                         nearest_bits<T>(-1),
                                         nearest_bits<T>(3),
                                         static_cast<std::uint16_t>(kInfinityBits<T>),
                                         static_cast<std::uint16_t>(kInfinityBits<T> + 1),
                                         0xffff};
  std::mt19937_64 random(132);
  NarrowBits bits(static_cast<std::size_t>(n));
  for (auto& one : bits) one = few[random() / 16 % few.size()];
  return bits;
}

}  // namespace troupe::test
