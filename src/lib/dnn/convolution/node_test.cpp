#include <troupe/lib/dnn.hpp>

#include <string>

#include "bad_arguments.hpp"
#include "dnn_numbers.hpp"

namespace troupe::test {
namespace {

using dnn::Layout;
using dnn::Mode;
using dnn::Sizes;
using Spatial = std::array<std::int64_t, 3>;

/// A convolution as if it had three spatial dimensions; arrays lie with the channels last.
struct Case {
  explicit Case(const ConvolutionOptions& its_shape) : shape(its_shape) {
    const auto spread = [](const Sizes& sizes, std::int64_t fill) {
      Spatial all{fill, fill, fill};
      std::copy_n(sizes.size.begin(), sizes.rank, all.begin());
      return all;
    };
    x = spread(shape.extents, 1);
    w = spread(shape.filter, 1);
    before = spread(shape.padding_before, 0);
    const auto after = shape.padding_after.rank == 0 ? before : spread(shape.padding_after, 0);
    strides = spread(shape.strides, 1);
    dilations = spread(shape.dilations, 1);
    for (std::size_t i = 0; i < 3; ++i)
      y[i] = (x[i] + before[i] + after[i] - dilations[i] * (w[i] - 1) - 1) / strides[i] + 1;
  }
  [[nodiscard]] std::int64_t of_group() const { return shape.input_channels / shape.groups; }
  [[nodiscard]] std::int64_t x_size() const {
    return shape.batch * volume(x) * shape.input_channels;
  }
  [[nodiscard]] std::int64_t w_size() const {
    return shape.output_channels * volume(w) * of_group();
  }
  [[nodiscard]] std::int64_t y_size() const {
    return shape.batch * volume(y) * shape.output_channels;
  }
  static std::int64_t volume(const Spatial& extents) {
    return extents[0] * extents[1] * extents[2];
  }

  /// Calls visit(x, w, y), places of elements, for each product of the definition.
  template <class Visit>
  void for_each_product(const Visit& visit) const {
    const auto filters = shape.output_channels, group_filters = filters / shape.groups;
    for (std::int64_t out = 0; out < y_size(); ++out) {
      const auto k = out % filters;
      auto image = out / filters;
      Spatial p{};
      for (std::size_t i = 3; i-- > 0; image /= y[i]) p[i] = image % y[i];
      for (std::int64_t tap = 0; tap < volume(w); ++tap) {
        const Spatial r{tap / (w[1] * w[2]), tap / w[2] % w[1], tap % w[2]};
        auto pixel = image;
        bool inside = true;
        for (std::size_t i = 0; i < 3; ++i) {
          const auto at = p[i] * strides[i] + r[i] * dilations[i] - before[i];
          inside = inside && at >= 0 && at < x[i];
          pixel = pixel * x[i] + at;
        }
        for (std::int64_t c = 0; inside && c < of_group(); ++c) {
          visit(static_cast<std::size_t>(pixel * shape.input_channels +
                                         k / group_filters * of_group() + c),
                static_cast<std::size_t>((k * volume(w) + tap) * of_group() + c),
                static_cast<std::size_t>(out));
        }
      }
    }
  }

