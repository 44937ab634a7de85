#include <troupe/lib/dnn.hpp>

#include <algorithm>
#include <cmath>
#include <string>

#include "bad_arguments.hpp"
#include "dnn_numbers.hpp"

namespace troupe::test {
namespace {

using dnn::SoftmaxKind;

/// PyTorch's tolerances, those of assert_close.
template <class T>
constexpr double softmax_tolerance() {
  return std::is_same_v<T, Half>       ? 1e-3
         : std::is_same_v<T, BFloat16> ? 1.6e-2
         : std::is_same_v<T, float>    ? 1.3e-6
                                       : 1e-7;
}
template <class T>
double number_of(T value) {
  if constexpr (std::is_same_v<T, double>)
    return value;
  else
    return static_cast<double>(to_float(value));
}
template <class T>
std::vector<T> softmax_array(const std::vector<double>& values) {
  if constexpr (std::is_same_v<T, double>)
    return values;
  else
    return narrowed<T>(values);
}

/// Softmax of an array outer by extent by inner, as PyTorch's documentation has it.
std::vector<double> softmax_of(SoftmaxKind kind, const std::vector<double>& x,
                               const SoftmaxShape& shape) {
  std::vector<double> y(x.size());
  const auto inner = static_cast<std::size_t>(shape.inner),
             each = static_cast<std::size_t>(shape.extent) * inner;
  for (std::size_t i = 0; i < x.size(); ++i) {
    const auto first = i / each * each + i % inner;
    double sum = 0;
    for (auto j = first; j < first + each; j += inner) sum += std::exp(x[j]);
    y[i] = kind == SoftmaxKind::softmax ? std::exp(x[i]) / sum : x[i] - std::log(sum);
  }
  return y;
}

template <class T>
class DnnSoftmaxes : public Typed<T> {
 protected:
  void SetUp() override {
    const auto x = put(std::vector<T>(8)), y = put(std::vector<T>(8));
    skip_unless_installed(dnn::on(device()).softmax(x, y, {.extent = 8}));
  }
  static Future<void> forward(SoftmaxKind kind, const GpuRef<T>& x, const GpuRef<T>& y,
                              const SoftmaxShape& shape) {
    auto on_device = dnn::on(device());
    return kind == SoftmaxKind::softmax ? on_device.softmax(x, y, shape)
                                        : on_device.log_softmax(x, y, shape);
  }
  static Future<void> backward(SoftmaxKind kind, const GpuRef<T>& dy, const GpuRef<T>& y,
                               const GpuRef<T>& dx, const SoftmaxShape& shape) {
    auto on_device = dnn::on(device());
    return kind == SoftmaxKind::softmax ? on_device.softmax_backward(dy, y, dx, shape)
                                        : on_device.log_softmax_backward(dy, y, dx, shape);
  }
  static void expect_near(const GpuRef<T>& actual, const std::vector<double>& exact) {
    const auto numbers = device().download(actual);
    double largest = 0;
    for (const auto number : exact) largest = std::max(largest, std::abs(number));
    const double allowed = 1e-7 + softmax_tolerance<T>() * largest;
    for (std::size_t i = 0; i < exact.size(); ++i)
      ASSERT_NEAR(number_of(numbers[i]), exact[i], allowed) << i;
  }
};
using SoftmaxTypes = ::testing::Types<Half, BFloat16, float, double>;
TYPED_TEST_SUITE(DnnSoftmaxes, SoftmaxTypes);

constexpr SoftmaxShape kSoftmaxShapes[] = {{40, 1}, {1, 1}, {1000, 1}, {7, 5}, {64, 16}};
constexpr SoftmaxKind kSoftmaxKinds[] = {SoftmaxKind::softmax, SoftmaxKind::log_softmax};

TYPED_TEST(DnnSoftmaxes, OverEachAxis) {
  using T = TypeParam;
  for (const auto& shape : kSoftmaxShapes) {
    const auto length = 6 * shape.extent * shape.inner;
    auto values = random_values<double>(length, 31);
    for (auto& value : values) value = number_of(softmax_array<T>({4 * value})[0]);
    const auto x = put(softmax_array<T>(values));
    const auto y = device().template alloc<T>(length);
    for (const auto kind : kSoftmaxKinds) {
      const Result<void> done = TestFixture::forward(kind, x, y, shape).wait();
      ASSERT_TRUE(done.ok()) << done.error().message;
      TestFixture::expect_near(y, softmax_of(kind, values, shape));
    }
  }
}

TYPED_TEST(DnnSoftmaxes, LargeNumbersDoNotOverflow) {
  using T = TypeParam;
  const auto x = put(softmax_array<T>({1000, 1000, -1000, 1000, 1000, -1000, 1000, -1000}));
  const auto y = device().template alloc<T>(8);
  dnn::on(device()).softmax(x, y, {.extent = 8}).get();
  TestFixture::expect_near(y, {0.2, 0.2, 0, 0.2, 0.2, 0, 0.2, 0});
}

TYPED_TEST(DnnSoftmaxes, GradientsAreThoseOfDifferences) {
  using T = TypeParam;
  for (const SoftmaxShape shape : {SoftmaxShape{40, 1}, SoftmaxShape{8, 4}}) {
    const auto length = 3 * shape.extent * shape.inner;
    const auto dy = random_values<double>(length, 33);
    const auto gradients = softmax_array<T>(dy);
    for (const auto kind : kSoftmaxKinds) {
      // y in T is what the gradient is told: x is what has exactly that, but for one rounding.
      auto x = random_values<double>(length, 32);
      const auto y = softmax_array<T>(softmax_of(kind, x, shape));
      const auto dx = device().template alloc<T>(length);
      const Result<void> done =
          TestFixture::backward(kind, put(gradients), put(y), dx, shape).wait();
      ASSERT_TRUE(done.ok()) << done.error().message;
      std::vector<double> exact;
      for (auto& number : x) {
        constexpr double h = 1e-4;
        const double at = number;
        const auto loss = [&](double value) {
          number = value;
          const auto result = softmax_of(kind, x, shape);
          double sum = 0;
          for (std::size_t i = 0; i < result.size(); ++i)
            sum += number_of(gradients[i]) * result[i];
          return sum;
        };
        const double above = loss(at + h), below = loss(at - h);
        exact.push_back((above - below) / (2 * h));
        number = at;
      }
      // Of log_softmax, y is about -4: its rounding changes exp(y) by four times as much.
      double largest = 0;
      for (const auto number : exact) largest = std::max(largest, std::abs(number));
      const auto numbers = device().download(dx);
      for (std::size_t i = 0; i < exact.size(); ++i) {
        ASSERT_NEAR(number_of(numbers[i]), exact[i], 4 * softmax_tolerance<T>() * largest)
            << "kind " << static_cast<int>(kind) << " at " << i;
      }
    }
  }
}

using DnnBadSoftmax = BadArguments;
TEST_F(DnnBadSoftmax, IsRefused) {
  const dnn::Softmax sound{DType::f64, SoftmaxKind::softmax, 0, 2, 4, 1, x, x};
  const auto refused = [&](auto change) {
    auto op = sound;
    change(op);
    expect_refused(op);
  };
  refused([](auto&) {});  // y overlaps x
  refused([](auto& op) { op.kind = static_cast<SoftmaxKind>(2); });
  refused([](auto& op) { op.outer = -1; });
  refused([](auto& op) { op.extent = 0; });
  refused([](auto& op) { op.inner = 0; });
  refused([](auto& op) { op.extent = 100; });
  refused([](auto& op) { op.outer = op.extent = op.inner = (std::int64_t{1} << 31) - 1; });
  refused([&](auto& op) { op.x = unaligned; });
  refused([&](auto& op) { op.y = absent; });
  expect_refused(dnn::SoftmaxBackward{DType::f64, SoftmaxKind::softmax, 0, 2, 4, 1, x, absent, x});
  auto other = put(std::vector<double>(7));
  const Result<void> short_of = dnn::on(device()).softmax(ref, other, {.extent = 4}).wait();
  ASSERT_EQ(short_of.code(), Errc::invalid);
  EXPECT_NE(short_of.error().message.find("y needs 8 elements, has 7"), std::string::npos)
      << short_of.error().message;
  (void)device().take_error();
}

}  // namespace
}  // namespace troupe::test
