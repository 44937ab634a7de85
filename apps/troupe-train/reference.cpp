#include "reference.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace troupe::train {
namespace {

using Numbers = std::vector<double>;

std::size_t index(std::int64_t i) {
  return static_cast<std::size_t>(i);
}

/// Rows of numbers, one for each token.
struct Rows {
  Rows() = default;
  Rows(std::int64_t rows, std::int64_t its_columns)
      : columns(its_columns), x(index(rows * columns)) {}
  double* operator[](std::int64_t row) { return x.data() + row * columns; }
  const double* operator[](std::int64_t row) const { return x.data() + row * columns; }
  [[nodiscard]] std::int64_t rows() const { return std::ssize(x) / columns; }
  std::int64_t columns = 1;
  Numbers x;
};

constexpr double kEpsilon = 1e-5;
const double kSlope = std::sqrt(2 / std::numbers::pi);

double gelu(double x) {
  return x / 2 * (1 + std::tanh(kSlope * (x + 0.044715 * x * x * x)));
}
double gelu_slope(double x) {
  const double t = std::tanh(kSlope * (x + 0.044715 * x * x * x));
  return (1 + t) / 2 + x / 2 * (1 - t * t) * kSlope * (1 + 3 * 0.044715 * x * x);
}

/// Parameters and, in a backward pass, where their gradients are added up.
struct Pass {
  const HostProblem& problem;
  double* gradients = nullptr;

  [[nodiscard]] const double* at(const Place& place) const {
    return problem.parameters.data() + place.first;
  }
  [[nodiscard]] double* gradient(const Place& place) const { return gradients + place.first; }

  [[nodiscard]] Rows linear(const Rows& x, const Place& weights, const Place& bias,
                            std::int64_t out) const {
    Rows y(x.rows(), out);
    for (std::int64_t n = 0; n < x.rows(); ++n)
      for (std::int64_t o = 0; o < out; ++o) {
        double sum = bias.length > 0 ? at(bias)[o] : 0;
        for (std::int64_t i = 0; i < x.columns; ++i)
          sum += at(weights)[o * x.columns + i] * x[n][i];
        y[n][o] = sum;
      }
    return y;
  }
  /// The gradient of x.
  [[nodiscard]] Rows linear_backward(const Rows& x, const Rows& d_y, const Place& weights,
                                     const Place& bias) const {
    Rows d_x(x.rows(), x.columns);
    for (std::int64_t n = 0; n < x.rows(); ++n)
      for (std::int64_t o = 0; o < d_y.columns; ++o) {
        const double d = d_y[n][o];
        if (bias.length > 0) gradient(bias)[o] += d;
        for (std::int64_t i = 0; i < x.columns; ++i) {
          gradient(weights)[o * x.columns + i] += d * x[n][i];
          d_x[n][i] += d * at(weights)[o * x.columns + i];
        }
      }
    return d_x;
  }

