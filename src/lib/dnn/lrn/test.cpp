#include <troupe/lib/dnn.hpp>

#include <algorithm>
#include <cmath>
#include <string>

#include "bad_arguments.hpp"
#include "dnn_numbers.hpp"

namespace troupe::test {
namespace {

/// PyTorch's tolerances, those of assert_close.
template <class T>
constexpr double kLrnTolerance = std::is_same_v<T, Half>    ? 1e-3
                                 : std::is_same_v<T, float> ? 1.3e-6
                                                            : 1e-7;

template <class T>
std::vector<T> lrn_array(const std::vector<double>& values) {
  if constexpr (std::is_same_v<T, double>)
    return values;
  else
    return narrowed<T>(values);
}
template <class T>
std::vector<double> lrn_numbers(const std::vector<T>& values) {
  if constexpr (std::is_same_v<T, double>)
    return values;
  else
    return widened(values);
}

/// y of an array outer by channels by inner, of the definition.
std::vector<double> normalised(const std::vector<double>& x, const LrnShape& shape) {
  auto y = x;
  const auto each = shape.channels * shape.inner;
  const auto& rule = shape.rule;
  for (std::int64_t i = 0; i < std::ssize(x); ++i) {
    const auto c = i % each / shape.inner;
    double sum = 0;
    for (std::int64_t d = 0; d < shape.channels; ++d) {
      const auto from = d - (c - (rule.window - 1) / 2);
      if (from < 0 || from >= rule.window) continue;
      const auto other = x[static_cast<std::size_t>(i + (d - c) * shape.inner)];
      sum += other * other;
    }
    y[static_cast<std::size_t>(i)] *= std::pow(rule.k + rule.alpha / rule.window * sum, -rule.beta);
  }
  return y;
}

const LrnShape kLrnShapes[] = {{10, 6, {5, 0, 1, 0.75, 1}},   {16, 1, {3, 0, 2, 0.5, 0.5}},
                               {7, 4, {4, 0, 1, 1, 2}},       {5, 3, {1, 0, 0.5, 0.75, 1}},
                               {3, 5, {16, 0, 1, 0.75, 1.5}}, {24, 10, {}}};

template <class T>
class DnnLrns : public Typed<T> {
 protected:
  void SetUp() override {
    const auto x = put(std::vector<T>(8)), y = put(std::vector<T>(8));
    skip_unless_installed(dnn::on(device()).softmax(x, y, {.extent = 8}));
  }
  static void expect_near(const GpuRef<T>& actual, const std::vector<double>& exact, double times) {
    const auto numbers = lrn_numbers(device().download(actual));
    double largest = 0;
    for (const auto number : exact) largest = std::max(largest, std::abs(number));
    for (std::size_t i = 0; i < exact.size(); ++i)
      ASSERT_NEAR(numbers[i], exact[i], times * kLrnTolerance<T> * largest) << i;
  }
};
using LrnTypes = ::testing::Types<Half, float, double>;
TYPED_TEST_SUITE(DnnLrns, LrnTypes);

TYPED_TEST(DnnLrns, OverAnyWindow) {
  using T = TypeParam;
  for (const auto& shape : kLrnShapes) {
    const auto length = 4 * shape.channels * shape.inner;
    const auto array = lrn_array<T>(random_values<double>(length, 41));
    const auto y = device().template alloc<T>(length);
    dnn::on(device()).lrn(put(array), y, shape).get();
    // Powers are approximated on a GPU.
    TestFixture::expect_near(y, normalised(lrn_numbers(array), shape), 4);
  }
}

TYPED_TEST(DnnLrns, GradientsAreThoseOfDifferences) {
  using T = TypeParam;
  for (const auto& shape : kLrnShapes) {
    const auto length = 2 * shape.channels * shape.inner;
    const auto array = lrn_array<T>(random_values<double>(length, 42)),
               gradients = lrn_array<T>(random_values<double>(length, 43));
    auto x = lrn_numbers(array);
    const auto dy = lrn_numbers(gradients);
    const auto y = lrn_array<T>(normalised(x, shape));
    const auto dx = device().template alloc<T>(length);
    dnn::on(device()).lrn_backward(put(array), put(y), put(gradients), dx, shape).get();
    std::vector<double> exact;
    for (auto& number : x) {
      constexpr double h = 1e-5;
      const auto at = number;
      const auto loss = [&](double value) {
        number = value;
        const auto result = normalised(x, shape);
        double sum = 0;
        for (std::size_t i = 0; i < result.size(); ++i) sum += dy[i] * result[i];
        return sum;
      };
      exact.push_back((loss(at + h) - loss(at - h)) / (2 * h));
      number = at;
    }
    TestFixture::expect_near(dx, exact, 8);
  }
}

using DnnBadLrn = BadArguments;
TEST_F(DnnBadLrn, IsRefused) {
  const dnn::Lrn sound{DType::f64, {}, 2, 4, 1, x, x};
  const auto refused = [&](auto change) {
    auto op = sound;
    change(op);
    expect_refused(op);
  };
  refused([](auto&) {});  // y overlaps x
  refused([](auto& op) { op.rule.window = 0; });
  refused([](auto& op) { op.rule.window = 17; });
  refused([](auto& op) { op.rule.reserved = 1; });
  refused([](auto& op) { op.rule.alpha = std::nan(""); });
  refused([](auto& op) { op.rule.beta = 0; });
  refused([](auto& op) { op.rule.k = 0; });
  refused([](auto& op) { op.outer = -1; });
  refused([](auto& op) { op.extent = 0; });
  refused([](auto& op) { op.inner = 0; });
  refused([](auto& op) { op.extent = 100; });
  refused([](auto& op) { op.outer = op.extent = op.inner = (std::int64_t{1} << 31) - 1; });
  refused([&](auto& op) { op.x = unaligned; });
  refused([&](auto& op) { op.y = absent; });
  expect_refused(dnn::LrnBackward{DType::f64, {}, 2, 4, 1, x, absent, x, x});
  const auto other = put(std::vector<double>(7));
  const Result<void> short_of = dnn::on(device()).lrn(ref, other, {.channels = 4}).wait();
  ASSERT_EQ(short_of.code(), Errc::invalid);
  EXPECT_NE(short_of.error().message.find("y needs 8 elements, has 7"), std::string::npos)
      << short_of.error().message;
  (void)device().take_error();
}

}  // namespace
}  // namespace troupe::test
