#include "check.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>

namespace troupe::train {
namespace {

struct Part {
  std::string name;
  Place place;
};

/// The tensors, with the weights of queries, keys and values each by itself.
std::vector<Part> parts_of(const Parameters& places) {
  std::vector<Part> parts;
  for (std::size_t i = 0; i < places.all.size(); ++i) {
    const auto& [name, place] = std::pair(places.names[i], places.all[i]);
    if (!name.ends_with(" qkv")) {
      parts.push_back({name, place});
      continue;
    }
    const auto third = place.length / 3;
    std::int64_t first = place.first;
    for (const auto* which : {"queries", "keys", "values"}) {
      parts.push_back({name + " " + which, {.first = first, .length = third}});
      first += third;
    }
  }
  return parts;
}

/// Each number is rounded after each of some 8 operations of a layer and 4 others, forward and
/// backward. In f32 an operation is a sum of at most `longest` terms, whose error grows as the root
/// of their number (Higham and Mary, "A new approach to probabilistic rounding error analysis",
/// 2019); in bf16 sums are f32, and results are rounded once. What an operation makes of the errors
/// of the one before is taken to be of their size, as norms keep numbers near 1.
double tolerance_of(const HostProblem& problem, DType dtype) {
  const auto& shape = problem.shape;
  const auto longest = std::max({4 * shape.channels, shape.sequence, shape.vocabulary,
                                 static_cast<std::int64_t>(problem.tokens.size())});
  const double operations = 2 * static_cast<double>(8 * shape.layers + 4);
  const double rounding = dtype == DType::bf16
                              ? std::ldexp(1.0, -8)
                              : std::ldexp(1.0, -24) * std::sqrt(static_cast<double>(longest));
  return operations * rounding;
}

/// The derivative of the loss along a direction of signs within one tensor, beside a central
/// difference D(h) = (L(+h) - L(-h)) / 2h. That is off by h^2 times a constant, a third of D(2h) -
/// D(h), and by the roundings of L, which are taken to be fewer than a thousand.
double difference_ratio(HostProblem problem, const std::vector<double>& gradients,
                        const Place& place, std::mt19937& random) {
  constexpr double kStep = 1e-4, kRoundings = 1000;
  const auto begin = static_cast<std::size_t>(place.first),
             end = begin + static_cast<std::size_t>(place.length);
  std::vector<double> signs;
  double derivative = 0;
  for (auto i = begin; i < end; ++i) {
    signs.push_back(random() % 2 == 0 ? 1 : -1);
    derivative += signs.back() * gradients[i];
  }
  const auto at_start = problem.parameters;
  const double step = kStep / std::sqrt(static_cast<double>(place.length));
  double loss = 0;
  const auto moved = [&](double by) {
    for (auto i = begin; i < end; ++i) problem.parameters[i] = at_start[i] + by * signs[i - begin];
    return loss = host_loss(problem);
  };
  const double near = (moved(step) - moved(-step)) / (2 * step);
  const double far = (moved(2 * step) - moved(-2 * step)) / (4 * step);
  const double may_be_off =
      std::abs(far - near) + kRoundings * std::numeric_limits<double>::epsilon() * loss / step;
  return std::abs(near - derivative) / may_be_off;
}

}  // namespace

bool may_be_checked(const Options& options) {
  constexpr double kMostOperations = 1e11;
  const Parameters places(options.shape);
  const double pass =
      2 * static_cast<double>(places.count) * static_cast<double>(options.tokens_of_rank());
  return pass * 4 * static_cast<double>(places.all.size()) <= kMostOperations;
}

std::vector<float> parameters_to_check(const Shape& shape) {
  const Parameters places(shape);
  std::vector<float> values(static_cast<std::size_t>(places.count));
  std::mt19937 random(1);
  // A product of unit rows with such weights has a variance of 1.
  const double width = std::sqrt(3.0 / static_cast<double>(shape.channels));
  for (const auto& place : places.all)
    for (std::int64_t i = place.first; i < place.first + place.length; ++i)
      values[static_cast<std::size_t>(i)] =
          static_cast<float>(place.value + width * (std::ldexp(random(), -31) - 1));
  return values;
}

GradientCheck check_gradients(const HostProblem& problem, double loss,
                              const std::vector<float>& gradients, DType dtype) {
  GradientCheck check;
  check.tolerance = tolerance_of(problem, dtype);
  std::vector<double> exact;
  const double exact_loss = host_loss(problem, exact);
  check.loss_error = std::abs(loss - exact_loss) / exact_loss;
  std::mt19937 random(2);
  for (const auto& [name, place] : parts_of(Parameters(problem.shape))) {
    double off = 0, all = 0;
    for (std::int64_t i = place.first; i < place.first + place.length; ++i) {
      const auto at = static_cast<std::size_t>(i);
      off += (gradients[at] - exact[at]) * (gradients[at] - exact[at]);
      all += exact[at] * exact[at];
    }
    const double error = std::sqrt(off / all);
    if (!(error <= check.gradient_error)) {
      check.gradient_error = std::isnan(error) ? HUGE_VAL : error;
      check.worst = name;
    }
    check.difference_ratio =
        std::max(check.difference_ratio, difference_ratio(problem, exact, place, random));
  }
  return check;
}

double update_ratio(const Options& options, const BeforeUpdate& before,
                    const std::vector<float>& after) {
  const Parameters places(options.shape);
  double norm = 0;
  for (const double gradient : before.gradients) norm += gradient * gradient;
  norm = std::sqrt(norm);
  const double scale = options.grad_clip > 0 ? std::min(1.0, options.grad_clip / norm) : 1.0;
  const double rate = options.learning_rate_of(before.step);
  const auto steps = static_cast<double>(before.step + 1);
  const double correction1 = 1 - std::pow(kBeta1, steps), correction2 = 1 - std::pow(kBeta2, steps);
  // A dozen operations, and the norm, a sum of sums: see tolerance_of().
  const double parts = static_cast<double>(places.count) / 1024 + 1024;
  const double rounding = std::ldexp(1.0, -24) * (12 + std::sqrt(parts));
  double largest = 0;
  const auto compare = [&](const Block& block) {
    for (std::int64_t i = 0; i < block.length; ++i) {
      const auto at = static_cast<std::size_t>(block.first + i);
      const double p = before.parameters[at], g = before.gradients[at] * scale;
      const double m = kBeta1 * before.first_moments[at], new_m = (1 - kBeta1) * g;
      const double v = kBeta2 * before.second_moments[at] + (1 - kBeta2) * g * g;
      const double factor = rate / correction1 / (std::sqrt(v / correction2) + kAdamEpsilon);
      const double decay = i < block.decayed ? rate * options.weight_decay * p : 0;
      const double exact = p - decay - factor * (m + new_m);
      const double may_be_off = rounding * (std::abs(p) + factor * (std::abs(m) + std::abs(new_m)));
      const double ratio = std::abs(after[at] - exact) / may_be_off;
      if (!(ratio <= largest)) largest = std::isnan(ratio) ? HUGE_VAL : ratio;
    }
  };
  compare(places.embeddings);
  for (const auto& block : places.layer_blocks) compare(block);
  compare(places.last);
  return largest;
}

}  // namespace troupe::train
