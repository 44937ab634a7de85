#pragma once

#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>

#include <troupe/dtype.hpp>

/// The narrow floating formats in terms of float: conversion to the nearest, ties to even.
/// f16: IEEE 754 binary16. bf16: the upper half of binary32. f8e4m3, f8e5m2: OCP 8-bit floating
/// point, revision 1.0 (e4m3 has no infinity); beyond their range they saturate, as CUDA's
/// conversions do.
namespace troupe {

template <class T>
struct NarrowFormat;
template <>
struct NarrowFormat<Half> {
  static constexpr int kExponentBits = 5, kMantissaBits = 10;
  static constexpr std::uint32_t kLargest = 0x7bff, kOverflow = 0x7c00, kNan = 0x7fff;
};
template <>
struct NarrowFormat<BFloat16> {
  static constexpr int kExponentBits = 8, kMantissaBits = 7;
  static constexpr std::uint32_t kLargest = 0x7f7f, kOverflow = 0x7f80, kNan = 0x7fff;
};
template <>
struct NarrowFormat<Float8E4M3> {
  static constexpr int kExponentBits = 4, kMantissaBits = 3;
  static constexpr std::uint32_t kLargest = 0x7e, kOverflow = 0x7e, kNan = 0x7f;
};
template <>
struct NarrowFormat<Float8E5M2> {
  static constexpr int kExponentBits = 5, kMantissaBits = 2;
  static constexpr std::uint32_t kLargest = 0x7b, kOverflow = 0x7b, kNan = 0x7f;
};

/// The value nearest to `value`.
template <class T>
T narrow(float value) noexcept {
  using Format = NarrowFormat<T>;
  constexpr int kM = Format::kMantissaBits;
  constexpr int kBias = (1 << (Format::kExponentBits - 1)) - 1;
  constexpr int kDropped = 23 - kM;
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t sign = bits >> 31 << (Format::kExponentBits + kM);
  const std::uint32_t magnitude = bits & 0x7fff'ffffu;
  std::uint32_t result = 0;
  if (magnitude > 0x7f80'0000u) {
    result = Format::kNan;
  } else if (magnitude < static_cast<std::uint32_t>(128 - kBias) << 23) {
    // Subnormal there: a multiple of 2^(1 - bias - M). Rounding up into the normal range gives the
    // right code.
    result = static_cast<std::uint32_t>(std::nearbyint(
        std::ldexp(static_cast<double>(std::bit_cast<float>(magnitude)), kM + kBias - 1)));
  } else {
    const std::uint32_t odd = magnitude >> kDropped & 1u;
    const std::uint32_t rounded = (magnitude + odd + (1u << (kDropped - 1)) - 1u) >> kDropped;
    result = rounded - (static_cast<std::uint32_t>(127 - kBias) << kM);
    if (result > Format::kLargest) result = Format::kOverflow;
  }
  return T{static_cast<decltype(T::bits)>(sign | result)};
}

/// The same value as a float; exact.
template <class T>
float widen(T value) noexcept {
  using Format = NarrowFormat<T>;
  constexpr int kM = Format::kMantissaBits;
  constexpr int kBias = (1 << (Format::kExponentBits - 1)) - 1;
  const std::uint32_t bits = value.bits;
  const std::uint32_t sign = bits >> (Format::kExponentBits + kM) << 31;
  const std::uint32_t magnitude = bits & ((1u << (Format::kExponentBits + kM)) - 1u);
  if (magnitude > Format::kLargest) {
    const bool infinite = magnitude == Format::kLargest + 1 && Format::kNan != Format::kLargest + 1;
    return std::bit_cast<float>(sign | (infinite ? 0x7f80'0000u : 0x7fc0'0000u));
  }
  if (magnitude >> kM == 0) {
    const float small = std::ldexp(static_cast<float>(magnitude), 1 - kBias - kM);
    return sign != 0 ? -small : small;
  }
  return std::bit_cast<float>(
      sign | ((magnitude << (23 - kM)) + (static_cast<std::uint32_t>(127 - kBias) << 23)));
}

}  // namespace troupe
