#pragma once

#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>

#include <troupe/lib/primitives/operators_types.hpp>

#include "common/core/extremes.hpp"

#ifdef __CUDACC__
#define TROUPE_HOST_DEVICE __host__ __device__
#else
#define TROUPE_HOST_DEVICE
#endif

/// What is made of elements, for both engines: one definition, so that they agree. Which operator
/// it is is known when it runs: one kernel for each type serves all of them, and waits for memory
/// anyway.
namespace troupe::host {

template <class T>
struct ApplyUnary {
  primitives::Unary op;

  TROUPE_HOST_DEVICE T operator()(T x) const {
    using primitives::Unary;
    if constexpr (std::is_floating_point_v<T>) {
      switch (op) {
        case Unary::absolute: return std::abs(x);
        case Unary::square: return x * x;
        case Unary::square_root: return std::sqrt(x);
        case Unary::reciprocal: return T(1) / x;
        default: return -x;
      }
    } else {
      using U = std::make_unsigned_t<T>;
      const U bits = static_cast<U>(x);
      switch (op) {
        case Unary::absolute: return is_negative(x) ? static_cast<T>(U(0) - bits) : x;
        case Unary::square: return static_cast<T>(bits * bits);
        case Unary::bit_not: return static_cast<T>(~bits);
        default: return static_cast<T>(U(0) - bits);
      }
    }
  }

 private:
  TROUPE_HOST_DEVICE static bool is_negative([[maybe_unused]] T x) {
    if constexpr (std::is_signed_v<T>) {
      return x < T(0);
    } else {
      return false;
    }
  }
};

template <class T>
struct ApplyBinary {
  primitives::Binary op;

  TROUPE_HOST_DEVICE T operator()(T x, T y) const {
    using primitives::Binary;
    if constexpr (std::is_floating_point_v<T>) {
      switch (op) {
        case Binary::subtract: return x - y;
        case Binary::multiply: return x * y;
        case Binary::divide: return x / y;
        case Binary::min: return smaller(x, y);
        case Binary::max: return larger(x, y);
        default: return x + y;
      }
    } else {
      using U = std::make_unsigned_t<T>;
      const U a = static_cast<U>(x), b = static_cast<U>(y);
      switch (op) {
        case Binary::subtract: return static_cast<T>(a - b);
        case Binary::multiply: return static_cast<T>(a * b);
        case Binary::divide: return quotient(x, y);
        case Binary::min: return smaller(x, y);
        case Binary::max: return larger(x, y);
        case Binary::bit_and: return static_cast<T>(a & b);
        case Binary::bit_or: return static_cast<T>(a | b);
        case Binary::bit_xor: return static_cast<T>(a ^ b);
        default: return static_cast<T>(a + b);
      }
    }
  }

 private:
  /// Hosts raise a signal for what devices give some number for.
  TROUPE_HOST_DEVICE static T quotient(T x, T y) {
    if (y == T(0)) return T(0);
    if constexpr (std::is_signed_v<T>) {
      using U = std::make_unsigned_t<T>;
      if (y == T(-1)) return static_cast<T>(U(0) - static_cast<U>(x));
    }
    return x / y;
  }
};

/// The smallest and the largest integers of a type, as constants: devices do not call the functions
/// of std::numeric_limits.
template <class T>
struct Extremes {
  static constexpr T kSmallest = std::numeric_limits<T>::min();
  static constexpr T kLargest = std::numeric_limits<T>::max();
};
/// See primitives::Convert.
template <class To, class From>
TROUPE_HOST_DEVICE To converted(From x) {
  if constexpr (std::is_floating_point_v<From> && std::is_integral_v<To>) {
    // One more than the largest: a power of two, so it is exact.
    constexpr From kBound =
        2 * static_cast<From>(std::uint64_t{1} << (std::numeric_limits<To>::digits - 1));
    if (x != x) return To(0);
    if (x >= kBound) return Extremes<To>::kLargest;
    if (x <= (std::is_signed_v<To> ? -kBound : From(0))) return Extremes<To>::kSmallest;
  }
  return static_cast<To>(x);
}

}  // namespace troupe::host

#undef TROUPE_HOST_DEVICE
