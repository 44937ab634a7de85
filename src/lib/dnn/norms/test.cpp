#include <troupe/lib/dnn.hpp>

#include <cmath>
#include <numeric>
#include <string>
#include <vector>

#include "dnn_numbers.hpp"

namespace troupe::test {
namespace {

using dnn::ChannelsShape;
using dnn::Norm;
using Numbers = std::vector<double>;

/// What a norm is computed from: for each element of x, in memory's order, which set of elements it
/// is normalised with, and which numbers of scale and bias are its own.
struct NormProblem {
  Norm which{};
  std::vector<std::size_t> set = {}, weight = {};
  std::size_t sets = 0, weights = 0;
  double epsilon = 1e-5;
  Numbers x = {}, scale = {}, bias = {}, dy = {};

  [[nodiscard]] std::int64_t elements() const { return std::ssize(set); }
};

template <class T, class W>
void fill(NormProblem& problem) {
  problem.x = uniform<T>(problem.elements(), 21);
  problem.dy = uniform<T>(problem.elements(), 22);
  problem.scale = uniform<W>(static_cast<std::int64_t>(problem.weights), 23);
  problem.bias = uniform<W>(static_cast<std::int64_t>(problem.weights), 24);
  // Each set has a mean and a deviation of its own.
  for (std::size_t i = 0; i < problem.x.size(); ++i) {
    const double set = static_cast<double>(problem.set[i] % 5);
    problem.x[i] = to_float(rounded<T>(problem.x[i] * (1 + set / 2) + set / 4));
  }
}

template <class T, class W>
NormProblem rows_problem(Norm which, std::size_t rows, std::size_t columns) {
  NormProblem problem{.which = which, .sets = rows, .weights = columns};
  for (std::size_t i = 0; i < rows * columns; ++i) {
    problem.set.push_back(i / columns);
    problem.weight.push_back(i % columns);
  }
  fill<T, W>(problem);
  return problem;
}

template <class T, class W>
NormProblem channels_problem(Norm which, const ChannelsShape& shape) {
  const auto channels = static_cast<std::size_t>(shape.channels),
             batch = static_cast<std::size_t>(shape.batch);
  std::size_t places = 1;
  for (const auto extent : shape.spatial) places *= static_cast<std::size_t>(extent);
  NormProblem problem{.which = which,
                      .sets = which == Norm::batch ? channels : batch * channels,
                      .weights = channels};
  for (std::size_t i = 0; i < batch * places * channels; ++i) {
    const auto channel = i % channels, element = i / (places * channels);
    problem.set.push_back(which == Norm::batch ? channel : element * channels + channel);
    problem.weight.push_back(channel);
  }
  fill<T, W>(problem);
  return problem;
}

struct NormResults {
  Numbers y, mean, variance, inverse_deviation;
};
/// The formulas of PyTorch's documentation.
NormResults norm_of(const NormProblem& problem) {
  NormResults results{Numbers(problem.x.size()), Numbers(problem.sets), Numbers(problem.sets),
                      Numbers(problem.sets)};
  const auto count = static_cast<double>(problem.x.size() / problem.sets);
  if (problem.which != Norm::rms) {
    for (std::size_t i = 0; i < problem.x.size(); ++i)
      results.mean[problem.set[i]] += problem.x[i] / count;
  }
  for (std::size_t i = 0; i < problem.x.size(); ++i) {
    const double apart = problem.x[i] - results.mean[problem.set[i]];
    results.variance[problem.set[i]] += apart * apart / count;
  }
  for (std::size_t i = 0; i < problem.sets; ++i)
    results.inverse_deviation[i] = 1 / std::sqrt(results.variance[i] + problem.epsilon);
  for (std::size_t i = 0; i < problem.x.size(); ++i) {
    const auto set = problem.set[i], weight = problem.weight[i];
    results.y[i] = (problem.x[i] - results.mean[set]) * results.inverse_deviation[set] *
                       problem.scale[weight] +
                   problem.bias[weight];
  }
  return results;
}

/// The derivatives of the sum of dy * y by the numbers of one of the problem's arrays.
Numbers derivatives(NormProblem problem, Numbers NormProblem::*by) {
  return central_differences(problem.*by, [&] {
    const auto y = norm_of(problem).y;
    return std::inner_product(y.begin(), y.end(), problem.dy.begin(), 0.0);
  });
}

/// Layer, RMS, instance and batch norms and their gradients.
template <class T>
class DnnNorm : public OfLayers<T> {
 protected:
  static GpuRef<T> room(const NormProblem& problem) { return put_sevens<T>(problem.elements()); }
  template <class W>
  static GpuRef<W> weights(const NormProblem& problem) {
    return put_sevens<W>(static_cast<std::int64_t>(problem.weights));
  }
  static NormStatistics statistics(const NormProblem& problem) {
    const auto sets = static_cast<std::int64_t>(problem.sets);
    return {put_sevens<float>(sets), put_sevens<float>(sets)};
  }
  static void expect_done(const Future<void>& call) {
    const Result<void> done = call.wait();
    ASSERT_TRUE(done.ok()) << done.error().message;
  }

