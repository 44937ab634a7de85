#pragma once

#include <cmath>
#include <cstdint>

/// Sums by which products are verified, alike on both engines. In C++17, because kernels are
/// compiled so.
namespace troupe::host::sums {

#if defined(__CUDACC__)
#define TROUPE_ON_BOTH __host__ __device__ inline
#else
#define TROUPE_ON_BOTH inline
#endif

/// A complex number, or a real one.
struct Number {
  double re = 0, im = 0;
};
TROUPE_ON_BOTH Number operator+(Number a, Number b) {
  return {a.re + b.re, a.im + b.im};
}
TROUPE_ON_BOTH Number operator*(Number a, Number b) {
  return {a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re};
}
TROUPE_ON_BOTH Number operator*(double a, Number b) {
  return {a * b.re, a * b.im};
}
TROUPE_ON_BOTH double length(Number a) {
  return a.im == 0 ? fabs(a.re) : hypot(a.re, a.im);
}
/// Between the length and sqrt(2) times that, and quick.
TROUPE_ON_BOTH double extent(Number a) {
  return fabs(a.re) + fabs(a.im);
}
TROUPE_ON_BOTH bool finite(double x) {
  return fabs(x) <= 1.7976931348623157e308;
}
TROUPE_ON_BOTH bool finite(Number x) {
  return finite(x.re) && finite(x.im);
}
/// a x; where a is 0 that is 0, whatever x is.
TROUPE_ON_BOTH Number weighed(Number a, Number x) {
  return a.re == 0 && a.im == 0 ? Number{} : a * x;
}

/// The weight of element i in a checksum: 1 or -1, as if by chance, so that two errors hardly
/// cancel. A bit of splitmix64 (G. L. Steele, D. Lea, C. H. Flood: Fast Splittable Pseudorandom
/// Number Generators, OOPSLA 2014).
TROUPE_ON_BOTH double sign_of(std::int64_t i) {
  auto x = static_cast<std::uint64_t>(i) * 0x9e3779b97f4a7c15u + 0x2545f4914f6cdd1du;
  x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
  x = (x ^ x >> 27) * 0x94d049bb133111ebu;
  return (x ^ x >> 31) >> 63 == 0 ? 1 : -1;
}

/// The largest sum of errors with such weights, in multiples of the root of the sum of their
/// squares: it is exceeded with a probability below 2 exp(-kFar^2 / 2) = 3e-14, whatever the errors
/// are (W. Hoeffding: Probability inequalities for sums of bounded random variables, Journal of the
/// American Statistical Association 58, 1963).
constexpr double kFar = 8;
/// The same of rounding errors of single elements, of which a length is the worst case: they are
/// 0.4 of it on average, so it is as far.
constexpr double kFarOfRounding = 4;
/// Half a unit in the last place of double, in which the sums are made.
constexpr double kUnit = 1.1102230246251565e-16;

/// The precision that the numbers of a product are rounded to.
struct Rounding {
  double sum = 0;                        ///< half a unit in the last place of what is added up in
  double input = 0;                      ///< of what factors are rounded to first; 0: of nothing
  double output = 0;                     ///< of the result
  double tiny_sum = 0, tiny_output = 0;  ///< absolute errors, where numbers are too small
  bool exact = false;                    ///< integers, modulo 2^32
  bool by_lengths = false;  ///< of the result absolute values are added up, as squares overflow
};

/// The relative error of a sum of `count` products. Errors of roundings to nearest grow like the
/// root of their number (N. J. Higham, T. Mary: A New Approach to Probabilistic Rounding Error
/// Analysis, SIAM Journal on Scientific Computing 41, 2019). Tensor cores cut off instead, once for
/// each 8 products or more (M. Fasi, N. J. Higham, M. Mikaitis, S. Pranesh: Numerical behavior of
/// NVIDIA tensor cores, PeerJ Computer Science 7, 2021): these errors add up.
TROUPE_ON_BOTH double growth(std::int64_t count) {
  const auto n = static_cast<double>(count);
  return sqrt(n) + n / 8 + 4;
}

}  // namespace troupe::host::sums
