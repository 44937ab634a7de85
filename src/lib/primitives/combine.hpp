#pragma once

#include <cstdint>
#include <type_traits>

#include <troupe/lib/primitives_types.hpp>

#ifdef __CUDACC__
#define TROUPE_HOST_DEVICE __host__ __device__
#else
#define TROUPE_HOST_DEVICE
#endif

namespace troupe::host {

/// Combines two unsigned integers of 32 or 64 bits as a reduction does, modulo 2^32 or 2^64, or two
/// floating-point numbers; then a NaN is smaller and larger than every number, and of equal ones
/// the first is taken. What it does is known when it runs: one set of kernels serves all
/// reductions, which wait for memory anyway.
template <class T>
struct Combine {
  primitives::Reduction reduction;
  bool is_signed;  ///< for min and max: the bits are those of signed integers

  TROUPE_HOST_DEVICE T operator()(T a, T b) const {
    // Chosen among results, not by branches: kernels combine in so many places that branches there
    // are slow to compile, and keep what is independent from being computed side by side.
    using primitives::Reduction;
    T result = a + b;
    result = reduction == Reduction::product ? a * b : result;
    if constexpr (std::is_floating_point_v<T>) {
      result = reduction == Reduction::min ? (b < a || b != b ? b : a) : result;
      return reduction == Reduction::max ? (a < b || b != b ? b : a) : result;
    } else {
      // With the sign bit inverted signed integers have the order of unsigned ones.
      const T sign = is_signed ? T(1) << (8 * sizeof(T) - 1) : T(0);
      const bool is_less = (a ^ sign) < (b ^ sign);
      result = reduction == Reduction::min ? (is_less ? a : b) : result;
      result = reduction == Reduction::max ? (is_less ? b : a) : result;
      result = reduction == Reduction::bit_and ? a & b : result;
      result = reduction == Reduction::bit_or ? a | b : result;
      return reduction == Reduction::bit_xor ? a ^ b : result;
    }
  }
};

}  // namespace troupe::host

#undef TROUPE_HOST_DEVICE
