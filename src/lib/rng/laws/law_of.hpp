#pragma once

#include <troupe/lib/rng.hpp>

#include "lib/rng/laws/laws.hpp"

/// The law that an operation asks for.
namespace troupe::host::rng_numbers {

inline ExponentialLaw law_of(const rng::Exponential& op) {
  return {op.a};
}
inline CauchyLaw law_of(const rng::Cauchy& op) {
  return {op.a, op.b};
}
inline GammaLaw law_of(const rng::Gamma& op) {
  return {op.a, op.b};
}
inline BetaLaw law_of(const rng::Beta& op) {
  return {op.a, op.b};
}
inline PoissonLaw law_of(const rng::Poisson& op) {
  return {op.a};
}
inline BinomialLaw law_of(const rng::Binomial& op) {
  return {op.a, op.b};
}

/// Where the numbers of an operation begin in the generator's sequence.
template <class Op>
std::uint64_t position_of(const Op& op) {
  return op.subsequence * rng::kSubsequenceStride + op.offset;
}

}  // namespace troupe::host::rng_numbers
