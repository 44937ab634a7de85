#include <troupe/lib/dnn.hpp>

#include <algorithm>
#include <cmath>
#include <vector>

#include "bad_arguments.hpp"
#include "dnn_numbers.hpp"

namespace troupe::test {
namespace {

using dnn::Sizes;

template <class T>
class DnnConvolution : public Typed<T> {
 protected:
  void SetUp() override {
    const auto x = put(std::vector<T>(8)), w = put(std::vector<T>(64)), y = put(std::vector<T>(8));
    skip_unless_installed(dnn::on(device()).convolution(
        x, w, y, {.input_channels = 8, .output_channels = 8, .extents = {1, 1}, .filter = {1, 1}}));
  }
};
using ComputableTypes = ::testing::Types<Half, BFloat16, float>;
TYPED_TEST_SUITE(DnnConvolution, ComputableTypes);

using PerDimension = dnn::Convolution::PerDimension;

/// A convolution as if it had three spatial dimensions.
struct Shape {
  explicit Shape(const ConvolutionOptions& its_options) : options(its_options) {
    const auto rank = options.extents.rank;
    const auto spread = [&](const Sizes& sizes, std::int64_t fill) {
      PerDimension all{fill, fill, fill};
      std::copy_n(sizes.size.begin(), sizes.rank, all.begin());
      return all;
    };
    x = spread(options.extents, 1);
    w = spread(options.filter, 1);
    before = spread(options.padding_before, 0);
    const auto after = options.padding_after.rank == 0 ? before : spread(options.padding_after, 0);
    strides = spread(options.strides, 1);
    dilations = spread(options.dilations, 1);
    for (std::uint32_t i = 0; i < rank; ++i)
      y[i] = (x[i] + before[i] + after[i] - dilations[i] * (w[i] - 1) - 1) / strides[i] + 1;
  }
  static std::int64_t volume(const PerDimension& extents) {
    return extents[0] * extents[1] * extents[2];
  }
  [[nodiscard]] std::int64_t group_channels() const {
    return options.input_channels / options.groups;
  }
  [[nodiscard]] std::int64_t x_size() const {
    return options.batch * volume(x) * options.input_channels;
  }
  [[nodiscard]] std::int64_t w_size() const {
    return options.output_channels * volume(w) * group_channels();
  }
  [[nodiscard]] std::int64_t y_size() const {
    return options.batch * volume(y) * options.output_channels;
  }

