#pragma once

#include <complex>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <type_traits>

namespace troupe {

/// The element type of a buffer. On the wire it is a field, never a variant of an operation.
enum class DType : std::uint8_t {
  f16,
  bf16,
  f32,
  f64,
  f8e4m3,
  f8e5m2,
  i8,
  u8,
  i32,
  u32,
  i64,
  u64,
  c64,
  c128,
  i16,
  u16,
  f4e2m1x2,  ///< two numbers in one byte, the first in its lower half
  i4x2,      ///< the same
  ue4m3,     ///< the scale of a block of numbers
  ue8m0      ///< the same: a power of two
};
inline constexpr std::size_t kDTypeCount = 20;

/// Host-side storage for the narrow formats; arithmetic on them happens on the device only.
struct Half {
  std::uint16_t bits;
};
/// bfloat16: 8 bits of exponent, 7 of mantissa.
struct BFloat16 {
  std::uint16_t bits;
};
/// The 8-bit float with 4 bits of exponent, 3 of mantissa, without infinities.
struct Float8E4M3 {
  std::uint8_t bits;
};
/// The 8-bit float with 5 bits of exponent, 2 of mantissa.
struct Float8E5M2 {
  std::uint8_t bits;
};
/// Two 4-bit floats with 2 bits of exponent, 1 of mantissa.
struct Float4E2M1Pair {
  std::uint8_t bits;
};
/// Two 4-bit integers.
struct Int4Pair {
  std::uint8_t bits;
};
/// An unsigned scale with 4 bits of exponent, 3 of mantissa.
struct FactorUE4M3 {
  std::uint8_t bits;
};
/// An unsigned scale that is a power of two: 8 bits of exponent.
struct FactorUE8M0 {
  std::uint8_t bits;
};

/// Bytes per element; a pair is one element.
constexpr std::size_t size_of(DType dtype) noexcept {
  constexpr std::size_t kSizes[kDTypeCount] = {2, 2, 4, 8,  1, 1, 1, 1, 4, 4,
                                               8, 8, 8, 16, 2, 2, 1, 1, 1, 1};
  return kSizes[static_cast<std::size_t>(dtype)];
}

/// "f64", "bf16", "c128", ...
constexpr std::string_view to_string(DType dtype) noexcept {
  constexpr std::string_view kNames[kDTypeCount] = {
      "f16", "bf16", "f32", "f64",  "f8e4m3", "f8e5m2", "i8",       "u8",   "i32",   "u32",
      "i64", "u64",  "c64", "c128", "i16",    "u16",    "f4e2m1x2", "i4x2", "ue4m3", "ue8m0"};
  return kNames[static_cast<std::size_t>(dtype)];
}

/// The type of absolute values: f32 of c64, f64 of c128, else the type itself.
constexpr DType real_type(DType dtype) noexcept {
  return dtype == DType::c64 ? DType::f32 : dtype == DType::c128 ? DType::f64 : dtype;
}

namespace detail {
template <class T>
struct DTypeOf;
template <>
struct DTypeOf<Half> {
  static constexpr DType value = DType::f16;
};
template <>
struct DTypeOf<BFloat16> {
  static constexpr DType value = DType::bf16;
};
template <>
struct DTypeOf<float> {
  static constexpr DType value = DType::f32;
};
template <>
struct DTypeOf<double> {
  static constexpr DType value = DType::f64;
};
template <>
struct DTypeOf<Float8E4M3> {
  static constexpr DType value = DType::f8e4m3;
};
template <>
struct DTypeOf<Float8E5M2> {
  static constexpr DType value = DType::f8e5m2;
};
template <>
struct DTypeOf<std::int8_t> {
  static constexpr DType value = DType::i8;
};
template <>
struct DTypeOf<std::uint8_t> {
  static constexpr DType value = DType::u8;
};
template <>
struct DTypeOf<std::int32_t> {
  static constexpr DType value = DType::i32;
};
template <>
struct DTypeOf<std::uint32_t> {
  static constexpr DType value = DType::u32;
};
template <>
struct DTypeOf<std::int64_t> {
  static constexpr DType value = DType::i64;
};
template <>
struct DTypeOf<std::uint64_t> {
  static constexpr DType value = DType::u64;
};
template <>
struct DTypeOf<std::complex<float>> {
  static constexpr DType value = DType::c64;
};
template <>
struct DTypeOf<std::complex<double>> {
  static constexpr DType value = DType::c128;
};
template <>
struct DTypeOf<std::int16_t> {
  static constexpr DType value = DType::i16;
};
template <>
struct DTypeOf<std::uint16_t> {
  static constexpr DType value = DType::u16;
};
template <>
struct DTypeOf<Float4E2M1Pair> {
  static constexpr DType value = DType::f4e2m1x2;
};
template <>
struct DTypeOf<Int4Pair> {
  static constexpr DType value = DType::i4x2;
};
template <>
struct DTypeOf<FactorUE4M3> {
  static constexpr DType value = DType::ue4m3;
};
template <>
struct DTypeOf<FactorUE8M0> {
  static constexpr DType value = DType::ue8m0;
};
}  // namespace detail

/// The DType of a C++ element type.
template <class T>
inline constexpr DType dtype_of = detail::DTypeOf<std::remove_cv_t<T>>::value;

/// C++ types that can be elements of a buffer.
template <class T>
concept Element = requires {
  detail::DTypeOf<std::remove_cv_t<T>>::value;
};

/// f32 and f64: what the BLAS, sparse and rng operations compute in.
template <class T>
concept RealElement = std::is_same_v<T, float> || std::is_same_v<T, double>;

}  // namespace troupe
