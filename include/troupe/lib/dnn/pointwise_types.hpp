#pragma once

#include <cstddef>
#include <cstdint>

/// Which functions of single elements and which reductions there are. In C++17, because kernels are
/// compiled so.
namespace troupe::dnn {

/// What a pointwise node computes of an element a and those of further inputs, b and c, at the same
/// place. Of the gradients a is dy and b is x, the input of the function.
enum class Mode : std::uint32_t {
  // of a
  identity,
  abs,
  negate,
  reciprocal,
  sqrt,
  rsqrt,
  exp,
  log,
  erf,
  sin,
  cos,
  tan,
  ceil,
  floor,
  relu,     ///< a > 0 ? a : slope * a, at most `upper`
  sigmoid,  ///< 1 / (1 + exp(-a))
  tanh,
  elu,          ///< a > 0 ? a : alpha * (exp(a) - 1)
  gelu,         ///< a * (1 + erf(a / sqrt(2))) / 2
  gelu_tanh,    ///< a * (1 + tanh(sqrt(2 / pi) * (a + 0.044715 a^3))) / 2
  softplus,     ///< log(1 + exp(beta * a)) / beta
  swish,        ///< a / (1 + exp(-beta * a))
  logical_not,  ///< a == 0, as 0 and 1; so are those below
  // of a and b
  add,
  add_square,  ///< a + b * b
  subtract,
  multiply,
  divide,
  maximum,
  minimum,
  modulo,  ///< as C's fmod
  power,
  equal,
  not_equal,
  greater,
  greater_equal,
  less,
  less_equal,
  logical_and,
  logical_or,
  relu_backward,  ///< a * (x > 0 ? 1 : slope), 0 from `upper` on
  sigmoid_backward,
  tanh_backward,
  elu_backward,
  gelu_backward,
  gelu_tanh_backward,
  softplus_backward,
  swish_backward,
  // of a, b and c
  select  ///< c != 0 ? a : b
};
inline constexpr std::uint32_t kModes = static_cast<std::uint32_t>(Mode::select) + 1;
/// How many inputs it has: 1 to 3.
constexpr std::size_t inputs_of(Mode mode) noexcept {
  return mode <= Mode::logical_not ? 1 : mode < Mode::select ? 2 : 3;
}

/// A reduction, named as those of collectives (troupe::ReduceOp) are.
enum class ReduceOp : std::uint32_t {
  sum,
  prod,
  min,
  max,
  max_abs,  ///< the largest absolute value
  avg,
  norm1,  ///< sum of absolute values
  norm2,  ///< square root of the sum of squares
  prod_without_zeros,
  add [[deprecated("ReduceOp::sum")]] = sum,
  multiply [[deprecated("ReduceOp::prod")]] = prod,
  minimum [[deprecated("ReduceOp::min")]] = min,
  maximum [[deprecated("ReduceOp::max")]] = max,
  average [[deprecated("ReduceOp::avg")]] = avg,
  multiply_without_zeros [[deprecated("ReduceOp::prod_without_zeros")]] = prod_without_zeros
};
using Reduction [[deprecated("dnn::ReduceOp")]] = ReduceOp;
inline constexpr std::uint32_t kReductions =
    static_cast<std::uint32_t>(ReduceOp::prod_without_zeros) + 1;

}  // namespace troupe::dnn
