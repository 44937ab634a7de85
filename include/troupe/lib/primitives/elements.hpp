#pragma once

#include <limits>
#include <type_traits>

#include <troupe/lib/primitives/types.hpp>
#include <troupe/lib/submit.hpp>

namespace troupe::primitives {

inline constexpr DTypes kIntegers = DTypes::of({DType::i32, DType::u32, DType::i64, DType::u64});
inline constexpr DTypes kNumbers = {kIntegers.bits | DTypes::reals().bits};
/// Elements that are computed with in f32, and rounded once.
inline constexpr DTypes kNarrowFloats = DTypes::of({DType::f16, DType::bf16});
inline constexpr DTypes kOrdered = {kNumbers.bits | kNarrowFloats.bits};

/// Elements whose sums are exact.
template <class T>
concept Integer = Element<T> && kIntegers.has(dtype_of<T>);
/// Elements that scans, segments and runs add.
template <class T>
concept Number = Element<T> && kNumbers.has(dtype_of<T>);
/// Keys, and elements that are reduced as a whole, selected or transformed.
template <class T>
concept Ordered = Element<T> && kOrdered.has(dtype_of<T>);

/// Values that are sorted or selected along with a key.
template <class T>
concept SortedValue = Element<T> &&(sizeof(T) == 4 || sizeof(T) == 8);

/// The result of a reduction without elements: combined with an element it gives that element.
template <Ordered T>
constexpr T neutral(ReduceOp reduction) noexcept {
  if constexpr (kNarrowFloats.has(dtype_of<T>)) {
    constexpr bool kIsHalf = dtype_of<T> == DType::f16;
    switch (reduction) {
      case ReduceOp::min: return {kIsHalf ? std::uint16_t{0x7c00} : std::uint16_t{0x7f80}};
      case ReduceOp::max: return {kIsHalf ? std::uint16_t{0xfc00} : std::uint16_t{0xff80}};
      case ReduceOp::prod: return {kIsHalf ? std::uint16_t{0x3c00} : std::uint16_t{0x3f80}};
      default: return {0};
    }
  } else {
    using Limits = std::numeric_limits<T>;
    switch (reduction) {
      case ReduceOp::min: return Limits::has_infinity ? Limits::infinity() : Limits::max();
      case ReduceOp::max: return Limits::has_infinity ? -Limits::infinity() : Limits::lowest();
      case ReduceOp::prod: return T(1);
      case ReduceOp::bit_and: return static_cast<T>(-1);
      default: return T(0);
    }
  }
}

}  // namespace troupe::primitives
