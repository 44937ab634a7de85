#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <type_traits>

#include <troupe/lib/primitives.hpp>

/// From a dtype to a C++ type, and what both halves know of that.
namespace troupe::host {

/// Calls visit(T{}) for the type of the dtype, an integer of 32 or 64 bits.
template <class Visit>
Result<void> with_integer(DType dtype, Visit&& visit) {
  switch (dtype) {
    case DType::i32: return visit(std::int32_t{});
    case DType::u32: return visit(std::uint32_t{});
    case DType::i64: return visit(std::int64_t{});
    case DType::u64: return visit(std::uint64_t{});
    default:
      return Error{Errc::unsupported, 0,
                   std::string(to_string(dtype)) + " is no integer of 32 or 64 bits"};
  }
}

/// The same, also for f32 and f64.
template <class Visit>
Result<void> with_countable(DType dtype, Visit&& visit) {
  if (dtype == DType::f32) return visit(float{});
  if (dtype == DType::f64) return visit(double{});
  return with_integer(dtype, visit);
}

/// The same, also for f16 and bf16.
template <class Visit>
Result<void> with_ordered(DType dtype, Visit&& visit) {
  if (dtype == DType::f16) return visit(Half{});
  if (dtype == DType::bf16) return visit(BFloat16{});
  return with_countable(dtype, visit);
}

/// As with_countable(), also for u8.
template <class Visit>
Result<void> with_sample(DType dtype, Visit&& visit) {
  if (dtype == DType::u8) return visit(std::uint8_t{});
  return with_countable(dtype, visit);
}

/// A level of a histogram as it stands in the operation.
template <class L>
L level(const std::array<std::byte, 8>& bytes) {
  L value;
  std::memcpy(&value, bytes.data(), sizeof value);
  return value;
}

/// Calls visit(U{}) for the unsigned integer of the dtype's size, 4 or 8 bytes: for what only moves
/// elements, or is told what they mean.
template <class Visit>
Result<void> with_wide_word(DType dtype, Visit&& visit) {
  return size_of(dtype) == 4 ? visit(std::uint32_t{}) : visit(std::uint64_t{});
}
/// The same with 2 bytes.
template <class Visit>
Result<void> with_word(DType dtype, Visit&& visit) {
  return size_of(dtype) == 2 ? visit(std::uint16_t{}) : with_wide_word(dtype, visit);
}

/// What sums of T are computed in: integers wrap around.
template <class T>
using Summand = typename std::conditional_t<std::is_floating_point_v<T>, std::type_identity<T>,
                                            std::make_unsigned<T>>::type;

using primitives::neutral;

/// What a reduction combines two elements by.
inline primitives::Binary combination(primitives::ReduceOp reduction) noexcept {
  using primitives::Binary;
  using primitives::ReduceOp;
  switch (reduction) {
    case ReduceOp::min: return Binary::min;
    case ReduceOp::max: return Binary::max;
    case ReduceOp::prod: return Binary::multiply;
    case ReduceOp::bit_and: return Binary::bit_and;
    case ReduceOp::bit_or: return Binary::bit_or;
    case ReduceOp::bit_xor: return Binary::bit_xor;
    default: return Binary::add;
  }
}

}  // namespace troupe::host
