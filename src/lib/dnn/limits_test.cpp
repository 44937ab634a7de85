#include <troupe/lib/dnn.hpp>

#include <cmath>
#include <limits>
#include <vector>

#include "dnn_attention_runs.hpp"
#include "dnn_numbers.hpp"

// Numbers that are not finite or very large, as docs/libraries.md has them.

namespace troupe::test {
namespace {

using dnn::Mode;
using dnn::ReduceOp;

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kMost = std::numeric_limits<float>::max();
constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();

/// NaN is NaN, an infinity that of its sign, and other numbers are close.
template <class T>
void expect_numbers(const std::vector<T>& actual, const std::vector<float>& expected,
                    const std::string& what) {
  ASSERT_EQ(actual.size(), expected.size()) << what;
  for (std::size_t i = 0; i < actual.size(); ++i) {
    const float value = to_float(actual[i]), wanted = to_float(rounded<T>(double{expected[i]}));
    if (std::isnan(wanted)) {
      EXPECT_TRUE(std::isnan(value)) << what << " at " << i << " is " << value << ", not NaN";
    } else if (std::isinf(wanted)) {
      EXPECT_EQ(value, wanted) << what << " at " << i;
    } else {
      EXPECT_LE(std::abs(value - wanted), 2 * kEpsilon<T> * std::abs(wanted) + 1e-6)
          << what << " at " << i << " is " << value << ", not " << wanted;
    }
  }
}

template <class T>
class DnnLimits : public OfLayers<T> {};
using LimitTypes = ::testing::Types<Half, BFloat16, float>;
TYPED_TEST_SUITE(DnnLimits, LimitTypes);

template <class T>
std::vector<T> of(const std::vector<float>& values) {
  return narrowed<T>(std::vector<double>(values.begin(), values.end()));
}

TYPED_TEST(DnnLimits, FunctionsHaveTheirs) {
  using T = TypeParam;
  const std::vector<float> x{-kInf, -kMost, -1e20f, 1e20f, kMost, kInf, kNaN};
  const auto on_device = put(of<T>(x));
  const auto stored = device().download(on_device);  // large numbers are infinite in f16
  const auto y = device().template alloc<T>(std::ssize(x));
  const auto check = [&](const char* name, Mode mode, const auto& f,
                         const dnn::PointwiseOptions& options = {}) {
    dnn::on(device()).pointwise(mode, on_device, y, options).get();
    std::vector<float> expected;
    for (const T value : stored) expected.push_back(f(to_float(value)));
    expect_numbers(device().download(y), expected, name);
  };
  const auto positive = [](float v) { return std::isnan(v) ? v : std::fmax(v, 0.0f); };
  check("relu", Mode::relu, positive);
  check("gelu", Mode::gelu, positive);
  check("gelu_tanh", Mode::gelu_tanh, positive);
  check("swish", Mode::swish, positive);
  check("swish of beta -1", Mode::swish,
        [](float v) { return std::isnan(v) ? v : std::fmin(v, 0.0f); }, {.beta = -1});
  check("swish of beta 0", Mode::swish, [](float v) { return v / 2; }, {.beta = 0});
  check("softplus", Mode::softplus, positive);
  check("softplus of beta -1", Mode::softplus,
        [](float v) { return std::isnan(v) ? v : std::fmin(v, 0.0f); }, {.beta = -1});
  check("elu", Mode::elu, [](float v) { return v < 0 ? -1 : v; });
  check("relu6", Mode::relu, [](float v) { return std::isnan(v) ? v
                                                  : v > 0       ? 6.0f
                                                                : 0.0f; },
        {.upper = 6});
  check("leaky", Mode::relu, [](float v) { return v < 0 ? v / 4 : v; }, {.slope = 0.25f});
  check("sigmoid", Mode::sigmoid, [](float v) { return std::isnan(v) ? v : v > 0 ? 1.0f : 0.0f; });
  check("tanh", Mode::tanh, [](float v) { return std::isnan(v) ? v : v > 0 ? 1.0f : -1.0f; });
}

TYPED_TEST(DnnLimits, GradientsHaveTheirs) {
  using T = TypeParam;
  const std::vector<float> x{-kInf, -kMost, -1e20f, 1e20f, kMost, kInf, kNaN};
  const auto ones = put(of<T>(std::vector<float>(x.size(), 1))), on_device = put(of<T>(x));
  const auto y = device().template alloc<T>(std::ssize(x));
  const auto check = [&](const char* name, Mode mode, const std::vector<float>& expected,
                         const dnn::PointwiseOptions& options = {}) {
    dnn::on(device()).pointwise(mode, ones, on_device, y, options).get();
    expect_numbers(device().download(y), expected, name);
  };
  const std::vector<float> step{0, 0, 0, 1, 1, 1, kNaN};
  for (const auto mode : {Mode::gelu_backward, Mode::gelu_tanh_backward, Mode::swish_backward,
                          Mode::softplus_backward})
    check(("mode " + std::to_string(static_cast<int>(mode))).c_str(), mode, step);
  check("relu", Mode::relu_backward, {0, 0, 0, 1, 1, 1, 0});
  check("relu6", Mode::relu_backward, {0, 0, 0, 0, 0, 0, 0}, {.upper = 6});
  check("sigmoid", Mode::sigmoid_backward, {0, 0, 0, 0, 0, 0, kNaN});
  check("tanh", Mode::tanh_backward, {0, 0, 0, 0, 0, 0, kNaN});
  // Where x is negative relu passes no gradient on, so the incoming one may be NaN or infinite.
  const auto spoilt = put(of<T>({kNaN, kInf, -kInf, 2})), at = put(of<T>({-1, -1, -2, 1}));
  const auto dx = device().template alloc<T>(4);
  dnn::on(device()).pointwise(Mode::relu_backward, spoilt, at, dx).get();
  expect_numbers(device().download(dx), {0, 0, 0, 2}, "relu of what is spoilt");
}

TYPED_TEST(DnnLimits, NaNIsTheLargestAndTheSmallest) {
  using T = TypeParam;
  const auto a = put(of<T>({1, kNaN, kNaN, -kInf})), b = put(of<T>({kNaN, 1, kNaN, kInf}));
  const auto y = device().template alloc<T>(4);
  dnn::on(device()).pointwise(Mode::maximum, a, b, y).get();
  expect_numbers(device().download(y), {kNaN, kNaN, kNaN, kInf}, "maximum");
  dnn::on(device()).pointwise(Mode::minimum, a, b, y).get();
  expect_numbers(device().download(y), {kNaN, kNaN, kNaN, -kInf}, "minimum");

  // In short rows, and in long ones, which a GPU reduces in parts.
  for (const std::int64_t columns : {3, 5000}) {
    std::vector<float> values(static_cast<std::size_t>(4 * columns), 1);
    const auto at = [&](std::int64_t row, std::int64_t column) -> float& {
      return values[static_cast<std::size_t>(row * columns + column)];
    };
    at(0, 0) = kNaN, at(1, columns - 1) = kNaN, at(2, columns / 2) = kNaN;
    at(2, columns / 2 + 1) = 2, at(3, 1) = -3;
    const auto x = put(of<T>(values));
    for (const auto& [reduction, of_last] :
         {std::pair{ReduceOp::max, 1.0f}, {ReduceOp::min, -3.0f}, {ReduceOp::max_abs, 3.0f}}) {
      const auto rows = device().template alloc<T>(4), all = device().template alloc<T>(1);
      dnn::on(device()).reduce(reduction, x, rows, {1, 4, columns}, {1, 4, 1}).get();
      expect_numbers(device().download(rows), {kNaN, kNaN, kNaN, of_last}, "rows");
      dnn::on(device()).reduce(reduction, x, all, {1, 4, columns}, {1, 1, 1}).get();
      expect_numbers(device().download(all), {kNaN}, "all");
    }
  }
}

TYPED_TEST(DnnLimits, MaximaOfWindows) {
  using T = TypeParam;
  if (on_cuda() && !std::is_same_v<T, BFloat16>) GTEST_SKIP() << "cuDNN pools it: see dnn::Pooling";
  const auto x = put(of<T>({-kInf, -kInf, kNaN, 1, 1, kNaN, kNaN, kNaN, kInf, 2}));
  const auto y = device().template alloc<T>(5);
  const auto index = device().template alloc<std::int8_t>(5);
  const PoolingOptions shape{.channels = 1, .extents = {10}, .steps = {.window = {2}}};
  dnn::on(device()).pooling(dnn::Pooling::maximum, x, y, shape).get();
  const std::vector<float> expected{-kInf, kNaN, kNaN, kNaN, kInf};
  expect_numbers(device().download(y), expected, "maxima");
  dnn::on(device()).max_pooling(x, y, index, shape).get();
  expect_numbers(device().download(y), expected, "maxima with places");
  const auto places = device().download(index);
  EXPECT_EQ(places[1], 0);
  EXPECT_EQ(places[2], 1);
  EXPECT_EQ(places[4], 0);
  if (!on_cuda()) {
    EXPECT_EQ(places[3], 0) << "the first of several";
  }
}

/// The weight of what is masked is 0, which times NaN is NaN.
TYPED_TEST(DnnLimits, AttentionDoesNotReadWhatIsMasked) {
  using T = TypeParam;
  if (on_cuda()) GTEST_SKIP() << "cuDNN multiplies it by 0";
  if constexpr (dnn::Narrow<T>) {
    constexpr std::int64_t kSequence = 70, kDim = 8;  // more than one block of queries
    AttentionOptions options{.batch = 1, .heads_q = 1, .sequence_q = kSequence, .dim_qk = kDim};
    options.mask = dnn::Mask::causal();
    const auto count = kSequence * kDim;
    const auto values = [&](std::uint64_t seed) {
      return narrowed<T>(random_values<double>(count, seed));
    };
    const auto q = values(1), k = values(2), v = values(3), d_o = values(4);
    struct Run {
      std::vector<T> o, d_q, d_k, d_v;
      std::vector<float> stats;
    };
    const auto run = [&](const std::vector<T>& keys, const std::vector<T>& seen) {
      const auto in_q = put(q), in_k = put(keys), in_v = put(seen), in_d_o = put(d_o);
      const auto out = [&] { return device().template alloc<T>(count); };
      const auto o = out(), d_q = out(), d_k = out(), d_v = out();
      const auto stats = device().template alloc<float>(kSequence);
      auto layer = dnn::on(device());
      layer.attention(in_q, in_k, in_v, o, stats, options).get();
      layer
          .template attention_backward<T>({in_q, in_k, in_v, o, in_d_o, stats, d_q, d_k, d_v},
                                          options)
          .get();
      return Run{device().download(o), device().download(d_q), device().download(d_k),
                 device().download(d_v), device().download(stats)};
    };
    const auto rows_agree = [&](const std::vector<T>& some, const std::vector<T>& others,
                                std::int64_t rows, const char* what) {
      for (std::int64_t i = 0; i < rows * kDim; ++i) {
        const auto at = static_cast<std::size_t>(i);
        ASSERT_NEAR(to_float(some[at]), to_float(others[at]), 2 * kEpsilon<T>) << what << ' ' << i;
      }
    };
    const auto is_nan = [&](const std::vector<T>& some, std::int64_t row) {
      return std::isnan(to_float(some[static_cast<std::size_t>(row * kDim)]));
    };
    const auto good = run(k, v);
    // The last key alone is spoilt, which only the last query sees.
    const auto spoilt = [&](std::vector<T> all) {
      for (auto i = all.size() - kDim; i < all.size(); ++i) all[i] = rounded<T>(double{kNaN});
      return all;
    };
    for (const bool of_keys : {true, false}) {
      const auto made = run(of_keys ? spoilt(k) : k, of_keys ? v : spoilt(v));
      rows_agree(made.o, good.o, kSequence - 1, "o");
      rows_agree(made.d_q, good.d_q, kSequence - 1, "d_q");
      EXPECT_TRUE(is_nan(made.o, kSequence - 1));
      EXPECT_EQ(std::isnan(made.stats.back()), of_keys);
      EXPECT_FALSE(std::isnan(made.stats[kSequence - 2]));
    }
    // As padding that is not there.
    options.mask = {};
    options.length_q = put(std::vector<std::int32_t>{kSequence - 1});
    options.length_kv = put(std::vector<std::int32_t>{kSequence - 1});
    const auto whole = run(k, v), padded = run(spoilt(k), spoilt(v));
    rows_agree(padded.o, whole.o, kSequence, "o beside padding");
    rows_agree(padded.d_q, whole.d_q, kSequence, "d_q beside padding");
    rows_agree(padded.d_k, whole.d_k, kSequence, "d_k beside padding");
    rows_agree(padded.d_v, whole.d_v, kSequence, "d_v beside padding");
  }
}

TYPED_TEST(DnnLimits, SoftmaxAsPyTorch) {
  using T = TypeParam;
  const auto x = put(of<T>({-kInf, -kInf, 1, -kInf, 0, kNaN, kMost, kMost}));
  const auto y = device().template alloc<T>(8);
  dnn::on(device()).softmax(x, y, {.extent = 2}).get();
  const auto actual = device().download(y);
  expect_numbers(std::vector<T>(actual.begin(), actual.begin() + 6), {kNaN, kNaN, 1, 0, kNaN, kNaN},
                 "softmax");
}

}  // namespace
}  // namespace troupe::test