  static void expect_results(const NormProblem& problem, const GpuRef<T>& y,
                             const NormStatistics& statistics) {
    const auto exact = norm_of(problem);
    EXPECT_TRUE(close_to(device().download(y), exact.y)) << "y";
    if (problem.which != Norm::rms) {
      EXPECT_TRUE(close_to(device().download(statistics.mean), exact.mean)) << "mean";
    }
    EXPECT_TRUE(close_to(device().download(statistics.inverse_deviation), exact.inverse_deviation));
  }
  template <class W>
  static void expect_gradients(const NormProblem& problem, const GpuRef<T>& dx,
                               const GpuRef<W>& dscale, const GpuRef<W>& dbias) {
    EXPECT_TRUE(close_to(device().download(dx), derivatives(problem, &NormProblem::x))) << "dx";
    EXPECT_TRUE(close_to(device().download(dscale), derivatives(problem, &NormProblem::scale)));
    if (dbias.length() > 0) {
      EXPECT_TRUE(close_to(device().download(dbias), derivatives(problem, &NormProblem::bias)));
    }
  }
  /// The statistics that the gradient is given, of the exact ones.
  static NormStatistics exact_statistics(const NormProblem& problem) {
    const auto exact = norm_of(problem);
    return {put(narrowed<float>(exact.mean)), put(narrowed<float>(exact.inverse_deviation))};
  }

  template <class W>
  static void layer(std::size_t rows, std::size_t columns) {
    const auto problem = rows_problem<T, W>(Norm::layer, rows, columns);
    const auto x = put(narrowed<T>(problem.x)), dy = put(narrowed<T>(problem.dy));
    const auto scale = put(narrowed<W>(problem.scale)), bias = put(narrowed<W>(problem.bias));
    const auto y = room(problem), alone = room(problem), dx = room(problem);
    const auto made = statistics(problem);
    auto on_device = dnn::on(device());
    ASSERT_NO_FATAL_FAILURE(
        expect_done(on_device.layer_norm(x, scale, bias, y, {.statistics = made})));
    expect_results(problem, y, made);
    ASSERT_NO_FATAL_FAILURE(expect_done(on_device.layer_norm(x, scale, bias, alone)));
    EXPECT_TRUE(close_to(device().download(alone), norm_of(problem).y)) << "inference";
    const auto dscale = weights<W>(problem), dbias = weights<W>(problem);
    ASSERT_NO_FATAL_FAILURE(expect_done(
        on_device.layer_norm_backward(dy, x, scale, exact_statistics(problem), dx, dscale, dbias)));
    expect_gradients(problem, dx, dscale, dbias);
  }

