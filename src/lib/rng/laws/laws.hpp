#pragma once

#include <cmath>
#include <cstdint>

#include "common/core/philox_block.hpp"

/// The laws of rng/laws.hpp, as both engines compute them: an object with the law's numbers makes
/// one number of each Draw. Sources of the formulas: see rng::Law.
namespace troupe::host::rng_numbers {

/// The uniform numbers that belong to one place.
class Draw {
 public:
  TROUPE_HOST_DEVICE Draw(std::uint64_t seed, std::uint64_t place) : seed_(seed), place_(place) {}

  struct Pair {
    double first, second;
  };
  /// The next two, in (0, 1].
  TROUPE_HOST_DEVICE Pair pair() {
    const Block x = philox_block(seed_, place_, step_++);
    return {unit_of(x.word[0], x.word[1]), unit_of(x.word[2], x.word[3])};
  }
  TROUPE_HOST_DEVICE double uniform() { return pair().first; }
  /// Box-Muller.
  TROUPE_HOST_DEVICE double normal() {
    const Pair u = pair();
    return std::sqrt(-2 * std::log(u.first)) * std::cos(2 * kPi * u.second);
  }
  static constexpr double kPi = 3.14159265358979323846;

 private:
  std::uint64_t seed_, place_;
  std::uint64_t step_ = std::uint64_t{1} << 61;
};

/// After so many rejections the last proposal stands. The laws below accept one of two at least.
constexpr int kProposals = 256;

struct ExponentialLaw {
  double rate;
  TROUPE_HOST_DEVICE double operator()(Draw& draw) const {
    return (0 - std::log(draw.uniform())) / rate;
  }
};

struct CauchyLaw {
  double location, scale;
  TROUPE_HOST_DEVICE double operator()(Draw& draw) const {
    return location + scale * std::tan(Draw::kPi * (draw.uniform() - 0.5));
  }
};

/// base * exp(exponent): numbers of small shapes lie beyond the range of f64.
struct GammaNumber {
  double base, exponent;
  [[nodiscard]] TROUPE_HOST_DEVICE double value() const { return base * std::exp(exponent); }
  [[nodiscard]] TROUPE_HOST_DEVICE double log() const { return std::log(base) + exponent; }
};
TROUPE_HOST_DEVICE GammaNumber gamma_number(Draw& draw, double shape) {
  const bool small = shape < 1;
  const double d = (small ? shape + 1 : shape) - 1.0 / 3;
  const double c = 1 / std::sqrt(9 * d);
  double v = 1;
  for (int i = 0; i < kProposals; ++i) {
    const double x = draw.normal();
    const double root = 1 + c * x;
    if (root <= 0) continue;
    v = root * root * root;
    const double u = draw.uniform();
    if (u < 1 - 0.0331 * (x * x) * (x * x)) break;
    if (std::log(u) < 0.5 * x * x + d * (1 - v + std::log(v))) break;
  }
  return {d * v, small ? std::log(draw.uniform()) / shape : 0};
}

struct GammaLaw {
  double shape, scale;
  TROUPE_HOST_DEVICE double operator()(Draw& draw) const {
    const GammaNumber x = gamma_number(draw, shape);
    // A large scale may bring back what would be 0 before.
    return x.exponent < -600 ? std::exp(x.log() + std::log(scale)) : scale * x.value();
  }
};

struct BetaLaw {
  double a, b;
  TROUPE_HOST_DEVICE double operator()(Draw& draw) const {
    // So near to 0 or 1 that no f64 lies between: as numpy.random.Generator.beta has it.
    if (a < kTiny && b < kTiny) return draw.uniform() <= a / (a + b) ? 1 : 0;
    const GammaNumber x = gamma_number(draw, a), y = gamma_number(draw, b);
    // Halves, whose sum does not overflow.
    if (a >= 1 && b >= 1) return x.value() / 2 / (x.value() / 2 + y.value() / 2);
    const double apart = y.log() - x.log();
    return apart > 700 ? std::exp(-apart) : 1 / (1 + std::exp(apart));
  }

