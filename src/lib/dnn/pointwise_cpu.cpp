#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

#include <troupe/lib/dnn_pointwise.hpp>

#include "lib/dnn/graph_cpu.hpp"

/// Single elements are computed in f64 and rounded to f32 once.
namespace troupe::dnn {
namespace {

struct Constants {
  double slope, upper, alpha, beta;
};

double sigmoid(double x) {
  return 1 / (1 + std::exp(-x));
}
/// The argument of tanh in the second form of GELU, and its derivative.
double inner(double x) {
  return std::sqrt(2 * std::numbers::inv_pi) * (x + 0.044715 * x * x * x);
}
double inner_slope(double x) {
  return std::sqrt(2 * std::numbers::inv_pi) * (1 + 3 * 0.044715 * x * x);
}

double of_one(Mode mode, double a, const Constants& with) {
  switch (mode) {
    case Mode::identity: return a;
    case Mode::abs: return std::abs(a);
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
    case Mode::relu: return std::min(a > 0 ? a : with.slope * a, with.upper);
    case Mode::sigmoid: return sigmoid(a);
    case Mode::tanh: return std::tanh(a);
    case Mode::elu: return a > 0 ? a : with.alpha * std::expm1(a);
    case Mode::gelu: return a * (1 + std::erf(a / std::numbers::sqrt2)) / 2;
    case Mode::gelu_tanh: return a * (1 + std::tanh(inner(a))) / 2;
    case Mode::softplus:
      return std::max(a, 0.0) + std::log1p(std::exp(-std::abs(with.beta * a))) / with.beta;
    case Mode::swish: return a * sigmoid(with.beta * a);
    default: return a == 0 ? 1 : 0;  // logical_not
  }
}

/// The gradient of a function at x.
double slope_at(Mode mode, double x, const Constants& with) {
  switch (mode) {
    case Mode::relu_backward: return x >= with.upper ? 0 : x > 0 ? 1 : with.slope;
    case Mode::sigmoid_backward: return sigmoid(x) * (1 - sigmoid(x));
    case Mode::tanh_backward: return 1 - std::tanh(x) * std::tanh(x);
    case Mode::elu_backward: return x > 0 ? 1 : with.alpha * std::exp(x);
    case Mode::gelu_backward:
      return (1 + std::erf(x / std::numbers::sqrt2)) / 2 +
             x * std::exp(-x * x / 2) * std::sqrt(std::numbers::inv_pi / 2);
    case Mode::gelu_tanh_backward: {
      const double t = std::tanh(inner(x));
      return (1 + t) / 2 + x * (1 - t * t) * inner_slope(x) / 2;
    }
    case Mode::softplus_backward: return sigmoid(with.beta * x);
    default: {  // swish_backward
      const double s = sigmoid(with.beta * x);
      return s + with.beta * x * s * (1 - s);
    }
  }
}

double of_two(Mode mode, double a, double b, const Constants& with) {
  switch (mode) {
    case Mode::add: return a + b;
    case Mode::add_square: return a + b * b;
    case Mode::subtract: return a - b;
    case Mode::multiply: return a * b;
    case Mode::divide: return a / b;
    case Mode::maximum: return std::max(a, b);
    case Mode::minimum: return std::min(a, b);
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
    default: return a * slope_at(mode, b, with);
  }
}

/// What a reduction begins with, and what it makes of that and a further number.
double first_of(Reduction reduction) {
  switch (reduction) {
    case Reduction::multiply:
    case Reduction::multiply_without_zeros: return 1;
    case Reduction::minimum: return std::numeric_limits<double>::infinity();
    case Reduction::maximum: return -std::numeric_limits<double>::infinity();
    default: return 0;
  }
}
double joined(Reduction reduction, double sum, double x) {
  switch (reduction) {
    case Reduction::multiply: return sum * x;
    case Reduction::multiply_without_zeros: return x == 0 ? sum : sum * x;
    case Reduction::minimum: return std::min(sum, x);
    case Reduction::maximum: return std::max(sum, x);
    case Reduction::max_abs: return std::max(sum, std::abs(x));
    default: return sum + x;
  }
}
}  // namespace

void compute_pointwise(const NodeView& node, Contents& contents) {
  const auto mode = static_cast<Mode>(node.numbers[0]);
  const Constants with{node.real(1), node.real(2), node.real(3), node.real(4)};
  const auto* const result = node.outputs[0];
  auto& y = contents.make(result);
  std::array<Steps, 3> steps{};
  std::array<const float*, 3> from{};
  for (std::size_t i = 0; i < 3; ++i) {
    if (node.inputs[i] == nullptr) continue;
    steps[i] = row_major_steps(node.inputs[i]->extents);
    from[i] = contents.of(node.inputs[i]).data();
  }
  std::size_t next = 0;
  for_each_place(result->extents, steps, [&](const auto& places) {
    const double a = from[0][places[0]];
    switch (inputs_of(mode)) {
      case 1: y[next++] = static_cast<float>(of_one(mode, a, with)); break;
      case 2: y[next++] = static_cast<float>(of_two(mode, a, from[1][places[1]], with)); break;
      default: y[next++] = from[2][places[2]] != 0 ? from[0][places[0]] : from[1][places[1]];
    }
  });
}

void compute_reduction(const NodeView& node, Contents& contents) {
  const auto reduction = static_cast<Reduction>(node.numbers[0]);
  const auto *const x = node.inputs[0], *const result = node.outputs[0];
  auto& y = contents.make(result);
  const auto& from = contents.of(x);
  std::vector<double> sums(y.size(), first_of(reduction));
  std::size_t next = 0;
  for_each_place<1>(x->extents, {row_major_steps(result->extents)}, [&](const auto& places) {
    auto& sum = sums[static_cast<std::size_t>(places[0])];
    sum = joined(reduction, sum, from[next++]);
  });
  std::transform(sums.begin(), sums.end(), y.begin(),
                 [](double sum) { return static_cast<float>(sum); });
}

}  // namespace troupe::dnn