  template <class W>
  static void rms(bool with_bias, std::size_t rows, std::size_t columns) {
    auto problem = rows_problem<T, W>(Norm::rms, rows, columns);
    if (!with_bias) std::fill(problem.bias.begin(), problem.bias.end(), 0.0);
    const auto x = put(narrowed<T>(problem.x)), dy = put(narrowed<T>(problem.dy));
    const auto scale = put(narrowed<W>(problem.scale)), bias = put(narrowed<W>(problem.bias));
    const auto y = room(problem), alone = room(problem), dx = room(problem);
    const auto made = statistics(problem);
    const RmsNormOptions training{.inverse_deviation = made.inverse_deviation};
    auto on_device = dnn::on(device());
    ASSERT_NO_FATAL_FAILURE(expect_done(with_bias ? on_device.rms_norm(x, scale, bias, y, training)
                                                  : on_device.rms_norm(x, scale, y, training)));
    expect_results(problem, y, made);
    ASSERT_NO_FATAL_FAILURE(expect_done(with_bias ? on_device.rms_norm(x, scale, bias, alone)
                                                  : on_device.rms_norm(x, scale, alone)));
    EXPECT_TRUE(close_to(device().download(alone), norm_of(problem).y)) << "inference";
    const auto dscale = weights<W>(problem);
    const auto dbias = with_bias ? weights<W>(problem) : GpuRef<W>();
    const auto inverse = exact_statistics(problem).inverse_deviation;
    ASSERT_NO_FATAL_FAILURE(expect_done(
        with_bias ? on_device.rms_norm_backward(dy, x, scale, inverse, dx, dscale, dbias)
                  : on_device.rms_norm_backward(dy, x, scale, inverse, dx, dscale)));
    expect_gradients(problem, dx, dscale, dbias);
  }

  template <class W>
  static void instance(const ChannelsShape& shape) {
    const auto problem = channels_problem<T, W>(Norm::instance, shape);
    const auto x = put(narrowed<T>(problem.x)), dy = put(narrowed<T>(problem.dy));
    const auto scale = put(narrowed<W>(problem.scale)), bias = put(narrowed<W>(problem.bias));
    const auto y = room(problem), alone = room(problem), dx = room(problem);
    const auto made = statistics(problem);
    auto on_device = dnn::on(device());
    ASSERT_NO_FATAL_FAILURE(
        expect_done(on_device.instance_norm(x, scale, bias, y, shape, {.statistics = made})));
    expect_results(problem, y, made);
    ASSERT_NO_FATAL_FAILURE(expect_done(on_device.instance_norm(x, scale, bias, alone, shape)));
    EXPECT_TRUE(close_to(device().download(alone), norm_of(problem).y)) << "inference";
    const auto dscale = weights<W>(problem), dbias = weights<W>(problem);
    ASSERT_NO_FATAL_FAILURE(expect_done(on_device.instance_norm_backward(
        dy, x, scale, exact_statistics(problem), dx, dscale, dbias, shape)));
    expect_gradients(problem, dx, dscale, dbias);
  }

  static void group(const ChannelsShape& shape, std::int64_t groups) {
    auto problem = channels_problem<T, float>(Norm::instance, shape);
    const auto channels = problem.weights, each = channels / static_cast<std::size_t>(groups);
    for (auto& set : problem.set) set = set / channels * (channels / each) + set % channels / each;
    problem.sets /= each;
    fill<T, float>(problem);
    const auto x = put(narrowed<T>(problem.x)), dy = put(narrowed<T>(problem.dy));
    const auto scale = put(narrowed<float>(problem.scale));
    const auto bias = put(narrowed<float>(problem.bias));
    const auto y = room(problem), dx = room(problem);
    const auto made = statistics(problem);
    const auto dscale = weights<float>(problem), dbias = weights<float>(problem);
    auto on_device = dnn::on(device());
    ASSERT_NO_FATAL_FAILURE(expect_done(
        on_device.group_norm(x, scale, bias, y, shape, {.groups = groups, .statistics = made})));
    expect_results(problem, y, made);
    ASSERT_NO_FATAL_FAILURE(expect_done(on_device.group_norm_backward(
        dy, x, scale, exact_statistics(problem), dx, dscale, dbias, shape, groups)));
    expect_gradients(problem, dx, dscale, dbias);
  }