 private:
  static constexpr double kTiny = 3e-103;
};

struct PoissonLaw {
  double mean;
  TROUPE_HOST_DEVICE double operator()(Draw& draw) const {
    return mean < 10 ? inverted(draw) : transformed(draw);
  }

 private:
  TROUPE_HOST_DEVICE double inverted(Draw& draw) const {
    constexpr int kMost = 128;  // has a probability below 2^-53
    double u = draw.uniform(), p = std::exp(-mean);
    int k = 0;
    for (; u > p && k < kMost; p *= mean / ++k) u -= p;
    return k;
  }
  TROUPE_HOST_DEVICE double transformed(Draw& draw) const {
    const double root = std::sqrt(mean), log_mean = std::log(mean);
    const double b = 0.931 + 2.53 * root, a = -0.059 + 0.02483 * b;
    const double inverse_alpha = 1.1239 + 1.1328 / (b - 3.4), v_r = 0.9277 - 3.6224 / (b - 2);
    for (int i = 0; i < kProposals; ++i) {
      const Draw::Pair uniform = draw.pair();
      const double u = uniform.first - 0.5, v = uniform.second, us = 0.5 - std::fabs(u);
      const double k = std::floor((2 * a / us + b) * u + mean + 0.43);
      if (us >= 0.07 && v <= v_r) return k;
      if (k < 0 || (us < 0.013 && v > us)) continue;
      if (std::log(v) + std::log(inverse_alpha) - std::log(a / (us * us) + b) <=
          k * log_mean - mean - std::lgamma(k + 1))
        return k;
    }
    return std::floor(mean);
  }
};

struct BinomialLaw {
  double trials, probability;
  TROUPE_HOST_DEVICE double operator()(Draw& draw) const {
    const bool mirrored = probability > 0.5;
    const double p = mirrored ? 1 - probability : probability;
    const double k = trials * p < 10 ? inverted(draw, p) : transformed(draw, p);
    return mirrored ? trials - k : k;
  }

 private:
  TROUPE_HOST_DEVICE double inverted(Draw& draw, double p) const {
    const double most = trials < 128 ? trials : 128;  // more have a probability below 2^-53
    const double odds = p / (1 - p);
    double u = draw.uniform(), mass = std::exp(trials * std::log1p(-p)), k = 0;
    while (u > mass && k < most) {
      u -= mass;
      k += 1;
      mass *= odds * (trials - k + 1) / k;
    }
    return k;
  }
  TROUPE_HOST_DEVICE double transformed(Draw& draw, double p) const {
    const double n = trials, odds = p / (1 - p), root = std::sqrt(n * p * (1 - p));
    const double b = 1.15 + 2.53 * root, a = -0.0873 + 0.0248 * b + 0.01 * p;
    const double c = n * p + 0.5, v_r = 0.92 - 4.2 / b, alpha = (2.83 + 5.1 / b) * root;
    const double m = std::floor((n + 1) * p);
    const double h = std::lgamma(m + 1) + std::lgamma(n - m + 1);
    for (int i = 0; i < kProposals; ++i) {
      const Draw::Pair uniform = draw.pair();
      const double u = uniform.first - 0.5, v = uniform.second, us = 0.5 - std::fabs(u);
      const double k = std::floor((2 * a / us + b) * u + c);
      if (k < 0 || k > n) continue;
      if (us >= 0.07 && v <= v_r) return k;
      if (std::log(v * alpha / (a / (us * us) + b)) <=
          h - std::lgamma(k + 1) - std::lgamma(n - k + 1) + (k - m) * std::log(odds))
        return k;
    }
    return m;
  }
};

/// Which of `categories`; threshold and alias have as many elements.
struct DiscreteLaw {
  const double* threshold;
  const std::uint32_t* alias;
  std::uint32_t categories;
  TROUPE_HOST_DEVICE std::uint32_t operator()(Draw& draw) const {
    const Draw::Pair u = draw.pair();
    auto c = static_cast<std::uint32_t>(u.first * categories);
    if (c >= categories) c = categories - 1;
    return u.second <= threshold[c] ? c : alias[c];
  }
};

}  // namespace troupe::host::rng_numbers
