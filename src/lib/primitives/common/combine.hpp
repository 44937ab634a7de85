#pragma once

#include <cstdint>
#include <type_traits>

#include <troupe/lib/primitives/types.hpp>

#include "common/core/extremes.hpp"

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
  primitives::ReduceOp reduction;
  bool is_signed;  ///< for min and max: the bits are those of signed integers

  TROUPE_HOST_DEVICE T operator()(T a, T b) const {
    using primitives::ReduceOp;
    if constexpr (std::is_floating_point_v<T>) {
      switch (reduction) {
        case ReduceOp::min: return smaller(a, b);
        case ReduceOp::max: return larger(a, b);
        case ReduceOp::prod: return a * b;
        default: return a + b;
      }
    } else {
      // With the sign bit inverted signed integers have the order of unsigned ones.
      const T sign = is_signed ? T(1) << (8 * sizeof(T) - 1) : T(0);
      switch (reduction) {
        case ReduceOp::min: return (b ^ sign) < (a ^ sign) ? b : a;
        case ReduceOp::max: return (a ^ sign) < (b ^ sign) ? b : a;
        case ReduceOp::prod: return a * b;
        case ReduceOp::bit_and: return a & b;
        case ReduceOp::bit_or: return a | b;
        case ReduceOp::bit_xor: return a ^ b;
        default: return a + b;
      }
    }
  }
};

}  // namespace troupe::host

#undef TROUPE_HOST_DEVICE
