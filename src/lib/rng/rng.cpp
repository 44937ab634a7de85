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

}  // namespace troupe::rng