  ConvolutionOptions options;
  PerDimension x{}, w{}, y{1, 1, 1}, before{}, strides{}, dilations{};
};

/// What an element of y is, and the sum of the absolute values of what is added up to it.
struct Sum {
  double value = 0, magnitude = 0;
};

/// By the definition, in f64.
std::vector<Sum> naive_convolution(const Shape& shape, const std::vector<double>& x,
                                   const std::vector<double>& w, const std::vector<double>& bias) {
  const auto channels = shape.options.input_channels, filters = shape.options.output_channels;
  const auto of_group = shape.group_channels(), group_filters = filters / shape.options.groups;
  std::vector<Sum> y;
  for (std::int64_t out = 0; out < shape.y_size(); ++out) {
    const auto k = out % filters;
    auto rest = out / filters;
    PerDimension p{};
    for (std::size_t i = 3; i-- > 0;) {
      p[i] = rest % shape.y[i];
      rest /= shape.y[i];
    }
    Sum sum;
    if (!bias.empty()) sum.value = bias[static_cast<std::size_t>(k)];
    sum.magnitude = std::abs(sum.value);
    for (std::int64_t tap = 0; tap < Shape::volume(shape.w); ++tap) {
      const PerDimension r{tap / (shape.w[1] * shape.w[2]), tap / shape.w[2] % shape.w[1],
                           tap % shape.w[2]};
      std::int64_t pixel = rest;  // the image of the batch
      bool inside = true;
      for (std::size_t i = 0; i < 3; ++i) {
        const auto at = p[i] * shape.strides[i] + r[i] * shape.dilations[i] - shape.before[i];
        inside = inside && at >= 0 && at < shape.x[i];
        pixel = pixel * shape.x[i] + at;
      }
      if (!inside) continue;
      for (std::int64_t c = 0; c < of_group; ++c) {
        const auto product =
            x[static_cast<std::size_t>(pixel * channels + k / group_filters * of_group + c)] *
            w[static_cast<std::size_t>((k * Shape::volume(shape.w) + tap) * of_group + c)];
        sum.value += product;
        sum.magnitude += std::abs(product);
      }
    }
    y.push_back(sum);
  }
  return y;
}

std::vector<double> values_of(const std::vector<Sum>& sums) {
  std::vector<double> values;
  for (const auto& sum : sums) values.push_back(sum.value);
  return values;
}

template <class T>
std::vector<double> convolved(const Shape& shape, const std::vector<double>& x,
                              const std::vector<double>& w, const std::vector<double>& bias) {
  const auto device_x = put(narrowed<T>(x)), device_w = put(narrowed<T>(w));
  const auto y = put(narrowed<T>(std::vector<double>(static_cast<std::size_t>(shape.y_size()), 7)));
  if (bias.empty()) {
    dnn::on(device()).convolution(device_x, device_w, y, shape.options).get();
  } else {
    dnn::on(device())
        .convolution(device_x, device_w, put(narrowed<T>(bias)), y, shape.options)
        .get();
  }
  EXPECT_EQ(widened(device().download(device_x)), x);
  EXPECT_EQ(widened(device().download(device_w)), w);
  return widened(device().download(y));
}

std::vector<Shape> shapes() {
  const std::vector<ConvolutionOptions> all = {
      {.batch = 2,
       .input_channels = 8,
       .output_channels = 8,
       .extents = {16},
       .filter = {3},
       .padding_before = {1}},
      {.batch = 3,
       .input_channels = 6,
       .output_channels = 9,
       .groups = 3,
       .extents = {11},
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
       .strides = {2, 1},
       .dilations = {1, 2}},
      {.batch = 2,
       .input_channels = 8,
       .output_channels = 8,
       .extents = {12, 12},
       .filter = {3, 3},
       .padding_before = {2, 2},
       .strides = {3, 2},
       .dilations = {2, 2}},
      {.batch = 2,
       .input_channels = 16,
       .output_channels = 8,
       .groups = 2,
       .extents = {6, 7},
       .filter = {3, 2},
       .padding_before = {1, 0}},
      {.batch = 1,
       .input_channels = 8,
       .output_channels = 8,
       .groups = 8,
       .extents = {8, 8},
       .filter = {3, 3},
       .padding_before = {1, 1}},
      {.batch = 1,
       .input_channels = 3,
       .output_channels = 5,
       .extents = {7, 8},
       .filter = {3, 3},
       .padding_before = {1, 1}},
      {.batch = 2, .input_channels = 1, .output_channels = 1, .extents = {1, 4}, .filter = {1, 4}},
      {.batch = 2,
       .input_channels = 8,
       .output_channels = 8,
       .extents = {5, 4, 6},
       .filter = {3, 2, 1},
       .padding_before = {1, 1, 0},
       .padding_after = {1, 0, 0}},
      {.batch = 1,
       .input_channels = 8,
       .output_channels = 16,
       .groups = 2,
       .extents = {6, 6, 6},
       .filter = {2, 2, 2},
       .strides = {2, 1, 2}}};
  std::vector<Shape> result;
  for (const auto& options : all) result.emplace_back(options);
  return result;
}

/// Whatever the order of the additions: this finds wrong layouts, paddings and groups.
TYPED_TEST(DnnConvolution, OfSmallIntegersIsExact) {
  int number = 0;
  for (const auto& shape : shapes()) {
    for (const bool with_bias : {false, true}) {
      SCOPED_TRACE(::testing::Message() << "shape " << number << ", bias " << with_bias);
      const auto x = integers(shape.x_size(), 2, 51), w = integers(shape.w_size(), 1, 52);
      const auto bias = integers(with_bias ? shape.options.output_channels : 0, 4, 53);
      const auto sums = naive_convolution(shape, x, w, bias);
      for (const auto& sum : sums) ASSERT_LE(sum.magnitude, 256);  // every integer is in bf16
      EXPECT_EQ(convolved<TypeParam>(shape, x, w, bias), values_of(sums));
    }
    ++number;
  }
}

/// Products are added in f32; tf32, FFT and Winograd would be further off.
TYPED_TEST(DnnConvolution, IsCloseToTheDefinition) {
  for (const auto& shape : shapes()) {
    const auto x = uniform<TypeParam>(shape.x_size(), 54);
    const auto w = uniform<TypeParam>(shape.w_size(), 55);
    const auto bias = uniform<TypeParam>(shape.options.output_channels, 56);
    const auto sums = naive_convolution(shape, x, w, bias);
    const auto y = convolved<TypeParam>(shape, x, w, bias);
    const auto terms = static_cast<double>(shape.group_channels() * Shape::volume(shape.w));
    ASSERT_EQ(y.size(), sums.size());
    for (std::size_t i = 0; i < y.size(); ++i) {
      auto allowed = 2 * (terms + 2) * kEpsilon<float> * sums[i].magnitude;
      // Rounded to a narrower dtype once, or twice where the bias is added apart.
      if (!std::is_same_v<TypeParam, float>)
        allowed += kEpsilon<TypeParam> * (std::abs(sums[i].value) + 1);
      ASSERT_LE(std::abs(y[i] - sums[i].value), allowed) << i;
    }
  }
}

TYPED_TEST(DnnConvolution, RepeatsTheSameBits) {
  for (const auto& shape : shapes()) {
    const auto x = uniform<TypeParam>(shape.x_size(), 57);
    const auto w = uniform<TypeParam>(shape.w_size(), 58);
    const auto bias = uniform<TypeParam>(shape.options.output_channels, 59);
    const auto first = convolved<TypeParam>(shape, x, w, bias);
    EXPECT_EQ(convolved<TypeParam>(shape, x, w, bias), first);
  }
}

/// There are more shapes than an engine keeps plans for, twice in the same order: each has lost its
/// plan when it comes again. Nobody waits in between.
TEST(DnnConvolutions, OfManyShapesFollowOneAnother) {
  constexpr std::int64_t kShapes = 70, kChannels = 8;
  const auto x = put(narrowed<float>(std::vector<double>(kShapes * kChannels, 1)));
  const auto w = put(narrowed<float>(std::vector<double>(kShapes * kChannels * kChannels, 1)));
  const auto y = put(std::vector<float>(2 * kShapes * kChannels));
  std::vector<Future<void>> done;
  for (std::int64_t i = 0; i < 2 * kShapes; ++i) {
    const auto n = i % kShapes + 1;  // the filter covers the whole input
    done.push_back(dnn::on(device()).convolution(x.slice(0, n * kChannels),
                                                 w.slice(0, n * kChannels * kChannels),
                                                 y.slice(i * kChannels, kChannels),
                                                 {.input_channels = kChannels,
                                                  .output_channels = kChannels,
                                                  .extents = {n},
                                                  .filter = {n}}));
    if (i == 0) {
      skip_unless_installed(done.back());
      if (::testing::Test::IsSkipped() || ::testing::Test::HasFatalFailure()) return;
    }
  }
  for (const auto& future : done) future.get();
  const auto sums = device().download(y);
  for (std::int64_t i = 0; i < 2 * kShapes * kChannels; ++i) {
    EXPECT_EQ(sums[static_cast<std::size_t>(i)],
              static_cast<float>((i / kChannels % kShapes + 1) * kChannels));
  }
}

TYPED_TEST(DnnConvolution, OfNothingDoesNothing) {
  using T = TypeParam;
  const auto x = put(std::vector<T>(8)), w = put(std::vector<T>(64));
  const auto y = put(narrowed<T>(std::vector<double>(8, 3)));
  dnn::on(device())
      .convolution(x, w, y,
                   {.batch = 0,
                    .input_channels = 8,
                    .output_channels = 8,
                    .extents = {5, 5},
                    .filter = {1, 1}})
      .get();
  EXPECT_EQ(widened(device().download(y)), std::vector<double>(8, 3));
}

TEST_F(BadArguments, OfConvolutions) {
  const auto other = put(std::vector<double>(16, 1.0)), filter = put(std::vector<double>(16, 1.0));
  const auto few = put(std::vector<float>(2));
  const Operand y = other.operand(), w = filter.operand(), bias = few.operand();
  // x: 2 x 4 x 2 channels of 4 bytes; w: 2 x (3 x 1) x 2 channels; y: 2 x 2 x 2 channels.
  const dnn::Convolution good{DType::f32, 2,         0,         1,         2,         2,
                              1,          {2, 4, 0}, {1, 3, 0}, {0, 0, 0}, {0, 0, 0}, {1, 1, 0},
                              {1, 1, 0},  x,         w,         bias,      y};
  ASSERT_TRUE(good.check().ok()) << good.check().error().message;
  const auto with = [&](auto change) {
    auto op = good;
    change(op);
    expect_refused(op);
  };
  constexpr auto kHuge = std::int64_t{1} << 40;
  with([](auto& op) { op.rank = 0; });
  with([](auto& op) { op.rank = 4; });
  with([](auto& op) { op.rank = 1; });  // the second numbers are not 0
  with([](auto& op) { op.rank = 3; });  // the third ones are
  with([](auto& op) { op.batch = -1; });
  with([](auto& op) { op.batch = kHuge; });
  with([](auto& op) { op.batch = 3; });
  with([](auto& op) { op.input_channels = 0; });
  with([](auto& op) { op.input_channels = kHuge; });
  with([](auto& op) { op.output_channels = 0; });
  with([](auto& op) { op.output_channels = 4; });  // bias
  with([](auto& op) { op.groups = 0; });
  with([](auto& op) { op.groups = -1; });
  with([](auto& op) { op.groups = 3; });
  with([](auto& op) { op.extents[0] = 0; });
  with([](auto& op) { op.extents[0] = -2; });
  with([](auto& op) { op.extents[0] = kHuge; });
  with([](auto& op) { op.extents[0] = 5; });
  with([](auto& op) { op.extents = {(kHuge >> 10) + 5, (kHuge >> 10) + 5, 0}; });
  with([](auto& op) { op.extents[2] = 1; });
  with([](auto& op) { op.filter[1] = 0; });
  with([](auto& op) { op.filter[1] = 5; });
  with([](auto& op) { op.filter[0] = 3; });
  with([](auto& op) { op.padding_before[0] = -1; });
  with([](auto& op) { op.padding_after[1] = -1; });
  with([](auto& op) { op.padding_before[1] = 20; });  // y is too small
  with([](auto& op) { op.padding_after[1] = kHuge; });
  with([](auto& op) { op.strides[0] = 0; });
  with([](auto& op) { op.strides[1] = kHuge; });
  with([](auto& op) { op.dilations[1] = 0; });
  with([](auto& op) { op.dilations[1] = 2; });  // the filter is larger than the input
  for (const auto operand : {&dnn::Convolution::x, &dnn::Convolution::w, &dnn::Convolution::y}) {
    with([&](auto& op) { op.*operand = absent; });
    with([&](auto& op) { (op.*operand).bytes = 8; });
    with([&](auto& op) {  // aligned to its elements alone
      (op.*operand).offset += 8;
      (op.*operand).bytes -= 8;
    });
  }
  with([](auto& op) { op.y = op.x; });
  with([](auto& op) { op.y = op.w; });
  auto wrong_type = good;
  wrong_type.dtype = DType::f64;
  expect_refused(wrong_type, Errc::unsupported);
  EXPECT_EQ(dnn::on(device())
                .convolution(
                    few, few, few,
                    {.input_channels = 1, .output_channels = 1, .extents = {1, 1}, .filter = {1}})
                .wait()
                .code(),
            Errc::invalid);
  (void)device().take_error();
}

TEST(DnnAccess, AllOfTheOutputsIsWritten) {
  const Operand some{1, 1, 1, 0, 0, 1 << 20};
  dnn::Convolution convolution{DType::bf16, 2,         0,         3,         4,         6,
                               2,           {9, 8, 0}, {3, 2, 0}, {1, 0, 0}, {0, 3, 0}, {2, 1, 0},
                               {1, 4, 0},   some,      some,      {},        some};
  EXPECT_EQ(convolution.output_extents(), (PerDimension{4, 7, 1}));
  EXPECT_EQ(convolution.written(convolution.y), 3u * 4 * 7 * 6 * 2);
  EXPECT_EQ(convolution.written(convolution.x), 0u);
  convolution.batch = 0;
  EXPECT_EQ(convolution.written(convolution.y), 0u);
}

}  // namespace
}  // namespace troupe::test
