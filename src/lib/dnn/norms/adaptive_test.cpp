#include <troupe/lib/dnn.hpp>

#include <array>
#include <cmath>
#include <numeric>
#include <string>

#include "dnn_numbers.hpp"

namespace troupe::test {
namespace {

using dnn::Norm;

/// x, dy: batch, rows, columns; scale, bias: batch, columns.
struct AdaptiveProblem {
  std::size_t batch, rows, columns;
  std::vector<double> x, scale, bias, dy;

  [[nodiscard]] std::size_t weight(std::size_t i) const {
    return i / (rows * columns) * columns + i % columns;
  }
};

struct AdaptiveResults {
  std::vector<double> y, mean, inverse_deviation;
};
AdaptiveResults adaptive_norm_of(const AdaptiveProblem& problem) {
  const auto sets = problem.batch * problem.rows;
  AdaptiveResults made{problem.x, std::vector<double>(sets), std::vector<double>(sets)};
  const auto count = static_cast<double>(problem.columns);
  for (std::size_t i = 0; i < problem.x.size(); ++i)
    made.mean[i / problem.columns] += problem.x[i] / count;
  for (std::size_t i = 0; i < problem.x.size(); ++i) {
    const double apart = problem.x[i] - made.mean[i / problem.columns];
    made.inverse_deviation[i / problem.columns] += apart * apart / count;
  }
  for (auto& number : made.inverse_deviation) number = 1 / std::sqrt(number + 1e-5);
  for (std::size_t i = 0; i < problem.x.size(); ++i) {
    const auto set = i / problem.columns, weight = problem.weight(i);
    made.y[i] =
        (problem.x[i] - made.mean[set]) * made.inverse_deviation[set] * problem.scale[weight] +
        problem.bias[weight];
  }
  return made;
}

/// The derivatives of the sum of dy * y by the numbers of one of the problem's arrays.
std::vector<double> adaptive_derivatives(AdaptiveProblem problem,
                                         std::vector<double> AdaptiveProblem::*by) {
  return central_differences(problem.*by, [&] {
    const auto y = adaptive_norm_of(problem).y;
    return std::inner_product(y.begin(), y.end(), problem.dy.begin(), 0.0);
  });
}

/// The tolerances of PyTorch's assert_close, for numbers as large as the largest of them.
template <class T>
void expect_close(const std::vector<T>& actual, const std::vector<double>& exact,
                  const std::string& what) {
  constexpr double kRelative = std::is_same_v<T, Half>       ? 1e-3
                               : std::is_same_v<T, BFloat16> ? 1.6e-2
                                                             : 1.3e-6;
  const auto found = difference(actual, exact);
  EXPECT_LE(found.largest, 1e-5 + kRelative * found.magnitude) << what;
}

template <class T>
class DnnAdaptiveNorm : public OfLayers<T> {};
using AdaptiveTypes = ::testing::Types<Half, BFloat16, float>;
TYPED_TEST_SUITE(DnnAdaptiveNorm, AdaptiveTypes);

TYPED_TEST(DnnAdaptiveNorm, IsThatOfTheDefinition) {
  using T = TypeParam;
  AdaptiveProblem problem{2, 5, 64, {}, {}, {}, {}};
  const std::int64_t elements = 2 * 5 * 64, weights = 2 * 64, sets = 2 * 5;
  problem.x = uniform<T>(elements, 1);
  problem.dy = uniform<T>(elements, 2);
  problem.scale = uniform<float>(weights, 3);
  problem.bias = uniform<float>(weights, 4);
  const auto exact = adaptive_norm_of(problem);
  const dnn::Layout rows{2, 5, 64, 1}, of_weights{2, 1, 64, 1}, of_sets{2, 5, 1, 1};
  const auto x_ref = put(narrowed<T>(problem.x)), dy_ref = put(narrowed<T>(problem.dy));
  const auto scale_ref = put(narrowed<float>(problem.scale));

  dnn::Graph graph;
  const auto x = graph.input(dtype_of<T>, rows), scale = graph.input(DType::f32, of_weights),
             bias = graph.input(DType::f32, of_weights);
  const auto made = dnn::norm(graph, Norm::adaptive, x, scale, bias, 1e-5f, dnn::Phase::training);
  graph.output(made.y, dtype_of<T>);
  graph.output(made.mean, DType::f32);
  graph.output(made.inverse_deviation, DType::f32);
  const auto y = device().template alloc<T>(elements);
  const auto mean = device().template alloc<float>(sets),
             inverse = device().template alloc<float>(sets);
  if (answered(dnn::on(device()).run(graph, {{x, x_ref},
                                             {scale, scale_ref},
                                             {bias, put(narrowed<float>(problem.bias))},
                                             {made.y, y},
                                             {made.mean, mean},
                                             {made.inverse_deviation, inverse}}),
               "adaptive norm")) {
    expect_close(device().download(y), exact.y, "y");
    expect_close(device().download(mean), exact.mean, "mean");
    expect_close(device().download(inverse), exact.inverse_deviation, "inverse_deviation");
  }

  dnn::Graph back;
  const auto dy = back.input(dtype_of<T>, rows), again = back.input(dtype_of<T>, rows);
  const auto scaled = back.input(DType::f32, of_weights);
  const auto means = back.input(DType::f32, of_sets), inverses = back.input(DType::f32, of_sets);
  const auto gradients =
      dnn::norm_backward(back, Norm::adaptive, dy, again, scaled, means, inverses);
  back.output(gradients.dx, dtype_of<T>);
  back.output(gradients.dscale, DType::f32);
  back.output(gradients.dbias, DType::f32);
  const auto dx = device().template alloc<T>(elements);
  const auto dscale = device().template alloc<float>(weights),
             dbias = device().template alloc<float>(weights);
  if (answered(
          dnn::on(device()).run(back, {{dy, dy_ref},
                                       {again, x_ref},
                                       {scaled, scale_ref},
                                       {means, put(narrowed<float>(exact.mean))},
                                       {inverses, put(narrowed<float>(exact.inverse_deviation))},
                                       {gradients.dx, dx},
                                       {gradients.dscale, dscale},
                                       {gradients.dbias, dbias}}),
          "gradients of an adaptive norm")) {
    expect_close(device().download(dx), adaptive_derivatives(problem, &AdaptiveProblem::x), "dx");
    expect_close(device().download(dscale), adaptive_derivatives(problem, &AdaptiveProblem::scale),
                 "dscale");
    expect_close(device().download(dbias), adaptive_derivatives(problem, &AdaptiveProblem::bias),
                 "dbias");
  }
}

/// Sums of small integers are exact, but for those in a type narrower than f32.
TYPED_TEST(DnnAdaptiveNorm, SumsOfChannelsAreExact) {
  using T = TypeParam;
  constexpr std::int64_t kBatch = 4, kChannels = 16, kSide = 20;
  const auto values = integers(kBatch * kSide * kSide * kChannels, 4, 5);
  dnn::Graph graph;
  const auto x = graph.input(dtype_of<T>, dnn::channels_last(kBatch, kChannels, {kSide, kSide}));
  const auto made = dnn::channel_sums(graph, x);
  graph.output(made.sum, DType::f32);
  graph.output(made.squares, DType::f32);
  const auto sum = device().template alloc<float>(kChannels),
             squares = device().template alloc<float>(kChannels);
  if (!answered(
          dnn::on(device()).run(
              graph, {{x, put(narrowed<T>(values))}, {made.sum, sum}, {made.squares, squares}}),
          "sums of channels")) {
    return;
  }
  std::vector<float> sums(kChannels), of_squares(kChannels);
  for (std::size_t i = 0; i < values.size(); ++i) {
    sums[i % kChannels] += static_cast<float>(values[i]);
    of_squares[i % kChannels] += static_cast<float>(values[i] * values[i]);
  }
  EXPECT_EQ(device().download(sum), sums);
  EXPECT_EQ(device().download(squares), of_squares);
}

TEST(DnnAdaptiveNormRefused, WhatCannotBe) {
  const auto x_ref = device().alloc<float>(64), y_ref = device().alloc<float>(64);
  const auto refused = [&](const std::string& why, const dnn::Layout& weights) {
    dnn::Graph graph;
    const auto x = graph.input(DType::f32, {2, 4, 8, 1}), scale = graph.input(DType::f32, weights);
    const auto made =
        dnn::norm(graph, Norm::adaptive, x, scale, scale, 1e-5f, dnn::Phase::inference);
    graph.output(made.y, DType::f32);
    const Result<void> result =
        dnn::on(device()).run(graph, {{x, x_ref}, {scale, x_ref}, {made.y, y_ref}}).wait();
    ASSERT_EQ(result.code(), Errc::invalid) << why;
    EXPECT_NE(result.error().message.find(why), std::string::npos) << result.error().message;
    (void)device().take_error();
  };
  refused("the first extent of x", {1, 1, 8, 1});
  refused("neither that of x nor 1", {2, 1, 4, 1});
  dnn::Graph graph;
  const auto x = graph.input(DType::f32, {64});
  const auto made = dnn::channel_sums(graph, x);
  graph.output(made.sum, DType::f32);
  graph.output(made.squares, DType::f32);
  const Result<void> result =
      dnn::on(device()).run(graph, {{x, x_ref}, {made.sum, y_ref}, {made.squares, y_ref}}).wait();
  ASSERT_EQ(result.code(), Errc::invalid);
  EXPECT_NE(result.error().message.find("less than 2 dimensions"), std::string::npos)
      << result.error().message;
  (void)device().take_error();
}

}  // namespace
}  // namespace troupe::test
