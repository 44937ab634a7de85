#pragma once

#include <troupe/lib/dnn.hpp>

#include <array>

#include "dnn_numbers.hpp"

/// Attention and its gradients by the definition, in f64, for tests of the library dnn.
namespace troupe::test {

/// An attention, its operands as numbers that the dtype represents, in the layout of typed calls.
struct AttentionProblem {
  AttentionOptions options;  ///< without references; nothing is left to defaults but the scale
  std::array<std::int64_t, 4> bias_extents{};         ///< 0: there is no bias
  std::vector<std::int32_t> length_q{}, length_kv{};  ///< of each batch; empty: all
  std::vector<double> q{}, k{}, v{}, d_o{}, bias{};
  std::vector<double> sink{};          ///< of each head of q; empty: none
  float dropout = 0;                   ///< its probability
  std::vector<double> dropout_mask{};  ///< batch, heads_q, sequence_q, sequence_kv; empty: none

  [[nodiscard]] std::int64_t queries() const {
    return options.batch * options.sequence_q * options.heads_q;
  }
  [[nodiscard]] std::int64_t keys() const {
    return options.batch * options.sequence_kv * options.heads_kv;
  }
  [[nodiscard]] bool biased() const { return bias_extents[0] > 0; }
  /// Whether query i of a batch sees key j.
  [[nodiscard]] bool sees(std::int64_t b, std::int64_t i, std::int64_t j) const {
    const auto at = static_cast<std::size_t>(b);
    const auto of_q = length_q.empty() ? options.sequence_q : length_q[at];
    const auto of_kv = length_kv.empty() ? options.sequence_kv : length_kv[at];
    if (i >= of_q || j >= of_kv) return false;
    const auto& mask = options.mask;
    const auto diagonal = i + (mask.diagonal == dnn::Diagonal::bottom_right ? of_kv - of_q : 0);
    return (!mask.left || j > diagonal - *mask.left) &&
           (!mask.right || j <= diagonal + *mask.right);
  }
  [[nodiscard]] std::size_t bias_at(std::int64_t b, std::int64_t h, std::int64_t i,
                                    std::int64_t j) const {
    const std::array<std::int64_t, 4> index{b, h, i, j};
    std::int64_t place = 0;
    for (std::size_t d = 0; d < 4; ++d)
      place = place * bias_extents[d] + (bias_extents[d] == 1 ? 0 : index[d]);
    return static_cast<std::size_t>(place);
  }
  /// What dropout multiplies a weight by.
  [[nodiscard]] double factor(std::int64_t b, std::int64_t h, std::int64_t i,
                              std::int64_t j) const {
    if (dropout_mask.empty()) return 1;
    const auto row = (b * options.heads_q + h) * options.sequence_q + i;
    return dropout_mask[static_cast<std::size_t>(row * options.sequence_kv + j)] /
           (1 - static_cast<double>(dropout));
  }
  /// As get_slopes() of the authors of ALiBi: heads beyond a power of two n have every other slope
  /// of 2 n heads.
  [[nodiscard]] double slope(std::int64_t h) const {
    std::int64_t n = 1;
    while (2 * n <= options.heads_q) n *= 2;
    return h < n ? std::exp2(-8.0 * static_cast<double>(h + 1) / static_cast<double>(n))
                 : std::exp2(-8.0 * static_cast<double>(2 * (h - n) + 1) /
                             static_cast<double>(2 * n));
  }
};

/// Fills in what options leave to defaults, and the operands.
template <class T>
AttentionProblem filled(AttentionProblem problem) {
  auto& options = problem.options;
  if (options.heads_kv == 0) options.heads_kv = options.heads_q;
  if (options.sequence_kv == 0) options.sequence_kv = options.sequence_q;
  if (options.dim_v == 0) options.dim_v = options.dim_qk;
  problem.q = uniform<T>(problem.queries() * options.dim_qk, 61);
  problem.k = uniform<T>(problem.keys() * options.dim_qk, 62);
  problem.v = uniform<T>(problem.keys() * options.dim_v, 63);
  problem.d_o = uniform<T>(problem.queries() * options.dim_v, 64);
  const auto& extents = problem.bias_extents;
  problem.bias = uniform<T>(extents[0] * extents[1] * extents[2] * extents[3], 65);
  return problem;
}

/// What attention and its gradients write.
struct AttentionNumbers {
  std::vector<double> o, stats, d_q, d_k, d_v, d_bias, d_sink;
};

/// `round`: of what is stored in between by a simple implementation.
template <class Round>
AttentionNumbers naive_attention(const AttentionProblem& problem, Round&& round,
                                 bool with_gradients = false) {
  const auto& shape = problem.options;
  const auto dim = shape.dim_qk, dim_v = shape.dim_v;
  const double scale =
      static_cast<double>(shape.scale.value_or(1 / std::sqrt(static_cast<float>(dim))));
  AttentionNumbers result{std::vector<double>(problem.d_o.size()),
                          std::vector<double>(static_cast<std::size_t>(problem.queries())),
                          std::vector<double>(problem.q.size()),
                          std::vector<double>(problem.k.size()),
                          std::vector<double>(problem.v.size()),
                          std::vector<double>(problem.bias.size()),
                          std::vector<double>(problem.sink.size())};
  const auto dot = [](const std::vector<double>& a, std::int64_t at_a, const std::vector<double>& b,
                      std::int64_t at_b, std::int64_t count) {
    double sum = 0;
    for (std::int64_t d = 0; d < count; ++d)
      sum += a[static_cast<std::size_t>(at_a + d)] * b[static_cast<std::size_t>(at_b + d)];
    return sum;
  };
  const auto add = [](std::vector<double>& to, std::int64_t at, double factor,
                      const std::vector<double>& from, std::int64_t at_from, std::int64_t count) {
    for (std::int64_t d = 0; d < count; ++d)
      to[static_cast<std::size_t>(at + d)] += factor * from[static_cast<std::size_t>(at_from + d)];
  };
  for (std::int64_t row = 0; row < problem.queries(); ++row) {
    const auto b = row / shape.heads_q / shape.sequence_q;
    const auto i = row / shape.heads_q % shape.sequence_q, h = row % shape.heads_q;
    const auto key_row = [&](std::int64_t j) {
      return (b * shape.sequence_kv + j) * shape.heads_kv + h / (shape.heads_q / shape.heads_kv);
    };
    std::vector<std::int64_t> seen;
    std::vector<double> p;
    for (std::int64_t j = 0; j < shape.sequence_kv; ++j) {
      if (!problem.sees(b, i, j)) continue;
      seen.push_back(j);
      double score =
          round(round(dot(problem.q, row * dim, problem.k, key_row(j) * dim, dim)) * scale);
      if (problem.biased()) score = round(score + problem.bias[problem.bias_at(b, h, i, j)]);
      if (shape.alibi) score = round(score + problem.slope(h) * static_cast<double>(j - i));
      p.push_back(score);
    }
    auto& stats =
        result.stats[static_cast<std::size_t>((b * shape.heads_q + h) * shape.sequence_q + i)];
    const double sink = problem.sink.empty() ? -std::numeric_limits<double>::infinity()
                                             : problem.sink[static_cast<std::size_t>(h)];
    stats = sink;
    if (!problem.length_q.empty() && i >= problem.length_q[static_cast<std::size_t>(b)])
      stats = -std::numeric_limits<double>::infinity();
    if (seen.empty()) continue;
    const auto maximum = std::max(sink, *std::max_element(p.begin(), p.end()));
    double sum = std::exp(sink - maximum);
    for (auto& score : p) sum += score = std::exp(score - maximum);
    stats = maximum + std::log(sum);
    for (std::size_t n = 0; n < p.size(); ++n) {
      p[n] = round(p[n] / sum);
      add(result.o, row * dim_v, round(p[n] * problem.factor(b, h, i, seen[n])), problem.v,
          key_row(seen[n]) * dim_v, dim_v);
    }
    for (std::int64_t d = 0; d < dim_v; ++d) {
      auto& out = result.o[static_cast<std::size_t>(row * dim_v + d)];
      out = round(out);
    }
    if (!with_gradients) continue;
    const double projected = dot(problem.d_o, row * dim_v, result.o, row * dim_v, dim_v);
    if (!problem.sink.empty())
      result.d_sink[static_cast<std::size_t>(h)] -= std::exp(sink - stats) * projected;
    for (std::size_t n = 0; n < p.size(); ++n) {
      const auto key = key_row(seen[n]);
      const auto factor = problem.factor(b, h, i, seen[n]);
      const double d_p = round(dot(problem.d_o, row * dim_v, problem.v, key * dim_v, dim_v));
      const double d_s = round(p[n] * (round(factor * d_p) - projected));
      add(result.d_v, key * dim_v, round(p[n] * factor), problem.d_o, row * dim_v, dim_v);
      add(result.d_q, row * dim, d_s * scale, problem.k, key * dim, dim);
      add(result.d_k, key * dim, d_s * scale, problem.q, row * dim, dim);
      if (problem.biased()) result.d_bias[problem.bias_at(b, h, i, seen[n])] += d_s;
    }
  }
  for (auto* const gradient : {&result.d_q, &result.d_k, &result.d_v, &result.d_bias}) {
    for (auto& value : *gradient) value = round(value);
  }
  return result;
}
inline AttentionNumbers exact_attention(const AttentionProblem& problem,
                                        bool with_gradients = false) {
  return naive_attention(
      problem, [](double x) { return x; }, with_gradients);
}
/// That of a simple implementation which stores everything in T.
template <class T>
AttentionNumbers plain_attention(const AttentionProblem& problem, bool with_gradients = false) {
  return naive_attention(
      problem, [](double x) { return static_cast<double>(to_float(rounded<T>(x))); },
      with_gradients);
}

/// What cuDNN is documented not to have.
inline bool cudnn_lacks(const AttentionProblem& problem) {
  const auto& mask = problem.options.mask;
  const bool more_queries = problem.options.sequence_q > problem.options.sequence_kv;
  const bool causal_at_the_end = mask.diagonal == dnn::Diagonal::bottom_right && mask.right;
  return (causal_at_the_end && problem.biased()) ||
         ((causal_at_the_end || mask.left) && problem.length_q.empty() && more_queries);
}

/// Attentions of all masks, without their operands.
inline std::vector<AttentionProblem> attention_problems() {
  using dnn::Diagonal;
  using dnn::Mask;
  const auto causal = Mask::causal(), causal_at_the_end = Mask::causal(Diagonal::bottom_right);
  const auto shape = [](std::int64_t batch, std::int64_t heads_q, std::int64_t heads_kv,
                        std::int64_t sequence_q, std::int64_t sequence_kv, std::int64_t dim_qk,
                        std::int64_t dim_v, const Mask& mask, std::optional<float> scale = {}) {
    return AttentionOptions{batch, heads_q, heads_kv, sequence_q, sequence_kv, dim_qk,
                            dim_v, mask,    scale,    false,      {},          {}};
  };
  const auto with_alibi = [](AttentionOptions options) {
    options.alibi = true;
    return options;
  };
  return {
      {shape(2, 3, 3, 17, 17, 16, 16, {})},
      {shape(1, 4, 2, 40, 64, 32, 32, {}, 0.5f)},
      {shape(2, 4, 1, 64, 64, 64, 64, causal)},
      {shape(1, 2, 2, 33, 65, 128, 128, causal)},
      {shape(1, 2, 1, 150, 20, 64, 64, causal)},
      {shape(1, 4, 2, 128, 200, 64, 32, {})},
      {shape(2, 8, 2, 1, 77, 64, 64, {}, 2.0f)},
      {shape(2, 12, 12, 64, 64, 64, 64, causal)},  // a layer of GPT-2
      {shape(1, 2, 2, 33, 65, 32, 32, causal_at_the_end)},
      {shape(1, 2, 2, 65, 33, 32, 32, causal_at_the_end)},  // the first queries see no key
      {shape(2, 2, 1, 150, 200, 32, 32, Mask::window(70))},
      {shape(1, 2, 2, 64, 64, 32, 32, {Diagonal::top_left, 5, 3})},
      {shape(1, 2, 2, 40, 72, 32, 32, Mask::window(9, Diagonal::bottom_right))},
      {shape(2, 2, 2, 40, 64, 32, 32, {}), {1, 2, 40, 64}},
      {shape(2, 4, 2, 64, 64, 32, 32, causal), {2, 1, 64, 64}},
      {shape(2, 2, 2, 64, 64, 32, 32, {}), {2, 2, 64, 64}},
      {shape(1, 2, 2, 40, 40, 32, 32, causal_at_the_end), {1, 1, 40, 40}},
      {shape(3, 4, 2, 70, 90, 32, 32, {}), {}, {70, 33, 0}, {11, 90, 5}},
      {shape(2, 4, 2, 70, 90, 32, 32, causal), {}, {70, 9}, {90, 64}},
      {shape(2, 2, 2, 70, 66, 32, 32, causal_at_the_end), {}, {70, 9}, {5, 64}},
      {shape(2, 2, 2, 64, 64, 32, 32, causal), {1, 2, 64, 64}, {64, 9}, {5, 64}},
      {with_alibi(shape(1, 4, 4, 40, 40, 32, 32, causal))},
      {with_alibi(shape(1, 6, 3, 40, 64, 32, 32, Mask::window(20)))},
  };
}

}  // namespace troupe::test
