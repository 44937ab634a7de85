#include <troupe/lib/dnn.hpp>

#include <limits>
#include <string>

#include "bad_arguments.hpp"
#include "dnn_numbers.hpp"

namespace troupe::test {
namespace {

using dnn::Pooling;
using dnn::Sizes;

/// A pooling as if it had three spatial dimensions; arrays lie with the channels last.
struct PoolingCase {
  using Spatial = std::array<std::int64_t, 3>;

  explicit PoolingCase(const PoolingOptions& its_shape) : shape(its_shape) {
    const auto spread = [](const Sizes& sizes, std::int64_t fill) {
      Spatial all{fill, fill, fill};
      std::copy_n(sizes.size.begin(), sizes.rank, all.begin());
      return all;
    };
    const auto& steps = shape.steps;
    x = spread(shape.extents, 1);
    window = spread(steps.window, 1);
    before = spread(steps.padding_before, 0);
    const auto after = steps.padding_after.rank == 0 ? before : spread(steps.padding_after, 0);
    strides = steps.strides.rank == 0 ? window : spread(steps.strides, 1);
    for (std::size_t i = 0; i < 3; ++i)
      y[i] = (x[i] + before[i] + after[i] - window[i]) / strides[i] + 1;
  }
  static std::int64_t volume(const Spatial& extents) {
    return extents[0] * extents[1] * extents[2];
  }
  [[nodiscard]] std::int64_t size(const Spatial& extents) const {
    return shape.batch * volume(extents) * shape.channels;
  }

  /// Calls visit(place in y, place in the window, place in x) for what is no padding.
  template <class Visit>
  void for_each(const Visit& visit) const {
    for (std::int64_t out = 0; out < size(y); ++out) {
      auto image = out / shape.channels;
      Spatial p{};
      for (std::size_t i = 3; i-- > 0; image /= y[i]) p[i] = image % y[i];
      for (std::int64_t tap = 0; tap < volume(window); ++tap) {
        const Spatial r{tap / (window[1] * window[2]), tap / window[2] % window[1],
                        tap % window[2]};
        auto pixel = image;
        bool inside = true;
        for (std::size_t i = 0; i < 3; ++i) {
          const auto at = p[i] * strides[i] + r[i] - before[i];
          inside = inside && at >= 0 && at < x[i];
          pixel = pixel * x[i] + at;
        }
        if (inside) {
          visit(static_cast<std::size_t>(out), tap,
                static_cast<std::size_t>(pixel * shape.channels + out % shape.channels));
        }
      }
    }
  }
  /// How many elements each window takes the mean of.
  [[nodiscard]] std::vector<double> counts(Pooling mode) const {
    std::vector<double> result(static_cast<std::size_t>(size(y)));
    for_each([&](std::size_t out, std::int64_t, std::size_t) { ++result[out]; });
    if (mode == Pooling::average)
      std::fill(result.begin(), result.end(), static_cast<double>(volume(window)));
    return result;
  }
  struct Maxima {
    std::vector<double> y;
    std::vector<std::int8_t> index;  ///< of the first of equal ones
    std::vector<std::size_t> place;  ///< in x
  };
  [[nodiscard]] Maxima maxima(const std::vector<double>& of) const {
    const auto windows = static_cast<std::size_t>(size(y));
    Maxima result{std::vector<double>(windows, -std::numeric_limits<double>::infinity()),
                  std::vector<std::int8_t>(windows), std::vector<std::size_t>(windows)};
    for_each([&](std::size_t out, std::int64_t tap, std::size_t in) {
      if (!(of[in] > result.y[out])) return;
      result.y[out] = of[in];
      result.index[out] = static_cast<std::int8_t>(tap);
      result.place[out] = in;
    });
    return result;
  }
  [[nodiscard]] std::vector<double> means(Pooling mode, const std::vector<double>& of) const {
    auto result = std::vector<double>(static_cast<std::size_t>(size(y)));
    for_each([&](std::size_t out, std::int64_t, std::size_t in) { result[out] += of[in]; });
    const auto divided_by = counts(mode);
    for (std::size_t i = 0; i < result.size(); ++i) result[i] /= divided_by[i];
    return result;
  }

