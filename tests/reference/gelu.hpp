#pragma once

#include <cmath>
#include <numbers>

namespace troupe::test::reference {

/// GELU in the form with tanh (D. Hendrycks and K. Gimpel, arXiv:1606.08415), and its slope.
inline double gelu(double x) {
  return 0.5 * x * (1 + std::tanh(std::sqrt(2 / std::numbers::pi) * (x + 0.044715 * x * x * x)));
}
inline double gelu_slope(double x) {
  const double root = std::sqrt(2 / std::numbers::pi);
  const double tanh = std::tanh(root * (x + 0.044715 * x * x * x));
  return 0.5 * (1 + tanh) + 0.5 * x * (1 - tanh * tanh) * root * (1 + 3 * 0.044715 * x * x);
}

}  // namespace troupe::test::reference
