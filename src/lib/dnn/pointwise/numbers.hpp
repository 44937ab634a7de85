#pragma once

#include <cmath>

#include <troupe/lib/dnn/pointwise_types.hpp>

#include "common/core/extremes.hpp"

#ifdef __CUDACC__
#define TROUPE_DNN_NUMBER __host__ __device__ inline double
#else
#define TROUPE_DNN_NUMBER inline double
#endif

/// What functions of single elements and reductions make of numbers, for both engines: one
/// definition, so that they agree. Computed in f64, to be rounded to f32 once. In C++17, because
/// kernels are compiled so.
namespace troupe::dnn::numbers {

/// Those of PointwiseOptions.
struct Constants {
  double slope, upper, alpha, beta;
};

inline constexpr double kInfinity = HUGE_VAL;
inline constexpr double kSqrt2 = 1.4142135623730951;
inline constexpr double kSqrt2OverPi = 0.7978845608028654;  ///< sqrt(2 / pi)
inline constexpr double kInvSqrt2Pi = 0.3989422804014327;   ///< 1 / sqrt(2 pi)

/// a times a weight that goes to 0 faster than a grows: its limit where the weight is 0.
TROUPE_DNN_NUMBER weighted(double a, double weight) {
  return weight == 0 ? 0 : a * weight;
}
TROUPE_DNN_NUMBER sigmoid(double x) {
  return 1 / (1 + std::exp(-x));
}
/// A slope of 0 makes 0 also of minus infinity.
TROUPE_DNN_NUMBER leaky(double a, double slope) {
  return a > 0 || is_nan(a) ? a : weighted(a, slope);
}
/// The argument of tanh in the second form of GELU, and its derivative.
TROUPE_DNN_NUMBER inner(double x) {
  return kSqrt2OverPi * (x + 0.044715 * x * x * x);
}
TROUPE_DNN_NUMBER inner_slope(double x) {
  return kSqrt2OverPi * (1 + 3 * 0.044715 * x * x);
}

TROUPE_DNN_NUMBER of_one(Mode mode, double a, const Constants& with) {
  switch (mode) {
    case Mode::identity: return a;
    case Mode::abs: return std::fabs(a);
    case Mode::negate: return -a;
    case Mode::reciprocal: return 1 / a;
    case Mode::sqrt: return std::sqrt(a);
    case Mode::rsqrt: return 1 / std::sqrt(a);
    case Mode::exp: return std::exp(a);
    case Mode::log: return std::log(a);
    case Mode::erf: return std::erf(a);
    case Mode::sin: return std::sin(a);
    case Mode::cos: return std::cos(a);
    case Mode::tan: return std::tan(a);
    case Mode::ceil: return std::ceil(a);
    case Mode::floor: return std::floor(a);
    case Mode::relu: return smaller(leaky(a, with.slope), with.upper);
    case Mode::sigmoid: return sigmoid(a);
    case Mode::tanh: return std::tanh(a);
    case Mode::elu: return a > 0 ? a : with.alpha * std::expm1(a);
    case Mode::gelu: return weighted(a, 1 + std::erf(a / kSqrt2)) / 2;
    case Mode::gelu_tanh: return weighted(a, 1 + std::tanh(inner(a))) / 2;
    case Mode::softplus: {
      const double line = with.beta > 0 ? larger(a, 0.0) : smaller(a, 0.0);
      return line + std::log1p(std::exp(-std::fabs(with.beta * a))) / with.beta;
    }
    case Mode::swish: return weighted(a, sigmoid(weighted(a, with.beta)));
    default: return a == 0 ? 1 : 0;  // logical_not
  }
}

/// The gradient of a function at x.
TROUPE_DNN_NUMBER slope_at(Mode mode, double x, const Constants& with) {
  switch (mode) {
    case Mode::relu_backward:
      return x >= with.upper && with.upper < kInfinity ? 0 : x > 0 ? 1 : with.slope;
    case Mode::sigmoid_backward: return sigmoid(x) * (1 - sigmoid(x));
    case Mode::tanh_backward: return 1 - std::tanh(x) * std::tanh(x);
    case Mode::elu_backward: return x > 0 ? 1 : with.alpha * std::exp(x);
    case Mode::gelu_backward:
      return (1 + std::erf(x / kSqrt2)) / 2 + weighted(x, std::exp(-x * x / 2)) * kInvSqrt2Pi;
    case Mode::gelu_tanh_backward: {
      const double t = std::tanh(inner(x));
      return (1 + t) / 2 + weighted(x * inner_slope(x), 1 - t * t) / 2;
    }
    case Mode::softplus_backward: return sigmoid(weighted(x, with.beta));
    default: {  // swish_backward
      const double s = sigmoid(weighted(x, with.beta));
      return s + weighted(with.beta * x, s * (1 - s));
    }
  }
}

TROUPE_DNN_NUMBER of_two(Mode mode, double a, double b, const Constants& with) {
  switch (mode) {
    case Mode::add: return a + b;
    case Mode::add_square: return a + b * b;
    case Mode::subtract: return a - b;
    case Mode::multiply: return a * b;
    case Mode::divide: return a / b;
    case Mode::maximum: return larger(a, b);
    case Mode::minimum: return smaller(a, b);
    case Mode::modulo: return std::fmod(a, b);
    case Mode::power: return std::pow(a, b);
    case Mode::equal: return a == b;
    case Mode::not_equal: return a != b;
    case Mode::greater: return a > b;
    case Mode::greater_equal: return a >= b;
    case Mode::less: return a < b;
    case Mode::less_equal: return a <= b;
    case Mode::logical_and: return a != 0 && b != 0;
    case Mode::logical_or: return a != 0 || b != 0;
    case Mode::relu_backward: return weighted(a, slope_at(mode, b, with));
    default: return a * slope_at(mode, b, with);
  }
}

/// What a reduction begins with, and what it makes of that and a further number.
TROUPE_DNN_NUMBER first_of(ReduceOp reduction) {
  switch (reduction) {
    case ReduceOp::prod:
    case ReduceOp::prod_without_zeros: return 1;
    case ReduceOp::min: return kInfinity;
    case ReduceOp::max: return -kInfinity;
    default: return 0;
  }
}
TROUPE_DNN_NUMBER joined(ReduceOp reduction, double sum, double x) {
  switch (reduction) {
    case ReduceOp::prod: return sum * x;
    case ReduceOp::prod_without_zeros: return x == 0 ? sum : sum * x;
    case ReduceOp::min: return smaller(sum, x);
    case ReduceOp::max: return larger(sum, x);
    case ReduceOp::max_abs: return larger(sum, std::fabs(x));
    default: return sum + x;
  }
}

}  // namespace troupe::dnn::numbers

#undef TROUPE_DNN_NUMBER
