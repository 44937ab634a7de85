#pragma once

#include "lib/primitives/common/algorithms.cuh"

/// Elements as words: unsigned integers of 16, 32 or 64 bits, of which it is known when a kernel
/// runs what they mean. One kernel for each size serves all types of that size.
namespace troupe::host::cuda::kernels {

template <class U>
inline constexpr U kSignBit = U(U(1) << (8 * sizeof(U) - 1));
template <class U>
inline constexpr U kAllBits = U(~U(0));

/// The word without its sign, if it is a floating-point number.
template <class U>
struct Magnitude {
  U bits;

  explicit Magnitude(const Meaning& meaning)
      : bits(meaning.floating ? U(kAllBits<U> >> 1) : kAllBits<U>) {}
  __host__ __device__ U operator()(U word) const { return U(word & bits); }
};

/// Whether two words are equal: -0 and +0 are, a NaN equals nothing.
template <class U>
struct Equal {
  Magnitude<U> magnitude;
  U infinity;

  explicit Equal(const Meaning& meaning)
      : magnitude(meaning), infinity(static_cast<U>(meaning.infinity)) {}
  __host__ __device__ bool operator()(U a, U b) const {
    return (a == b && magnitude(a) <= infinity) || magnitude(U(a | b)) == 0;
  }
};

/// Unsigned integers in the order of the words, or in the opposite one. Floating-point numbers are
/// ordered by their bits: -0 comes before +0, NaNs are beyond the infinities.
template <class U>
struct Ranking {
  U floating;  ///< all bits or none: those of negative numbers are inverted
  U sign;      ///< the sign bit or none: it is inverted
  U reversed;  ///< all bits or none: all are inverted

  Ranking(bool is_floating, bool is_signed, bool descending)
      : floating(is_floating ? kAllBits<U> : U(0)),
        sign(is_floating || is_signed ? kSignBit<U> : U(0)),
        reversed(descending ? kAllBits<U> : U(0)) {}

  __host__ __device__ static U all_if_negative(U word) {
    return U(U(0) - U(word >> (8 * sizeof(U) - 1)));
  }
  __host__ __device__ U to_rank(U word) const {
    return U(word ^ ((all_if_negative(word) & floating) | sign) ^ reversed);
  }
  __host__ __device__ U from_rank(U rank) const {
    const U forward = U(rank ^ reversed);
    return U(forward ^ ((all_if_negative(U(~forward)) & floating) | sign));
  }
};

}  // namespace troupe::host::cuda::kernels