  static void batch(const ChannelsShape& shape) {
    const auto problem = channels_problem<T, float>(Norm::batch, shape);
    const auto x = put(narrowed<T>(problem.x)), dy = put(narrowed<T>(problem.dy));
    const auto scale = put(narrowed<float>(problem.scale));
    const auto bias = put(narrowed<float>(problem.bias));
    const auto y = room(problem), alone = room(problem), dx = room(problem);
    const auto made = statistics(problem);
    auto on_device = dnn::on(device());
    ASSERT_NO_FATAL_FAILURE(expect_done(on_device.batch_norm(x, scale, bias, alone, made, shape)));
    EXPECT_TRUE(close_to(device().download(alone), norm_of(problem).y)) << "without averages";

    const auto count = static_cast<std::int64_t>(problem.weights);
    const auto means = uniform<float>(count, 25);
    auto variances = uniform<float>(count, 26);
    for (auto& variance : variances) variance = 1 + std::abs(variance);
    const auto next = statistics(problem);
    const RunningStatistics running{put(narrowed<float>(means)), put(narrowed<float>(variances)),
                                    next.mean, next.inverse_deviation, 0.25f};
    ASSERT_NO_FATAL_FAILURE(
        expect_done(on_device.batch_norm(x, scale, bias, y, made, shape, {.running = running})));
    expect_results(problem, y, made);
    const auto exact = norm_of(problem);
    const auto set = static_cast<double>(problem.x.size() / problem.sets);
    Numbers next_means, next_variances;
    for (std::size_t i = 0; i < problem.sets; ++i) {
      next_means.push_back(0.75 * means[i] + 0.25 * exact.mean[i]);
      next_variances.push_back(0.75 * variances[i] + 0.25 * exact.variance[i] * set / (set - 1));
    }
    EXPECT_TRUE(close_to(device().download(next.mean), next_means));
    EXPECT_TRUE(close_to(device().download(next.inverse_deviation), next_variances));

    const auto dscale = weights<float>(problem), dbias = weights<float>(problem);
    ASSERT_NO_FATAL_FAILURE(expect_done(on_device.batch_norm_backward(
        dy, x, scale, exact_statistics(problem), dx, dscale, dbias, shape)));
    expect_gradients(problem, dx, dscale, dbias);
  }

