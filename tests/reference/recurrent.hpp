#pragma once

#include <algorithm>
#include <cmath>
#include <functional>
#include <utility>
#include <vector>

#include <troupe/lib/dnn/rnn.hpp>

#include "reference/differences.hpp"

/// Recurrent networks in f64, by the formulas of PyTorch's documentation, one sequence after the
/// other: what tests compare with.
namespace troupe::test {

inline constexpr dnn::RnnCell kRnnCells[] = {dnn::RnnCell::relu, dnn::RnnCell::tanh,
                                             dnn::RnnCell::lstm, dnn::RnnCell::gru};

struct RnnNumbers {
  std::vector<double> x, w, initial;  ///< no `initial`: zeros
};
struct RnnResults {
  std::vector<double> y, final;
};

/// The reference computes in f64. A plain implementation rounds what each step makes, and adds
/// products in another type.
template <class Sum = double, class Round = std::identity>
class RnnOracle {
 public:
  RnnOracle(const RnnOptions& options, const RnnNumbers& numbers, Round round = {})
      : options_(options), shape_(options.shape()), numbers_(numbers), round_(std::move(round)) {}

  RnnResults compute() {
    results_.y.assign(at(shape_.y_elements()), 0);
    results_.final.assign(at(shape_.state_elements()), 0);
    for (std::int64_t b = 0; b < shape_.batch; ++b) compute_sequence(b);
    return results_;
  }

 private:
  using Vectors = std::vector<std::vector<double>>;
  static std::size_t at(std::int64_t i) { return static_cast<std::size_t>(i); }
  double rounded(double x) const { return round_(x); }
  static double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

  void compute_sequence(std::int64_t b) {
    const auto steps = options_.lengths.empty() ? shape_.time : options_.lengths[at(b)];
    Vectors vectors;
    for (std::int64_t t = 0; t < steps; ++t) {
      const auto begin = numbers_.x.begin() + (b * shape_.time + t) * shape_.input;
      vectors.emplace_back(begin, begin + shape_.input);
    }
    for (std::uint32_t layer = 0; layer < shape_.layers; ++layer) {
      Vectors made(at(steps));
      for (std::uint32_t direction = 0; direction < shape_.directions; ++direction)
        compute_layer({layer, direction}, b, vectors, made);
      vectors = std::move(made);
    }
    const auto elements = shape_.directions * shape_.hidden;
    for (std::int64_t t = 0; t < steps; ++t)
      std::copy(vectors[at(t)].begin(), vectors[at(t)].end(),
                results_.y.begin() + (b * shape_.time + t) * elements);
  }

  void compute_layer(const dnn::RnnWeight& which, std::int64_t b, const Vectors& vectors,
                     Vectors& made) {
    const auto hidden = shape_.hidden;
    const auto steps = std::ssize(vectors);
    const auto place =
        at(((which.layer * shape_.directions + which.direction) * shape_.batch + b) * hidden);
    std::vector<double> h(at(hidden)), c(at(hidden));
    if (!numbers_.initial.empty()) {
      for (std::size_t j = 0; j < h.size(); ++j) {
        h[j] = numbers_.initial[place + j];
        if (shape_.cell == dnn::RnnCell::lstm)
          c[j] = numbers_.initial[at(shape_.h_elements()) + place + j];
      }
    }
    for (std::int64_t i = 0; i < steps; ++i) {
      const auto t = at(which.direction == 0 ? i : steps - 1 - i);
      const auto before = h;
      for (std::int64_t j = 0; j < hidden; ++j)
        compute_element(which, j, vectors[t], before, h[at(j)], c[at(j)]);
      made[t].insert(made[t].end(), h.begin(), h.end());
    }
    for (std::size_t j = 0; j < h.size(); ++j) {
      results_.final[place + j] = h[j];
      if (shape_.cell == dnn::RnnCell::lstm)
        results_.final[at(shape_.h_elements()) + place + j] = c[j];
    }
  }

  /// A row of W or R of a gate times a vector, and the bias.
  double sum(dnn::RnnWeight which, std::int64_t gate, bool recurrent, std::int64_t row,
             const std::vector<double>& vector) {
    which.gate = gate, which.recurrent = recurrent;
    const auto matrix = dnn::rnn_matrix_place(shape_, which);
    Sum total = 0;
    for (std::size_t k = 0; k < vector.size(); ++k)
      total +=
          static_cast<Sum>(numbers_.w[at(matrix.offset + row * matrix.columns) + k] * vector[k]);
    if (!options_.bias) return rounded(total);
    return rounded(total + numbers_.w[at(dnn::rnn_bias_place(shape_, which).offset + row)]);
  }

  void compute_element(const dnn::RnnWeight& which, std::int64_t j, const std::vector<double>& x,
                       const std::vector<double>& before, double& h, double& c) {
    const auto of_x = [&](std::int64_t gate) { return sum(which, gate, false, j, x); };
    const auto of_h = [&](std::int64_t gate) { return sum(which, gate, true, j, before); };
    const auto both = [&](std::int64_t gate) { return rounded(of_x(gate) + of_h(gate)); };
    switch (shape_.cell) {
      case dnn::RnnCell::relu: h = std::max(both(0), 0.0); break;
      case dnn::RnnCell::tanh: h = rounded(std::tanh(both(0))); break;
      case dnn::RnnCell::lstm: {
        const auto i = rounded(sigmoid(both(0))), f = rounded(sigmoid(both(1)));
        const auto g = rounded(std::tanh(both(2))), o = rounded(sigmoid(both(3)));
        c = rounded(rounded(f * c) + rounded(i * g));
        h = rounded(o * rounded(std::tanh(c)));
        break;
      }
      case dnn::RnnCell::gru: {
        const auto r = rounded(sigmoid(both(0))), z = rounded(sigmoid(both(1)));
        const auto n = rounded(std::tanh(rounded(of_x(2) + rounded(r * of_h(2)))));
        h = rounded(rounded(rounded(1 - z) * n) + rounded(z * before[at(j)]));
        break;
      }
    }
  }

  RnnOptions options_;
  dnn::RnnShape shape_;
  const RnnNumbers& numbers_;
  Round round_;
  RnnResults results_;
};

inline RnnResults exact_rnn(const RnnOptions& options, const RnnNumbers& numbers) {
  return RnnOracle(options, numbers).compute();
}

/// Gradients of the sum of dy y and dfinal final, by central differences of the exact results.
class RnnDifferences {
 public:
  RnnDifferences(const RnnOptions& options, const RnnNumbers& numbers, std::vector<double> dy,
                 std::vector<double> dfinal)
      : options_(options), numbers_(numbers), dy_(std::move(dy)), dfinal_(std::move(dfinal)) {}

  /// With respect to one of the numbers' arrays.
  std::vector<double> of(std::vector<double> RnnNumbers::*array) {
    return central_differences(
        numbers_.*array, [this] { return total(); }, 1e-5);
  }

 private:
  [[nodiscard]] double total() const {
    const auto results = exact_rnn(options_, numbers_);
    double sum = 0;
    for (std::size_t i = 0; i < dy_.size(); ++i) sum += dy_[i] * results.y[i];
    for (std::size_t i = 0; i < dfinal_.size(); ++i) sum += dfinal_[i] * results.final[i];
    return sum;
  }
  RnnOptions options_;
  RnnNumbers numbers_;
  std::vector<double> dy_, dfinal_;
};

}  // namespace troupe::test
