#pragma once

#include "device_host/engine/product_sums.hpp"

/// How a product of a sparse matrix C = alpha op(A) B + beta C is verified, alike on both engines:
/// each element of it is computed again, in double. In C++17, because kernels are compiled so.
namespace troupe::host::sums {

/// One element of C.
struct SparseElement {
  Number sum;              ///< of the products
  double size = 0;         ///< of their absolute values
  std::int64_t count = 0;  ///< how many they are, at most
  Number before, result;
};
struct SparseJudgement {
  Number expected, actual;
  double bound = 0;
  bool wrong = false;
};

/// The error of a sum of n products is at most n units in the last place of the sum of their
/// absolute values, however they are added up (N. J. Higham: Accuracy and Stability of Numerical
/// Algorithms, 2nd edition, 2002, section 3.1). Where sums are not finite nothing is wrong.
TROUPE_ON_BOTH SparseJudgement judge(const SparseElement& element, Number alpha, Number beta,
                                     const Rounding& rounding) {
  SparseJudgement judged;
  judged.expected = weighed(alpha, element.sum) + weighed(beta, element.before);
  judged.actual = element.result;
  const double of_alpha = length(alpha);
  const double products = of_alpha == 0 ? 0 : of_alpha * element.size;
  const double before = length(weighed(beta, element.before));
  const auto count = static_cast<double>(element.count);
  judged.bound = (rounding.sum + kUnit) * ((count + 8) * products + 8 * before) +
                 rounding.tiny_sum * (1 + of_alpha) * (count + 4);
  const Number off{judged.actual.re - judged.expected.re, judged.actual.im - judged.expected.im};
  judged.wrong = finite(judged.expected) && finite(judged.actual) && finite(judged.bound) &&
                 !(length(off) <= judged.bound);
  return judged;
}

}  // namespace troupe::host::sums
