#pragma once

#include <cstdint>

/// What the primitives' calls and their kernels have in common; C++17, as kernels are.
namespace troupe::primitives {

/// A reduction, named as those of collectives (troupe::ReduceOp) are. Those of bits take integers
/// only.
enum class ReduceOp : std::uint32_t {
  sum,
  min,
  max,
  prod,
  bit_and,
  bit_or,
  bit_xor,
  product [[deprecated("ReduceOp::prod")]] = prod
};
using Reduction [[deprecated("primitives::ReduceOp")]] = ReduceOp;

/// The order in which keys are sorted.
enum class Order : std::uint32_t { ascending, descending };

}  // namespace troupe::primitives
