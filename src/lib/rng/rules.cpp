#include <troupe/lib/operation_table.hpp>
#include <troupe/lib/rng.hpp>

#include <cmath>
#include <limits>
#include <numeric>

#include "common/wire/checker.hpp"

namespace troupe::rng {

using wire::checker;
using wire::Checker;

namespace {

template <class Op>
Checker random(const Op& op) {
  auto checks = checker(op);
  checks.require(op.subsequence < kSubsequences, "subsequence must be below 2^24")
      .require(op.offset < kSubsequenceStride, "offset must be below 2^40")
      .holds("destination", op.destination, op.n);
  return checks;
}

}  // namespace

Result<void> Bits::check() const {
  return random(*this).result();
}

Result<void> Uniform::check() const {
  return random(*this).result();
}

Result<void> Normal::check() const {
  return random(*this)
      .require(n % 2 == 0 && offset % 2 == 0, "length and offset must be even")
      .result();
}

Result<void> LogNormal::check() const {
  return random(*this)
      .require(n % 2 == 0 && offset % 2 == 0, "length and offset must be even")
      .require(std::isfinite(mean) && std::isfinite(deviation) && deviation >= 0,
               "mean and deviation must be finite, and the deviation not negative")
      .result();
}

template <Law kLaw>
Result<void> Distributed<kLaw>::check() const {
  const auto positive = [](double value) { return std::isfinite(value) && value > 0; };
  auto checks = random(*this);
  if constexpr (kLaw == Law::exponential) {
    checks.require(positive(a), "the rate must be positive");
  } else if constexpr (kLaw == Law::cauchy) {
    checks.require(std::isfinite(a), "the location must be finite")
        .require(positive(b), "the scale must be positive");
  } else if constexpr (kLaw == Law::gamma) {
    checks.require(positive(a) && positive(b), "shape and scale must be positive");
  } else if constexpr (kLaw == Law::beta) {
    checks.require(positive(a) && positive(b), "both shapes must be positive");
  } else if constexpr (kLaw == Law::poisson) {
    checks.require(positive(a) && a <= 0x1p30, "the mean must be positive, and at most 2^30");
  } else {
    checks
        .require(a >= 0 && a <= std::numeric_limits<std::uint32_t>::max() && a == std::floor(a),
                 "the number of trials must be a u32")
        .require(b >= 0 && b <= 1, "the probability must lie between 0 and 1");
  }
  return checks.result();
}

template struct Distributed<Law::exponential>;
template struct Distributed<Law::cauchy>;
template struct Distributed<Law::gamma>;
template struct Distributed<Law::beta>;
template struct Distributed<Law::poisson>;
template struct Distributed<Law::binomial>;

Result<void> Discrete::check() const {
  return random(*this)
      .require(categories >= 1 && categories <= std::numeric_limits<std::uint32_t>::max(),
               "the number of categories must be positive and a u32")
      .holds("threshold", threshold, categories, sizeof(double))
      .holds("alias", alias, categories, sizeof(std::uint32_t))
      .result();
}

Result<void> Sequence::check() const {
  auto checks = checker(*this);
  const bool quasi = is_quasi(generator), counts = distribution == Distribution::poisson;
  const bool wide = generator >= Generator::sobol64;
  const bool reals = !counts && distribution != Distribution::bits;
  checks
      .require(generator <= Generator::scrambled_sobol64 && distribution <= Distribution::poisson &&
                   ordering <= Ordering::dynamic,
               "unknown generator, distribution or ordering")
      .require(counts  ? dtype == DType::u32
               : reals ? dtype == DType::f32 || dtype == DType::f64
                       : dtype == (wide ? DType::u64 : DType::u32),
               "the distribution's numbers are not of this dtype");
  if (checks.ok() && ordering > Ordering::legacy)
    return Error{
        Errc::unsupported, 0,
        std::string(kName) + ": orderings other than default and legacy depend on the device"};
  checks.require(!quasi || ordering == Ordering::by_default, "a Sobol sequence has one ordering")
      .require(quasi ? dimensions >= 1 && dimensions <= 20000 : dimensions == 1,
               "a Sobol sequence has 1 to 20000 dimensions, others 1")
      .require(!quasi || seed == 0, "a Sobol sequence has no seed")
      .require(offset == 0 || (generator != Generator::mtgp32 && generator != Generator::mt19937),
               "MTGP32 and MT19937 know no offset")
      .require(offset < std::uint64_t{1} << 63, "offset must be below 2^63")
      .require(n >= 0 && n <= wire::Checker::kMaxCount && first >= 0 &&
                   first <= wire::Checker::kMaxCount - n,
               "a length or position is negative or too large");
  if (!checks.ok()) return checks.result();
  if (quasi)
    checks.require(n % dimensions == 0 && first % dimensions == 0,
                   "length and position must be multiples of the dimensions");
  if (!quasi && (distribution == Distribution::normal || distribution == Distribution::log_normal))
    checks.require(n % 2 == 0 && first % 2 == 0, "length and position must be even");
  if (counts) {
    checks.require(mean > 0 && mean <= 400'000, "the mean must be positive, and at most 400,000");
  } else {
    checks.require(std::isfinite(mean) && std::isfinite(deviation) && deviation >= 0,
                   "mean and deviation must be finite, and the deviation not negative");
  }
  return checks
      .require(seeks() || first <= kFarthest, "a place beyond 2^36 cannot be reached there")
      .holds("destination", destination, n)
      .result();
}

Result<AliasTable> alias_table(std::span<const double> weights) {
  const auto bad = [](const char* what) {
    return Error{Errc::invalid, 0, std::string("rng::alias_table: ") + what};
  };
  if (weights.empty() || weights.size() > std::numeric_limits<std::uint32_t>::max())
    return bad("the number of weights must be positive and a u32");
  for (const double weight : weights) {
    if (!std::isfinite(weight) || weight < 0) return bad("a weight is negative or not finite");
  }
  const double sum = std::accumulate(weights.begin(), weights.end(), 0.0);
  if (!std::isfinite(sum) || sum <= 0) return bad("the sum of the weights is 0 or too large");

  AliasTable table;
  std::vector<std::uint32_t> poor, rich;  // below and above the average
  for (std::uint32_t c = 0; c < weights.size(); ++c) {
    table.threshold.push_back(weights[c] / sum * static_cast<double>(weights.size()));
    table.alias.push_back(c);
    (table.threshold[c] < 1 ? poor : rich).push_back(c);
  }
  while (!poor.empty() && !rich.empty()) {
    const auto from = rich.back(), to = poor.back();
    poor.pop_back();
    table.alias[to] = from;
    table.threshold[from] -= 1 - table.threshold[to];
    if (table.threshold[from] >= 1) continue;
    rich.pop_back();
    poor.push_back(from);
  }
  // What is left differs from 1 by rounding.
  for (const auto c : poor) table.threshold[c] = 1;
  for (const auto c : rich) table.threshold[c] = 1;
  return table;
}

std::span<const OperationInfo* const> operations() noexcept {
  return tables_of(Operations{});
}

}  // namespace troupe::rng
