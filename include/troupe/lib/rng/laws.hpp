#pragma once

#include <span>
#include <vector>

#include <troupe/lib/rng/stream.hpp>
#include <troupe/lib/submit.hpp>

/// Laws that are derived from uniform numbers, each number from its own: number i is made of words
/// of a stream of Philox4x32-10 that belongs to its place, subsequence * 2^40 + offset + i. Where a
/// law rejects, it draws on from that stream, so that a number never depends on its neighbours: any
/// range of places can be made again, by any number of threads. These streams begin at step 2^61,
/// where `bits`, `uniform` and `normal` never come: in terms of cuRAND's device interface,
/// curand_init(seed, place, 1ull << 63, &state).
///
/// They are computed in f64 whatever the dtype. The engines differ by the rounding of log, exp, pow
/// and tan; a difference that falls on a decision gives another number, which has a probability
/// below 1e-8 for each number (poisson, binomial: with means up to 10^6, and more beyond).
namespace troupe::rng {

/// exponential: -log(u) / rate                                            a: rate
/// cauchy:      location + scale tan(pi (u - 1/2))                        a: location, b: scale
/// gamma:       shape and scale; Marsaglia and Tsang, doi:10.1145/358407.358414
///                                                                        a: shape,   b: scale
/// beta:        x / (x + y) of two gamma numbers; 0 or 1 where both shapes are below 3e-103
///                                                                        a, b: its shapes
/// poisson:     inversion below 10, else PTRS of W. Hoermann, "The transformed rejection method for
///              generating Poisson random variables", Insurance: Mathematics and Economics 12
///              (1993), doi:10.1016/0167-6687(93)90997-4                  a: mean, at most 2^30
/// binomial:    inversion where fewer than 10 are expected, else BTRS of W. Hoermann, "The
///              generation of binomial random variates", J. Stat. Comput. Simul. 46 (1993),
///              doi:10.1080/00949659308811496                             a: trials, b: probability
enum class Law : std::uint32_t { exponential, cauchy, gamma, beta, poisson, binomial };

constexpr std::string_view name_of(Law law) noexcept {
  constexpr std::string_view kNames[] = {"rng.exponential", "rng.cauchy",  "rng.gamma",
                                         "rng.beta",        "rng.poisson", "rng.binomial"};
  return kNames[static_cast<std::size_t>(law)];
}

/// destination[i] by a law with up to two numbers; see Law.
template <Law kLaw>
struct Distributed {
  static constexpr std::string_view kName = name_of(kLaw);
  static constexpr DTypes kDTypes =
      kLaw < Law::poisson ? DTypes::reals() : DTypes::of({DType::u32});
  static constexpr Traits kTraits = kComputesRecorded;

  OpDType dtype;
  std::int64_t n = 0;
  std::uint64_t seed = 0, subsequence = 0, offset = 0;
  double a = 0, b = 0;
  Operand destination;

  static constexpr std::array kOperands{write("destination", &Distributed::destination)};
  static constexpr auto kPlaces =
      std::tuple{&Distributed::seed, &Distributed::subsequence, &Distributed::offset};
  Result<void> check() const;
  [[nodiscard]] std::uint64_t written(const Operand&) const noexcept {
    return static_cast<std::uint64_t>(n) * size_of(dtype);
  }
};

using Exponential = Distributed<Law::exponential>;
using Cauchy = Distributed<Law::cauchy>;
using Gamma = Distributed<Law::gamma>;
using Beta = Distributed<Law::beta>;
using Poisson = Distributed<Law::poisson>;
using Binomial = Distributed<Law::binomial>;

/// destination[i] = one of 0 to categories - 1, by an alias table (A. Walker 1977,
/// doi:10.1145/355744.355749): category c with threshold[c], else alias[c]. Both have `categories`
/// elements; alias_table() makes them.
struct Discrete {
  static constexpr std::string_view kName = "rng.discrete";
  static constexpr DTypes kDTypes = DTypes::of({DType::u32});
  static constexpr Traits kTraits = kComputesRecorded;

  OpDType dtype;
  std::int64_t n = 0;
  std::uint64_t seed = 0, subsequence = 0, offset = 0;
  std::int64_t categories = 0;  ///< 1 to 2^32 - 1
  Operand threshold, alias;     ///< f64 and u32
  Operand destination;

  static constexpr std::array kOperands{read("threshold", &Discrete::threshold),
                                        read("alias", &Discrete::alias),
                                        write("destination", &Discrete::destination)};
  static constexpr auto kPlaces =
      std::tuple{&Discrete::seed, &Discrete::subsequence, &Discrete::offset};
  Result<void> check() const;
  [[nodiscard]] std::uint64_t written(const Operand& operand) const noexcept {
    return &operand == &destination ? static_cast<std::uint64_t>(n) * size_of(dtype) : 0;
  }
};

/// What Discrete reads.
struct AliasTable {
  std::vector<double> threshold;
  std::vector<std::uint32_t> alias;
};
/// The table for weights that need not add up to 1 (M. Vose 1991, doi:10.1109/32.92917). Errors:
/// invalid (no weight, one that is negative or not finite, none that is positive, a sum that
/// overflows).
Result<AliasTable> alias_table(std::span<const double> weights);

}  // namespace troupe::rng
