#pragma once

#include <type_traits>

#ifdef __CUDACC__
#define TROUPE_EXTREME __host__ __device__ constexpr
#else
#define TROUPE_EXTREME constexpr
#endif

/// The smaller and the larger of two numbers, one rule for all libraries and both engines: a NaN is
/// both, and of equal ones it is the first, as numpy.minimum and numpy.maximum have it. In C++17,
/// because kernels are compiled so.
namespace troupe {

template <class T>
TROUPE_EXTREME bool is_nan(T x) {
  static_assert(std::is_arithmetic_v<T>, "the bits of a narrow float are no number: widen it");
  if constexpr (std::is_floating_point_v<T>)
    return x != x;
  else
    return false;
}
template <class T>
TROUPE_EXTREME T smaller(T a, T b) {
  return b < a || is_nan(b) ? b : a;
}
template <class T>
TROUPE_EXTREME T larger(T a, T b) {
  return a < b || is_nan(b) ? b : a;
}

}  // namespace troupe

#undef TROUPE_EXTREME
