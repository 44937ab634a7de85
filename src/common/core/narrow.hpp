#pragma once

#include <bit>
#include <cstdint>
#include <type_traits>

#include <troupe/dtype.hpp>

/// f16 and bf16 on the host: to f32, which is exact, and back, rounded to the nearest, ties to
/// even.
namespace troupe {

inline float to_float(float x) noexcept {
  return x;
}
inline float to_float(BFloat16 x) noexcept {
  return std::bit_cast<float>(static_cast<std::uint32_t>(x.bits) << 16);
}
inline float to_float(Half x) noexcept {
  const auto sign = static_cast<std::uint32_t>(x.bits & 0x8000u) << 16;
  const std::uint32_t magnitude = x.bits & 0x7fffu;
  // The exponent of f32 has 112 more than that of f16; infinity and NaN have the largest of both.
  if (magnitude >= 0x7c00u)
    return std::bit_cast<float>(sign | 0x7f80'0000u | (magnitude & 0x3ffu) << 13);
  if (magnitude >= 0x400u) return std::bit_cast<float>(sign | ((magnitude << 13) + (112u << 23)));
  const float subnormal = static_cast<float>(magnitude) * 0x1p-24f;
  return sign != 0 ? -subnormal : subnormal;
}

/// T is float, Half or BFloat16.
template <class T>
T from_float(float x) noexcept;

template <>
inline float from_float<float>(float x) noexcept {
  return x;
}
template <>
inline BFloat16 from_float<BFloat16>(float x) noexcept {
  const auto bits = std::bit_cast<std::uint32_t>(x);
  if ((bits & 0x7fff'ffffu) > 0x7f80'0000u)  // NaN stays NaN
    return {static_cast<std::uint16_t>(bits >> 16 | 0x40u)};
  return {static_cast<std::uint16_t>((bits + 0x7fffu + (bits >> 16 & 1u)) >> 16)};
}
template <>
inline Half from_float<Half>(float x) noexcept {
  const auto bits = std::bit_cast<std::uint32_t>(x);
  const auto sign = static_cast<std::uint32_t>(bits >> 16 & 0x8000u);
  const std::uint32_t magnitude = bits & 0x7fff'ffffu;
  std::uint32_t half = 0;
  if (magnitude > 0x7f80'0000u) {
    half = 0x7e00u;
  } else if (magnitude >= 0x4780'0000u) {  // 65536 and more
    half = 0x7c00u;
  } else if (magnitude >= 0x3880'0000u) {  // what is normal in f16; a carry into infinity is right
    half = (magnitude - (112u << 23) + 0xfffu + (magnitude >> 13 & 1u)) >> 13;
  } else {
    // Below 2^-14 the spacing is 2^-24, that of f32 from 0.5 on: the addition rounds.
    half = std::bit_cast<std::uint32_t>(std::bit_cast<float>(magnitude) + 0.5f) - 0x3f00'0000u;
  }
  return {static_cast<std::uint16_t>(sign | half)};
}

}  // namespace troupe