  struct Moments {
    double mean = 0, inverse = 0;
  };
  static Moments moments_of(const double* x, std::int64_t count) {
    Moments found;
    double variance = 0;
    for (std::int64_t i = 0; i < count; ++i) found.mean += x[i] / static_cast<double>(count);
    for (std::int64_t i = 0; i < count; ++i)
      variance += (x[i] - found.mean) * (x[i] - found.mean) / static_cast<double>(count);
    found.inverse = 1 / std::sqrt(variance + kEpsilon);
    return found;
  }
  [[nodiscard]] Rows norm(const Rows& x, const Place& scale, const Place& bias) const {
    Rows y(x.rows(), x.columns);
    for (std::int64_t n = 0; n < x.rows(); ++n) {
      const auto of = moments_of(x[n], x.columns);
      for (std::int64_t i = 0; i < x.columns; ++i)
        y[n][i] = (x[n][i] - of.mean) * of.inverse * at(scale)[i] + at(bias)[i];
    }
    return y;
  }
  /// Adds the gradient of x to d_x.
  void norm_backward(const Rows& x, const Rows& d_y, const Place& scale, const Place& bias,
                     Rows& d_x) const {
    const auto count = static_cast<double>(x.columns);
    for (std::int64_t n = 0; n < x.rows(); ++n) {
      const auto of = moments_of(x[n], x.columns);
      double sum = 0, sum_of_products = 0;
      for (std::int64_t i = 0; i < x.columns; ++i) {
        const double normal = (x[n][i] - of.mean) * of.inverse;
        gradient(scale)[i] += d_y[n][i] * normal;
        gradient(bias)[i] += d_y[n][i];
        sum += d_y[n][i] * at(scale)[i];
        sum_of_products += d_y[n][i] * at(scale)[i] * normal;
      }
      for (std::int64_t i = 0; i < x.columns; ++i) {
        const double normal = (x[n][i] - of.mean) * of.inverse;
        d_x[n][i] += of.inverse *
                     (d_y[n][i] * at(scale)[i] - sum / count - normal * sum_of_products / count);
      }
    }
  }
};

/// Attention of one query: calls `each` with the key's token and its weight.
template <class F>
void weigh(const Shape& shape, const Rows& qkv, std::int64_t query, std::int64_t head, F each) {
  const auto c = shape.channels, d = shape.head_size(), first = query - query % shape.sequence;
  Numbers weight;
  for (std::int64_t key = first; key <= query; ++key) {
    double score = 0;
    for (std::int64_t i = head * d; i < (head + 1) * d; ++i)
      score += qkv[query][i] * qkv[key][c + i];
    weight.push_back(score / std::sqrt(static_cast<double>(d)));
  }
  const double largest = *std::max_element(weight.begin(), weight.end());
  double sum = 0;
  for (auto& one : weight) sum += one = std::exp(one - largest);
  for (std::int64_t key = first; key <= query; ++key) each(key, weight[index(key - first)] / sum);
}

Rows attention(const Shape& shape, const Rows& qkv) {
  const auto c = shape.channels, d = shape.head_size();
  Rows out(qkv.rows(), c);
  for (std::int64_t query = 0; query < qkv.rows(); ++query)
    for (std::int64_t head = 0; head < shape.heads; ++head)
      weigh(shape, qkv, query, head, [&](std::int64_t key, double weight) {
        for (std::int64_t i = head * d; i < (head + 1) * d; ++i)
          out[query][i] += weight * qkv[key][2 * c + i];
      });
  return out;
}

Rows attention_backward(const Shape& shape, const Rows& qkv, const Rows& d_out) {
  const auto c = shape.channels, d = shape.head_size();
  const double scale = 1 / std::sqrt(static_cast<double>(d));
  Rows d_qkv(qkv.rows(), 3 * c);
  for (std::int64_t query = 0; query < qkv.rows(); ++query)
    for (std::int64_t head = 0; head < shape.heads; ++head) {
      const auto d_weight = [&](std::int64_t key) {
        double sum = 0;
        for (std::int64_t i = head * d; i < (head + 1) * d; ++i)
          sum += d_out[query][i] * qkv[key][2 * c + i];
        return sum;
      };
      double mean = 0;
      weigh(shape, qkv, query, head,
            [&](std::int64_t key, double weight) { mean += weight * d_weight(key); });
      weigh(shape, qkv, query, head, [&](std::int64_t key, double weight) {
        const double d_score = scale * weight * (d_weight(key) - mean);
        for (std::int64_t i = head * d; i < (head + 1) * d; ++i) {
          d_qkv[query][i] += d_score * qkv[key][c + i];
          d_qkv[key][c + i] += d_score * qkv[query][i];
          d_qkv[key][2 * c + i] += weight * d_out[query][i];
        }
      });
    }
  return d_qkv;
}

/// What the forward pass of a layer leaves.
struct Layer {
  Rows input, norm1, qkv, attention, between, norm2, before_gelu, hidden;
};

void add(Rows& to, const Rows& x) {
  std::transform(to.x.begin(), to.x.end(), x.x.begin(), to.x.begin(), std::plus<>());
}

Rows forward(const Pass& pass, const LayerPlaces& of, Layer& a) {
  const auto& shape = pass.problem.shape;
  const auto c = shape.channels;
  a.norm1 = pass.norm(a.input, of.norm1_scale, of.norm1_bias);
  a.qkv = pass.linear(a.norm1, of.qkv, of.qkv_bias, 3 * c);
  a.attention = attention(shape, a.qkv);
  a.between = pass.linear(a.attention, of.projection, of.projection_bias, c);
  add(a.between, a.input);
  a.norm2 = pass.norm(a.between, of.norm2_scale, of.norm2_bias);
  a.before_gelu = pass.linear(a.norm2, of.rise, of.rise_bias, 4 * c);
  a.hidden = a.before_gelu;
  std::transform(a.hidden.x.begin(), a.hidden.x.end(), a.hidden.x.begin(), gelu);
  auto result = pass.linear(a.hidden, of.fall, of.fall_bias, c);
  add(result, a.between);
  return result;
}

/// d_x: of the layer's result, and then of its input.
void backward(const Pass& pass, const LayerPlaces& of, const Layer& a, Rows& d_x) {
  auto d_hidden = pass.linear_backward(a.hidden, d_x, of.fall, of.fall_bias);
  for (std::size_t i = 0; i < d_hidden.x.size(); ++i)
    d_hidden.x[i] *= gelu_slope(a.before_gelu.x[i]);
  const auto d_norm2 = pass.linear_backward(a.norm2, d_hidden, of.rise, of.rise_bias);
  pass.norm_backward(a.between, d_norm2, of.norm2_scale, of.norm2_bias, d_x);
  const auto d_attention =
      pass.linear_backward(a.attention, d_x, of.projection, of.projection_bias);
  const auto d_qkv = attention_backward(pass.problem.shape, a.qkv, d_attention);
  const auto d_norm1 = pass.linear_backward(a.norm1, d_qkv, of.qkv, of.qkv_bias);
  pass.norm_backward(a.input, d_norm1, of.norm1_scale, of.norm1_bias, d_x);
}

/// Of logits, and in their place their gradients.
double cross_entropy(const std::vector<std::int32_t>& targets, Rows& logits) {
  double loss = 0;
  const auto count = static_cast<double>(logits.rows());
  for (std::int64_t n = 0; n < logits.rows(); ++n) {
    double* const row = logits[n];
    const double largest = *std::max_element(row, row + logits.columns);
    double sum = 0;
    for (std::int64_t v = 0; v < logits.columns; ++v) sum += std::exp(row[v] - largest);
    const auto target = targets[index(n)];
    loss += (std::log(sum) + largest - row[target]) / count;
    for (std::int64_t v = 0; v < logits.columns; ++v)
      row[v] = (std::exp(row[v] - largest) / sum - (v == target ? 1 : 0)) / count;
  }
  return loss;
}

double compute(const HostProblem& problem, std::vector<double>* gradients) {
  const auto& shape = problem.shape;
  const Parameters places(shape);
  const Pass pass{problem, gradients != nullptr ? gradients->data() : nullptr};
  const auto c = shape.channels, tokens = std::ssize(problem.tokens);
  Rows x(tokens, c);
  for (std::int64_t n = 0; n < tokens; ++n)
    for (std::int64_t i = 0; i < c; ++i)
      x[n][i] = pass.at(places.token_embedding)[problem.tokens[index(n)] * c + i] +
                pass.at(places.position_embedding)[n % shape.sequence * c + i];
  std::vector<Layer> layers(places.layers.size());
  for (std::size_t l = 0; l < layers.size(); ++l) {
    layers[l].input = std::move(x);
    x = forward(pass, places.layers[l], layers[l]);
  }
  const auto normed = pass.norm(x, places.final_scale, places.final_bias);
  auto logits = pass.linear(normed, places.token_embedding, {}, shape.vocabulary);
  const double loss = cross_entropy(problem.targets, logits);
  if (gradients == nullptr) return loss;
  const auto d_normed = pass.linear_backward(normed, logits, places.token_embedding, {});
  Rows d_x(tokens, c);
  pass.norm_backward(x, d_normed, places.final_scale, places.final_bias, d_x);
  for (std::size_t l = layers.size(); l-- > 0;) backward(pass, places.layers[l], layers[l], d_x);
  for (std::int64_t n = 0; n < tokens; ++n)
    for (std::int64_t i = 0; i < c; ++i) {
      pass.gradient(places.token_embedding)[problem.tokens[index(n)] * c + i] += d_x[n][i];
      pass.gradient(places.position_embedding)[n % shape.sequence * c + i] += d_x[n][i];
    }
  return loss;
}

}  // namespace

double host_loss(const HostProblem& problem) {
  return compute(problem, nullptr);
}
double host_loss(const HostProblem& problem, std::vector<double>& gradients) {
  gradients.assign(problem.parameters.size(), 0);
  return compute(problem, &gradients);
}

}  // namespace troupe::train