  ConvolutionOptions shape;
  Spatial x{}, w{}, y{}, before{}, strides{}, dilations{};
};

/// 1 to 3 dimensions, with strides, dilations, groups and padding of two kinds.
std::vector<Case> cases() {
  const std::vector<ConvolutionOptions> shapes = {
      {.batch = 2,
       .input_channels = 8,
       .output_channels = 16,
       .extents = {12},
       .filter = {3},
       .padding_before = {1}},
      {.batch = 2,
       .input_channels = 8,
       .output_channels = 8,
       .extents = {13},
       .filter = {4},
       .padding_before = {3},
       .padding_after = {0},
       .strides = {2}},
      {.batch = 2,
       .input_channels = 8,
       .output_channels = 16,
       .extents = {9, 7},
       .filter = {3, 3},
       .padding_before = {1, 1}},
      {.batch = 1, .input_channels = 16, .output_channels = 8, .extents = {5, 6}, .filter = {1, 1}},
      {.batch = 2,
       .input_channels = 8,
       .output_channels = 8,
       .extents = {10, 9},
       .filter = {2, 3},
       .padding_before = {0, 2},
       .padding_after = {1, 0},
       .strides = {2, 1}},
      {.batch = 2,
       .input_channels = 8,
       .output_channels = 8,
       .extents = {12, 11},
       .filter = {3, 3},
       .padding_before = {2, 2},
       .strides = {1, 2},
       .dilations = {2, 2}},
      {.batch = 2,
       .input_channels = 16,
       .output_channels = 32,
       .groups = 2,
       .extents = {6, 7},
       .filter = {3, 2},
       .padding_before = {1, 0}},
      {.batch = 1,
       .input_channels = 8,
       .output_channels = 8,
       .extents = {5, 4, 6},
       .filter = {2, 3, 2},
       .padding_before = {1, 1, 0},
       .strides = {1, 2, 2}},
  };
  return {shapes.begin(), shapes.end()};
}

std::string name_of(std::size_t i) {
  return "shape " + std::to_string(i);
}

template <class T>
class DnnConvolutionNode : public Typed<T> {
 protected:
  void SetUp() override {
    const auto x = put(std::vector<T>(8)), w = put(std::vector<T>(64)), y = put(std::vector<T>(8));
    skip_unless_installed(dnn::on(device()).convolution(
        x, w, y, {.input_channels = 8, .output_channels = 8, .extents = {1, 1}, .filter = {1, 1}}));
  }
};
using NodeTypes = ::testing::Types<Half, BFloat16, float>;
TYPED_TEST_SUITE(DnnConvolutionNode, NodeTypes);

TYPED_TEST(DnnConvolutionNode, GradientsOfSmallIntegersAreExact) {
  using T = TypeParam;
  const auto all = cases();
  std::size_t computed = 0;
  for (std::size_t i = 0; i < all.size(); ++i) {
    const auto& of = all[i];
    const auto x = integers(of.x_size(), 1, 2 * i), w = integers(of.w_size(), 1, 2 * i + 1),
               dy = integers(of.y_size(), 1, i + 100);
    std::vector<double> dx(x.size()), dw(w.size());
    of.for_each_product([&](std::size_t in_x, std::size_t in_w, std::size_t in_y) {
      dx[in_x] += dy[in_y] * w[in_w];
      dw[in_w] += dy[in_y] * x[in_x];
    });
    const auto x_ref = put(narrowed<T>(x)), w_ref = put(narrowed<T>(w)),
               dy_ref = put(narrowed<T>(dy));
    const std::vector<double> old(std::max(x.size(), w.size()), 7);
    const auto dx_ref = put(narrowed<T>(old)).slice(0, of.x_size());
    const auto dw_ref = put(narrowed<T>(old)).slice(0, of.w_size());
    if (answered(dnn::on(device()).convolution_backward_data(dy_ref, w_ref, dx_ref, of.shape),
                 name_of(i) + " data")) {
      EXPECT_EQ(widened(device().download(dx_ref)), dx) << name_of(i);
      ++computed;
    }
    if (answered(dnn::on(device()).convolution_backward_filter(dy_ref, x_ref, dw_ref, of.shape),
                 name_of(i) + " filter")) {
      // Sums beyond 256 are rounded in bf16.
      EXPECT_EQ(widened(device().download(dw_ref)), widened(narrowed<T>(dw))) << name_of(i);
      ++computed;
    }
  }
  EXPECT_GE(computed, all.size());
}

/// <conv(x, w), dy> = <x, data(dy, w)> = <w, filter(dy, x)>: three kernels against one another.
TYPED_TEST(DnnConvolutionNode, GradientsAreAdjoints) {
  using T = TypeParam;
  const auto dot = [](const std::vector<double>& a, const std::vector<double>& b) {
    double sum = 0;
    for (std::size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
    return sum;
  };
  const auto all = cases();
  std::size_t computed = 0;
  for (const std::size_t i : {2u, 6u}) {
    const auto& of = all[i];
    // Sums below 257, which bf16 represents.
    const auto x = integers(of.x_size(), 1, 20 + i), w = integers(of.w_size(), 1, 30 + i),
               dy = integers(of.y_size(), 1, 40 + i);
    const auto x_ref = put(narrowed<T>(x)), w_ref = put(narrowed<T>(w)),
               dy_ref = put(narrowed<T>(dy));
    const auto y_ref = device().template alloc<T>(of.y_size()),
               dx_ref = device().template alloc<T>(of.x_size()),
               dw_ref = device().template alloc<T>(of.w_size());
    const auto what = name_of(i);
    if (!answered(dnn::on(device()).convolution(x_ref, w_ref, y_ref, of.shape), what) ||
        !answered(dnn::on(device()).convolution_backward_data(dy_ref, w_ref, dx_ref, of.shape),
                  what) ||
        !answered(dnn::on(device()).convolution_backward_filter(dy_ref, x_ref, dw_ref, of.shape),
                  what)) {
      continue;
    }
    ++computed;
    const auto forward = dot(widened(device().download(y_ref)), dy);
    EXPECT_EQ(dot(x, widened(device().download(dx_ref))), forward) << name_of(i);
    EXPECT_EQ(dot(w, widened(device().download(dw_ref))), forward) << name_of(i);
  }
  EXPECT_GE(computed, 1u);
}

TYPED_TEST(DnnConvolutionNode, GradientsAreAsExactAsAPlainLoop) {
  using T = TypeParam;
  const auto of = cases()[2];
  const auto x = uniform<T>(of.x_size(), 50), w = uniform<T>(of.w_size(), 51),
             dy = uniform<T>(of.y_size(), 52);
  std::vector<double> dx(x.size()), dw(w.size());
  std::vector<T> plain_dx(x.size()), plain_dw(w.size());
  of.for_each_product([&](std::size_t in_x, std::size_t in_w, std::size_t in_y) {
    dx[in_x] += dy[in_y] * w[in_w];
    dw[in_w] += dy[in_y] * x[in_x];
    plain_dx[in_x] =
        rounded<T>(to_float(plain_dx[in_x]) + to_float(rounded<T>(dy[in_y] * w[in_w])));
    plain_dw[in_w] =
        rounded<T>(to_float(plain_dw[in_w]) + to_float(rounded<T>(dy[in_y] * x[in_x])));
  });
  const auto dy_ref = put(narrowed<T>(dy));
  const auto dx_ref = device().template alloc<T>(of.x_size()),
             dw_ref = device().template alloc<T>(of.w_size());
  dnn::on(device()).convolution_backward_data(dy_ref, put(narrowed<T>(w)), dx_ref, of.shape).get();
  dnn::on(device())
      .convolution_backward_filter(dy_ref, put(narrowed<T>(x)), dw_ref, of.shape)
      .get();
  EXPECT_TRUE(as_exact_as(plain_dx, device().download(dx_ref), dx));
  EXPECT_TRUE(as_exact_as(plain_dw, device().download(dw_ref), dw));
}

/// Tensors of `images` with so many pixels each, the channels before the pixels instead of last.
std::vector<double> channels_first(const std::vector<double>& values, std::int64_t images,
                                   std::int64_t channels) {
  const auto pixels = static_cast<std::int64_t>(values.size()) / images / channels;
  std::vector<double> result;
  for (std::int64_t n = 0; n < images; ++n) {
    for (std::int64_t c = 0; c < channels; ++c) {
      for (std::int64_t p = 0; p < pixels; ++p)
        result.push_back(values[static_cast<std::size_t>((n * pixels + p) * channels + c)]);
    }
  }
  return result;
}

/// max(conv(x, w) + bias, 0) in one graph, in both layouts.
TYPED_TEST(DnnConvolutionNode, BiasAndReluAreComputedWithIt) {
  using T = TypeParam;
  const auto all = cases();
  std::size_t computed = 0;
  for (std::size_t i = 0; i < all.size(); ++i) {
    const auto& of = all[i];
    const auto filters = of.shape.output_channels;
    const auto x = integers(of.x_size(), 1, 3 * i), w = integers(of.w_size(), 1, 3 * i + 1),
               bias = integers(filters, 4, 3 * i + 2);
    std::vector<double> y(static_cast<std::size_t>(of.y_size()));
    of.for_each_product([&](std::size_t in_x, std::size_t in_w, std::size_t in_y) {
      y[in_y] += x[in_x] * w[in_w];
    });
    for (std::size_t j = 0; j < y.size(); ++j)
      y[j] = std::max(y[j] + bias[j % static_cast<std::size_t>(filters)], 0.0);
    for (const bool first : {false, true}) {
      const auto layout = [&](std::int64_t batch, std::int64_t channels, const Spatial& extents) {
        const auto last = dnn::channels_last(
            batch, channels, {extents.begin(), extents.begin() + of.shape.extents.rank});
        return first ? Layout(last.extents) : last;
      };
      const auto laid = [&](const std::vector<double>& values, std::int64_t images,
                            std::int64_t channels) {
        return first ? channels_first(values, images, channels) : values;
      };
      dnn::Graph graph;
      const auto in_x =
          graph.input(dtype_of<T>, layout(of.shape.batch, of.shape.input_channels, of.x));
      const auto in_w = graph.input(dtype_of<T>, layout(filters, of.of_group(), of.w));
      const auto in_bias = graph.input(dtype_of<T>, layout(1, filters, {1, 1, 1}));
      const auto sum = dnn::convolution(
          graph, in_x, in_w,
          {of.shape.padding_before, of.shape.padding_after, of.shape.strides, of.shape.dilations});
      const auto out =
          dnn::pointwise(graph, Mode::relu, dnn::pointwise(graph, Mode::add, sum, in_bias));
      graph.output(out, dtype_of<T>);
      EXPECT_EQ(graph.layout(out).strides, layout(of.shape.batch, filters, of.y).strides);
      const auto y_ref = device().template alloc<T>(of.y_size());
      const auto done = dnn::on(device()).run(
          graph, {{in_x, put(narrowed<T>(laid(x, of.shape.batch, of.shape.input_channels)))},
                  {in_w, put(narrowed<T>(laid(w, filters, of.of_group())))},
                  {in_bias, put(narrowed<T>(bias))},
                  {out, y_ref}});
      if (!answered(done, name_of(i) + (first ? " channels first" : " channels last"))) continue;
      EXPECT_EQ(widened(device().download(y_ref)), laid(y, of.shape.batch, filters)) << name_of(i);
      ++computed;
    }
  }
  // cuDNN fuses with tensor cores, which would compute f32 in tf32.
  if (!std::is_same_v<T, float>) {
    EXPECT_GE(computed, 1u);
  }
}

/// What a convolution that cannot be is refused with.
class DnnConvolutionNodeRefused : public ::testing::Test {
 protected:
  static void refused(const Future<void>& done, const std::string& why) {
    const Result<void> result = done.wait();
    ASSERT_EQ(result.code(), Errc::invalid) << why;
    EXPECT_NE(result.error().message.find(why), std::string::npos) << result.error().message;
    (void)device().take_error();
  }
  GpuRef<float> a = device().alloc<float>(256), b = device().alloc<float>(256),
                c = device().alloc<float>(256);
};

TEST_F(DnnConvolutionNodeRefused, WhatCannotBe) {
  const ConvolutionOptions good{
      .input_channels = 4, .output_channels = 4, .extents = {4, 4}, .filter = {3, 3}};
  const auto refuses = [&](const std::string& why, auto&& change) {
    auto shape = good;
    change(shape);
    refused(dnn::on(device()).convolution_backward_data(a, b, c, shape), why);
    refused(dnn::on(device()).convolution_backward_filter(a, b, c, shape), why);
  };
  refuses("1 to 3 spatial dimensions", [](auto& shape) { shape.extents = {}; });
  refuses("a list has not as many numbers", [](auto& shape) { shape.strides = {1}; });
  refuses("a list has not as many numbers", [](auto& shape) { shape.filter = {1}; });
  refuses("the groups do not divide", [](auto& shape) { shape.groups = 3; });
  refuses("the groups do not divide", [](auto& shape) { shape.groups = 0; });
  refuses("a stride or a dilation is not positive", [](auto& shape) { shape.strides = {0, 1}; });
  refuses("a padding is negative", [](auto& shape) { shape.padding_before = {-1, 0}; });
  refuses("a window is larger than the padded input", [](auto& shape) { shape.filter = {5, 3}; });
  refuses("an extent of tensor 0 is not positive", [](auto& shape) { shape.batch = 0; });

  {
    dnn::Graph graph;
    const auto x = graph.input(DType::f32, dnn::channels_last(1, 4, {4, 4}));
    const auto w = graph.input(DType::f32, dnn::channels_last(4, 4, {3}));
    dnn::convolution(graph, x, w);
    refused(dnn::on(device()).run(graph, {{x, a}, {w, b}}), "1 to 3 spatial dimensions");
  }
  {
    dnn::Graph graph;
    const auto x = graph.input(DType::f32, dnn::channels_last(1, 4, {4, 4}));
    const auto w = graph.input(DType::f32, dnn::channels_last(4, 3, {3, 3}));
    const auto y = dnn::convolution(graph, x, w);
    graph.output(y, DType::f32);
    refused(dnn::on(device()).run(graph, {{x, a}, {w, b}, {y, c}}), "the groups do not divide");
  }
  {
    dnn::Graph graph;
    const auto dy = graph.input(DType::f32, dnn::channels_last(1, 4, {2, 2}));
    const auto w = graph.input(DType::f32, dnn::channels_last(4, 4, {3, 3}));
    const auto dx = dnn::convolution_data(graph, dy, w, {1, 4, 5, 4});
    graph.output(dx, DType::f32);
    refused(dnn::on(device()).run(graph, {{dy, a}, {w, b}, {dx, c}}),
            "as many elements along a dimension as the filters have places");
  }
  {
    dnn::Graph graph;
    const auto dy = graph.input(DType::f32, dnn::channels_last(2, 4, {2, 2}));
    const auto w = graph.input(DType::f32, dnn::channels_last(4, 4, {3, 3}));
    const auto dx = dnn::convolution_data(graph, dy, w, {1, 4, 4, 4});
    graph.output(dx, DType::f32);
    refused(dnn::on(device()).run(graph, {{dy, a}, {w, b}, {dx, c}}),
            "y has not the batch of x and a channel for each filter");
  }
}

}  // namespace
}  // namespace troupe::test
