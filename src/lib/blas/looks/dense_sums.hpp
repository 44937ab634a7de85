#pragma once

#include "device_host/engine/product_sums.hpp"

/// How a product of dense matrices D = alpha op(A) op(B) + beta C is verified, alike on both
/// engines. With v of signs, row i of D v is compared with row i of alpha op(A) (op(B) v) + beta C
/// v. Element (i, j) of D is off by at most e times the length of row i of op(A) times that of
/// column j of op(B), by Cauchy and Schwarz; so the root of the sum of the squares of a row's
/// errors is at most e times the length of the row of op(A) times that of all of op(B). In C++17,
/// because kernels are compiled so.
namespace troupe::host::sums {

/// The types that elements are stored as.
enum class Stored : std::uint8_t { f16, bf16, f32, f64, f8e4m3, f8e5m2, i8, i32, c64, c128 };

/// Strided of a batch: element (i, j) of one is at i * row_step + j * column_step.
struct Strided {
  const void* data = nullptr;  ///< nullptr: there are none
  Stored stored{};
  bool conjugate = false;
  std::int64_t rows = 0, columns = 0, row_step = 0, column_step = 0;
  std::int64_t stride = 0;  ///< from one to the next
};

/// Row i of all that is summed up. Sizes are sums of squares.
struct DenseRow {
  Number product;  ///< of op(A) and op(B) v
  Number before;   ///< of C v
  Number result;   ///< of D v
  Number bias;
  double a_size = 0, b_size = 0;  ///< of the row of op(A), of all of op(B)
  double before_size = 0;         ///< of the row of C
  double result_size = 0;         ///< of the row of D: see Rounding::by_lengths
  double signs = 0;               ///< the sum of v
};
struct DenseFactors {
  Number alpha, beta;
  double of_result = 1;  ///< D is that much larger
};

struct Judgement {
  Number expected, actual;
  double bound = 0;
  bool wrong = false;
};

/// Sums that are not finite, or too large to be exact, pass for right.
TROUPE_ON_BOTH Judgement judge(const DenseRow& row, const DenseFactors& by, std::int64_t columns,
                               std::int64_t inner, const Rounding& rounding) {
  Judgement judged;
  const auto count = static_cast<double>(columns);
  judged.expected = by.of_result * (weighed(by.alpha, row.product) + weighed(by.beta, row.before) +
                                    row.signs * row.bias);
  judged.actual = row.result;
  const Number off{judged.actual.re - judged.expected.re, judged.actual.im - judged.expected.im};
  if (rounding.exact) {
    // Both are whole; below 2^52 they are exact.
    const double whole = 4294967296.0, most = 4503599627370496.0;
    const double products = length(by.alpha) * sqrt(row.a_size * row.b_size * count);
    judged.wrong = products < most && fabs(judged.expected.re) < most &&
                   fabs(judged.actual.re) < most && fmod(off.re, whole) != 0;
    return judged;
  }
  // A length whose squares would be too small is taken for larger.
  const double least = 1e-125;
  const double of_a = fmax(sqrt(row.a_size), least), of_b = fmax(sqrt(row.b_size), least);
  const double of_sums =
      growth(inner) * rounding.sum + 2 * rounding.input + (growth(columns) + growth(inner)) * kUnit;
  const double alpha = length(by.alpha), beta = length(by.beta);
  const double before = beta == 0 ? 0 : beta * fmax(sqrt(row.before_size), least);
  const double products = alpha == 0 ? 0 : alpha * of_a * of_b;
  const double in_sums =
      of_sums * products + (4 * rounding.sum + growth(columns) * kUnit) *
                               (before + length(row.bias) * sqrt(count) + products);
  // The length that the row of D may have without an element that is wrong.
  const double likely = fabs(by.of_result) * (products + before + length(row.bias) * sqrt(count));
  const double in_result =
      rounding.by_lengths ? (rounding.output + growth(columns) * kUnit) *
                                fmin(row.result_size, sqrt(count) * likely)
                          : (kFarOfRounding * rounding.output + kFar * growth(columns) * kUnit) *
                                fmin(sqrt(row.result_size), likely);
  const double tiny =
      rounding.tiny_output + (1 + alpha) * static_cast<double>(inner + 1) * rounding.tiny_sum;
  judged.bound = kFar * fabs(by.of_result) * in_sums + in_result + kFar * sqrt(count) * tiny;
  judged.wrong = finite(judged.expected) && finite(judged.actual) && finite(judged.bound) &&
                 !(length(off) <= judged.bound);
  return judged;
}

}  // namespace troupe::host::sums
