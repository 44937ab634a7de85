#pragma once

#include <cstdint>

/// What the primitives' calls and their kernels have in common; C++17, as kernels are.
namespace troupe::primitives {

/// What a reduction computes. Those of bits take integers only.
enum class Reduction : std::uint32_t { sum, min, max, product, bit_and, bit_or, bit_xor };

/// The order in which keys are sorted.
enum class Order : std::uint32_t { ascending, descending };

}  // namespace troupe::primitives
