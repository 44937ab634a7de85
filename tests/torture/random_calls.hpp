#pragma once

#include <troupe/lib/rng.hpp>

#include "program.hpp"

namespace troupe::torture {

/// The call of a kind that draws numbers: of one of RandomTable::kSets sets.
template <class Refs, class Ref>
Future<void> draw(BasicRng<Refs>& rng, Kind kind, std::uint64_t set, const Ref& to) {
  const RandomOptions options{.seed = set + 1, .subsequence = set, .offset = 2 * set};
  if (kind == Kind::uniform) return rng.uniform(to, options);
  if (kind == Kind::normal) return rng.normal(to, options);
  if (kind == Kind::law) {
    switch (set) {
      case 0: return rng.log_normal(to, options);
      case 1: return rng.exponential(to, options, 2);
      case 2: return rng.cauchy(to, options);
      case 3: return rng.gamma(to, options, 0.5);
      case 4: return rng.gamma(to, options, 3, 2);
      default: return rng.beta(to, options, 0.5, 2);
    }
  }
  using troupe::rng::Generator;
  constexpr Generator kGenerators[] = {Generator::xorwow,  Generator::mrg32k3a,
                                       Generator::mtgp32,  Generator::philox,
                                       Generator::sobol32, Generator::scrambled_sobol64};
  // In the default order MRG32k3a takes half a second to begin on the host.
  const auto generator = kGenerators[set];
  const bool quasi = troupe::rng::is_quasi(generator);
  RandomSequence sequence(
      {.generator = generator,
       .distribution = troupe::rng::Distribution::normal,
       .ordering = set == 1 ? troupe::rng::Ordering::legacy : troupe::rng::Ordering::by_default,
       .dimensions = quasi ? 4u : 1u,
       .seed = quasi ? 0 : set + 1});
  return rng.next(sequence, to);
}

}  // namespace troupe::torture