  static void batch_inference(const ChannelsShape& shape) {
    const auto problem = channels_problem<T, float>(Norm::batch, shape);
    const auto count = static_cast<std::int64_t>(problem.weights);
    const auto means = uniform<float>(count, 27);
    auto variances = uniform<float>(count, 28);
    for (auto& variance : variances) variance = 1 + std::abs(variance);
    const auto y = room(problem);
    ASSERT_NO_FATAL_FAILURE(expect_done(dnn::on(device()).batch_norm_inference(
        put(narrowed<T>(problem.x)), put(narrowed<float>(means)), put(narrowed<float>(variances)),
        put(narrowed<float>(problem.scale)), put(narrowed<float>(problem.bias)), y, shape)));
    Numbers exact;
    for (std::size_t i = 0; i < problem.x.size(); ++i) {
      const auto channel = problem.weight[i];
      exact.push_back((problem.x[i] - means[channel]) /
                          std::sqrt(variances[channel] + problem.epsilon) * problem.scale[channel] +
                      problem.bias[channel]);
    }
    EXPECT_TRUE(close_to(device().download(y), exact));
  }
};
using NormTypes = ::testing::Types<Half, BFloat16, float>;
TYPED_TEST_SUITE(DnnNorm, NormTypes);

TYPED_TEST(DnnNorm, LayerNormAndItsGradients) {
  TestFixture::template layer<float>(8, 64);
}
TYPED_TEST(DnnNorm, LayerNormWithWeightsOfTheTypeOfX) {
  TestFixture::template layer<TypeParam>(12, 32);
}
TYPED_TEST(DnnNorm, RmsNormAndItsGradients) {
  TestFixture::template rms<float>(false, 8, 64);
}
TYPED_TEST(DnnNorm, RmsNormWithBias) {
  TestFixture::template rms<float>(true, 8, 64);
}
TYPED_TEST(DnnNorm, RmsNormWithWeightsOfTheTypeOfX) {
  TestFixture::template rms<TypeParam>(false, 12, 32);
}
TYPED_TEST(DnnNorm, InstanceNormAndItsGradients) {
  TestFixture::template instance<float>({.batch = 3, .channels = 8, .spatial = {6, 5}});
}
TYPED_TEST(DnnNorm, InstanceNormWithWeightsOfTheTypeOfX) {
  TestFixture::template instance<TypeParam>({.batch = 2, .channels = 16, .spatial = {4, 4}});
}
TYPED_TEST(DnnNorm, InstanceNormOfVolumes) {
  TestFixture::template instance<float>({.batch = 2, .channels = 8, .spatial = {3, 4, 4}});
}
TYPED_TEST(DnnNorm, GroupNormAndItsGradients) {
  TestFixture::group({.batch = 3, .channels = 8, .spatial = {4, 3}}, 2);
}
TYPED_TEST(DnnNorm, GroupNormOfEachChannelAndOfAll) {
  TestFixture::group({.batch = 2, .channels = 4, .spatial = {7}}, 4);
  TestFixture::group({.batch = 2, .channels = 4, .spatial = {2, 3, 2}}, 1);
}
TYPED_TEST(DnnNorm, BatchNormAndItsGradients) {
  TestFixture::batch({.batch = 4, .channels = 16, .spatial = {4, 2}});
}
TYPED_TEST(DnnNorm, BatchNormByRunningAverages) {
  TestFixture::batch_inference({.batch = 4, .channels = 16, .spatial = {4, 2}});
}

/// Of so many elements that a GPU adds them up in parts; by the formula, because differences of all
/// of them take long.
using DnnNormOfF32 = DnnNorm<float>;
TEST_F(DnnNormOfF32, GradientsOfLargeInstances) {
  const ChannelsShape shape{.batch = 2, .channels = 3, .spatial = {90, 110}};
  const auto problem = channels_problem<float, float>(Norm::instance, shape);
  const auto made = norm_of(problem);
  const auto apart = [&](std::size_t i) {
    const auto set = problem.set[i];
    return (problem.x[i] - made.mean[set]) * made.inverse_deviation[set];
  };
  Numbers of_dy(problem.sets), of_both(problem.sets), dx;
  Numbers exact_dscale(problem.weights), exact_dbias(problem.weights);
  for (std::size_t i = 0; i < problem.x.size(); ++i) {
    const auto dy = problem.dy[i], both = dy * apart(i);
    of_dy[problem.set[i]] += dy / 9900;
    of_both[problem.set[i]] += both / 9900;
    exact_dbias[problem.weight[i]] += dy;
    exact_dscale[problem.weight[i]] += both;
  }
  for (std::size_t i = 0; i < problem.x.size(); ++i) {
    const auto set = problem.set[i];
    dx.push_back(problem.scale[problem.weight[i]] * made.inverse_deviation[set] *
                 (problem.dy[i] - of_dy[set] - apart(i) * of_both[set]));
  }
  const auto dx_ref = room(problem);
  const auto dscale = weights<float>(problem), dbias = weights<float>(problem);
  dnn::on(device())
      .instance_norm_backward(put(narrowed<float>(problem.dy)), put(narrowed<float>(problem.x)),
                              put(narrowed<float>(problem.scale)), exact_statistics(problem),
                              dx_ref, dscale, dbias, shape)
      .get();
  EXPECT_TRUE(close_to(device().download(dx_ref), dx));
  EXPECT_TRUE(close_to(device().download(dscale), exact_dscale));
  EXPECT_TRUE(close_to(device().download(dbias), exact_dbias));
}

}  // namespace
}  // namespace troupe::test
