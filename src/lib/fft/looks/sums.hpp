#pragma once

#include "device_host/engine/product_sums.hpp"

/// How a Fourier transform is verified, alike on both engines. The elements of its output are added
/// up with weights that are a chirp, whose own transform is a chirp again, in closed form (D. C.
/// Chu: Polyphase Codes With Good Periodic Correlation Properties, IEEE Transactions on Information
/// Theory 18, 1972). So the sum is also that of the elements of the input with the other chirp: for
/// n elements
///   n even: w[k] = exp(pi i k^2 / n),      W[j] = sqrt(n) exp(pi i / 4 - pi i j^2 / n)
///   n odd:  w[k] = exp(pi i k (k + 1) / n), W[j] = sqrt(n) exp(pi i (n - 1) / (4 n) - pi i (j^2 -
///   j) / n)
/// with W[j] = sum over k of w[k] exp(-2 pi i j k / n). An inverse transform has the conjugates,
/// several dimensions have products. In C++17, because kernels are compiled so.
namespace troupe::host::sums {

/// The largest extent: squares of indices fit 64 bits.
constexpr std::int64_t kLargestExtent = std::int64_t{1} << 31;

/// exp(pi i turn)
TROUPE_ON_BOTH Number unit_at(double turn) {
#if defined(__CUDA_ARCH__)
  Number unit;
  sincospi(turn, &unit.im, &unit.re);
  return unit;
#else
  constexpr double kPi = 3.14159265358979323846;
  return {std::cos(kPi * turn), std::sin(kPi * turn)};
#endif
}
TROUPE_ON_BOTH double turns(std::int64_t part, std::int64_t n) {
  return static_cast<double>(part % (2 * n)) / static_cast<double>(n);
}
TROUPE_ON_BOTH Number chirp(std::int64_t n, std::int64_t k) {
  return unit_at(turns(n % 2 == 0 ? k * k : k * (k + 1), n));
}
TROUPE_ON_BOTH Number chirp_transformed(std::int64_t n, std::int64_t j) {
  const auto count = static_cast<double>(n);
  const double start = n % 2 == 0 ? 0.25 : (count - 1) / (4 * count);
  return sqrt(count) * unit_at(start - turns(n % 2 == 0 ? j * j : j * (j - 1), n));
}

/// The weights of one dimension on one side of a transform.
struct FftWeights {
  std::int64_t n = 1;
  bool of_input = false, inverse = false;
  /// Of a real transform's last dimension: w[k] (1 + i exp(2 pi i k / n)). Elements k and n - k of
  /// its output are conjugates, of which one is stored; with a chirp alone an error of it would be
  /// found only as far as it is, say, real, because weights k and n - k are equal.
  bool lopsided = false;
};
TROUPE_ON_BOTH Number weight(const FftWeights& of, std::int64_t at) {
  Number weight = of.of_input ? chirp_transformed(of.n, at) : chirp(of.n, at);
  if (of.lopsided) {
    // A factor of exp(2 pi i k / n) shifts the transform by one.
    const Number other = of.of_input ? chirp_transformed(of.n, at == 0 ? of.n - 1 : at - 1)
                                     : weight * unit_at(turns(2 * at, of.n));
    weight = weight + Number{-other.im, other.re};
  }
  return {weight.re, of.inverse ? -weight.im : weight.im};
}

/// The sums of one transform's elements, weighed, and of their squares.
struct FftSums {
  Number sum;
  /// Of a half spectrum: the same, with the elements that are their own mirror images, or whose
  /// images are stored as well, replaced by these images.
  Number mirrored;
  double size = 0;
};

/// The contribution of an element of a half spectrum: also for its mirror image, which is not
/// stored. `weight`: of the element; `image`: of its image. `own`: its last index is 0 or n / 2, so
/// that its image is stored, or is the element itself.
TROUPE_ON_BOTH void add_element(FftSums& sums, Number x, Number weight) {
  sums.sum = sums.sum + weight * x;
  sums.size += x.re * x.re + x.im * x.im;
}
TROUPE_ON_BOTH void add_half(FftSums& sums, Number x, Number weight, Number image, bool own) {
  const Number of_element = weight * x, of_image = image * Number{x.re, -x.im};
  const double size = x.re * x.re + x.im * x.im;
  sums.sum = sums.sum + of_element;
  sums.mirrored = sums.mirrored + of_image;
  if (!own) {
    sums.sum = sums.sum + of_image;
    sums.mirrored = sums.mirrored + of_element;
  }
  sums.size += own ? size : 2 * size;
}

struct FftJudgement {
  Number expected, actual;
  double bound = 0;
  bool wrong = false;
};

/// The length of the error of a transform is at most some 7 units in the last place for each factor
/// of 2 in `volume`, times the length of the output (N. J. Higham: Accuracy and Stability of
/// Numerical Algorithms, 2nd edition, 2002, theorem 24.2); twice that is allowed for algorithms of
/// other factors. A half spectrum of an input that is none says nothing: `half`.
TROUPE_ON_BOTH FftJudgement judge(const FftSums& input, Number output, std::int64_t volume,
                                  bool half, bool lopsided, const Rounding& rounding) {
  FftJudgement judged;
  judged.expected = input.sum;
  judged.actual = output;
  const auto count = static_cast<double>(volume);
  const double of_output = sqrt(count) * fmax(sqrt(input.size), 1e-125);
  const double relative =
      14 * rounding.sum * (log2(count) + 2) + rounding.output + (sqrt(count) + 16) * kUnit;
  const double tiny = sqrt(count) * (rounding.tiny_output + count * rounding.tiny_sum);
  judged.bound =
      (lopsided ? 2 : 1) * kFar * (relative * of_output + tiny) + relative * length(input.sum);
  const Number off{output.re - input.sum.re, output.im - input.sum.im};
  const Number unlike{input.mirrored.re - input.sum.re, input.mirrored.im - input.sum.im};
  judged.wrong = finite(judged.expected) && finite(judged.actual) && finite(judged.bound) &&
                 !(half && length(unlike) > judged.bound / 8) && !(length(off) <= judged.bound);
  return judged;
}

}  // namespace troupe::host::sums