  PoolingOptions shape;
  Spatial x{}, y{}, window{}, before{}, strides{};
};

/// 1 to 3 dimensions, windows that overlap, padding of two kinds, elements that no window has.
std::vector<PoolingCase> poolings() {
  const std::vector<PoolingOptions> shapes = {
      {.batch = 2, .channels = 8, .extents = {8, 6}, .steps = {.window = {2, 2}}},
      {.batch = 2,
       .channels = 8,
       .extents = {9, 8},
       .steps = {.window = {3, 3}, .padding_before = {1, 1}, .strides = {2, 2}}},
      {.batch = 1,
       .channels = 16,
       .extents = {7, 10},
       .steps = {.window = {3, 2},
                 .padding_before = {2, 0},
                 .padding_after = {1, 1},
                 .strides = {1, 3}}},
      {.batch = 2, .channels = 8, .extents = {11}, .steps = {.window = {4}, .strides = {2}}},
      {.batch = 1,
       .channels = 8,
       .extents = {4, 6, 5},
       .steps = {.window = {2, 3, 2}, .padding_before = {1, 0, 1}, .strides = {2, 2, 1}}},
  };
  return {shapes.begin(), shapes.end()};
}

std::string pooling_name(std::size_t i, Pooling mode) {
  return "pooling " + std::to_string(i) + " of mode " + std::to_string(static_cast<int>(mode));
}

template <class T>
class DnnPools : public OfLayers<T> {};
using PoolTypes = ::testing::Types<Half, BFloat16, float>;
TYPED_TEST_SUITE(DnnPools, PoolTypes);

TYPED_TEST(DnnPools, SmallIntegersArePooledExactly) {
  using T = TypeParam;
  const auto all = poolings();
  for (std::size_t i = 0; i < all.size(); ++i) {
    const auto& of = all[i];
    const auto values = integers(of.size(of.x), 8, i);
    const auto x = put(narrowed<T>(values));
    for (const auto mode : {Pooling::maximum, Pooling::average, Pooling::average_inside}) {
      const auto y = device().template alloc<T>(of.size(of.y));
      dnn::on(device()).pooling(mode, x, y, of.shape).get();
      const auto actual = widened(device().download(y));
      if (mode == Pooling::maximum) {
        EXPECT_EQ(actual, of.maxima(values).y) << pooling_name(i, mode);
        continue;
      }
      const auto exact = of.means(mode, values);
      for (std::size_t j = 0; j < exact.size(); ++j) {
        // One rounding to T, and some in f32 of sums of numbers up to 8.
        ASSERT_NEAR(actual[j], exact[j], (kEpsilon<T> / 2 + 0x1p-22) * std::abs(exact[j]) + 0x1p-19)
            << pooling_name(i, mode) << " at " << j;
      }
    }
  }
}

/// An index names a largest element of its window, cuDNN's whichever of equal ones it is.
TYPED_TEST(DnnPools, AnIndexNamesALargestElement) {
  using T = TypeParam;
  const auto all = poolings();
  for (std::size_t i = 0; i < all.size(); ++i) {
    const auto& of = all[i];
    const auto values = integers(of.size(of.x), 3, 10 + i);  // with equal ones
    const auto y = device().template alloc<T>(of.size(of.y));
    const auto index = device().template alloc<std::int8_t>(of.size(of.y));
    dnn::on(device()).max_pooling(put(narrowed<T>(values)), y, index, of.shape).get();
    const auto expected = of.maxima(values);
    EXPECT_EQ(widened(device().download(y)), expected.y) << i;
    const auto actual = device().download(index);
    std::size_t named = 0;
    of.for_each([&](std::size_t out, std::int64_t tap, std::size_t in) {
      if (tap != actual[out]) return;
      EXPECT_EQ(values[in], expected.y[out]) << i << " at " << out;
      ++named;
    });
    EXPECT_EQ(named, actual.size()) << i;
    // cuDNN has no pooling of bf16: troupe's own kernels take the first, as the cpu engine does.
    if (std::is_same_v<T, BFloat16> || device().info().engine == "cpu") {
      EXPECT_EQ(actual, expected.index) << i;
    }
  }
}

TYPED_TEST(DnnPools, GradientsOfMaximaGoToWhatWasTaken) {
  using T = TypeParam;
  for (const auto& of : poolings()) {
    const auto values = integers(of.size(of.x), 3, 20), gradients = integers(of.size(of.y), 4, 21);
    const auto taken = of.maxima(values);
    std::vector<double> exact(values.size());
    for (std::size_t i = 0; i < gradients.size(); ++i) exact[taken.place[i]] += gradients[i];
    const auto dx = device().template alloc<T>(of.size(of.x));
    dnn::on(device())
        .max_pooling_backward(put(narrowed<T>(gradients)), put(taken.index), dx, of.shape)
        .get();
    EXPECT_EQ(widened(device().download(dx)), exact);
  }
}

TYPED_TEST(DnnPools, GradientsOfMeansAreSharedOut) {
  using T = TypeParam;
  for (const auto& of : poolings()) {
    for (const auto mode : {Pooling::average, Pooling::average_inside}) {
      const auto gradients = uniform<T>(of.size(of.y), 31);
      const auto counts = of.counts(mode);
      std::vector<double> exact(static_cast<std::size_t>(of.size(of.x)));
      of.for_each([&](std::size_t out, std::int64_t, std::size_t in) {
        exact[in] += gradients[out] / counts[out];
      });
      const auto dx = device().template alloc<T>(of.size(of.x));
      dnn::on(device()).pooling_backward(mode, put(narrowed<T>(gradients)), dx, of.shape).get();
      const auto actual = widened(device().download(dx));
      for (std::size_t i = 0; i < exact.size(); ++i)
        ASSERT_NEAR(actual[i], exact[i], kEpsilon<T> / 2 * std::abs(exact[i]) + 0x1p-24) << i;
    }
  }
}

/// In one graph, with the channels before the spatial dimensions: dx of the sum of all maxima.
TEST(DnnPoolsInGraphs, AnIndexIsPassedOn) {
  const PoolingCase of({.batch = 1, .channels = 1, .extents = {6, 8}, .steps = {.window = {2, 2}}});
  const auto values = integers(of.size(of.x), 100, 40);
  std::vector<double> exact(values.size());
  for (const auto place : of.maxima(values).place) exact[place] = 1;
  dnn::Graph graph;
  const auto x = graph.input(DType::f32, {1, 1, 6, 8});
  const auto ones = graph.input(DType::f32, {1, 1, 3, 4});
  const auto pooled = dnn::max_pooling(graph, x, of.shape.steps);
  graph.output(pooled.y, DType::f32);
  const auto dx = dnn::pooling_backward(graph, Pooling::maximum, ones, pooled.index, {1, 1, 6, 8},
                                        of.shape.steps);
  graph.output(dx, DType::f32);
  const auto y_ref = device().alloc<float>(12), dx_ref = device().alloc<float>(48);
  const auto done = dnn::on(device()).run(graph, {{x, put(narrowed<float>(values))},
                                                  {ones, put(std::vector<float>(12, 1))},
                                                  {pooled.y, y_ref},
                                                  {dx, dx_ref}});
  skip_unless_installed(done);
  if (::testing::Test::IsSkipped() || ::testing::Test::HasFatalFailure()) return;
  EXPECT_EQ(widened(device().download(dx_ref)), exact);
  EXPECT_EQ(widened(device().download(y_ref)), of.maxima(values).y);
}

/// Of bf16, which cuDNN does not pool: x and y lie apart, by rows and by columns. A NaN is taken
/// before any number.
TEST(DnnPoolsInGraphs, ElementsMayLieApart) {
  const PoolingCase of({.batch = 1, .channels = 1, .extents = {6, 8}, .steps = {.window = {2, 2}}});
  const auto values = integers(of.size(of.x), 100, 41);
  auto expected = of.maxima(values);
  dnn::Graph graph;
  const auto x = graph.input(DType::bf16, {{1, 1, 6, 8}, {120, 120, 20, 2}});
  const auto pooled = dnn::max_pooling(graph, x, of.shape.steps);
  graph.output(pooled.y, DType::bf16, {24, 24, 2, 6});
  graph.output(pooled.index, DType::i8);
  auto apart = std::vector<double>(120, 200);
  for (std::size_t i = 0; i < values.size(); ++i) apart[i / 8 * 20 + i % 8 * 2] = values[i];
  apart[22] = std::numeric_limits<double>::quiet_NaN();  // of row 1, in column 1
  expected.index[0] = 3;
  const auto y_ref = put_sevens<BFloat16>(24);
  const auto index_ref = device().alloc<std::int8_t>(12);
  const auto done = dnn::on(device()).run(
      graph, {{x, put(narrowed<BFloat16>(apart))}, {pooled.y, y_ref}, {pooled.index, index_ref}});
  skip_unless_installed(done);
  if (::testing::Test::IsSkipped() || ::testing::Test::HasFatalFailure()) return;
  EXPECT_EQ(device().download(index_ref), expected.index);
  const auto actual = widened(device().download(y_ref));
  EXPECT_TRUE(std::isnan(actual[0]));
  for (std::size_t i = 1; i < 12; ++i) EXPECT_EQ(actual[i / 4 * 2 + i % 4 * 6], expected.y[i]) << i;
  for (std::size_t i = 1; i < 24; i += 2) EXPECT_EQ(actual[i], 7) << i;
}

TEST(DnnPoolsRefused, WhatCannotBe) {
  const auto x = device().alloc<float>(256), y = device().alloc<float>(256);
  const auto index = device().alloc<std::int8_t>(256);
  const auto refused = [](const Future<void>& done, const std::string& why) {
    const Result<void> result = done.wait();
    ASSERT_EQ(result.code(), Errc::invalid) << why;
    EXPECT_NE(result.error().message.find(why), std::string::npos) << result.error().message;
    (void)device().take_error();
  };
  const auto refuses = [&](const std::string& why, const dnn::PoolingSteps& steps) {
    const PoolingOptions shape{.channels = 4, .extents = {4, 4}, .steps = steps};
    refused(dnn::on(device()).pooling(Pooling::maximum, x, y, shape), why);
    refused(dnn::on(device()).pooling_backward(Pooling::average, y, x, shape), why);
  };
  refuses("a list has not as many numbers", {.window = {2}});
  refuses("a list has not as many numbers", {.window = {2, 2}, .strides = {1}});
  refuses("an extent is not positive", {.window = {2, 0}});
  refuses("a padding is negative", {.window = {2, 2}, .padding_before = {-1, 0}});
  refuses("a padding is not smaller than the window", {.window = {2, 2}, .padding_before = {2, 0}});
  refuses("a stride or a dilation is not positive", {.window = {2, 2}, .strides = {0, 1}});
  refuses("a window is larger than the padded input", {.window = {5, 2}});
  refused(dnn::on(device()).max_pooling(
              x, y, index, {.channels = 1, .extents = {16, 16}, .steps = {.window = {12, 12}}}),
          "windows of at most 127 elements");
  const PoolingOptions good{.channels = 4, .extents = {4, 4}, .steps = {.window = {2, 2}}};
  refused(dnn::on(device()).pooling_backward(Pooling::maximum, y, x, good),
          "the gradient of maxima needs their index");
  refused(dnn::on(device()).pooling(static_cast<Pooling>(3), x, y, good), "unknown mode");
  {
    dnn::Graph graph;
    const auto in = graph.input(DType::f32, dnn::channels_last(1, 4, {4, 4}));
    const auto out = dnn::max_pooling(graph, in, good.steps);
    graph.output(out.y, DType::f32);
    graph.output(out.index, DType::f32);
    const auto where = device().alloc<float>(16);
    refused(dnn::on(device()).run(graph, {{in, x}, {out.y, y}, {out.index, where}}),
            "the index is not of type i8");
  }
}

}  // namespace
}  // namespace troupe::test
