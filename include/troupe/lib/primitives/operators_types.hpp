#pragma once

#include <cstdint>

/// The operators of primitives that go by elements; C++17, as kernels are.
namespace troupe::primitives {

/// What is made of an element. Integers wrap around: the absolute value of the smallest one is
/// itself. square_root and reciprocal take f32 and f64 only, bit_not integers only.
enum class Unary : std::uint32_t { negate, absolute, square, square_root, reciprocal, bit_not };

/// What is made of two elements. Integers wrap around; divided by 0 they give 0. min and max are a
/// NaN if either is one, and the first where both are equal, as -0 and +0 are. bit_and, bit_or and
/// bit_xor take integers only.
enum class Binary : std::uint32_t {
  add,
  subtract,
  multiply,
  divide,
  min,
  max,
  bit_and,
  bit_or,
  bit_xor
};

}  // namespace troupe::primitives
