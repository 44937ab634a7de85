#include <troupe/lib/dnn.hpp>

#include <cmath>
#include <numbers>
#include <string>

#include "bad_arguments.hpp"
#include "dnn_numbers.hpp"

namespace troupe::test {
namespace {

using dnn::Layout;
using dnn::Mode;

/// Graphs, and functions of single elements.
template <class T>
class DnnGraph : public OfLayers<T> {};
using GraphTypes = ::testing::Types<Half, BFloat16, float>;
TYPED_TEST_SUITE(DnnGraph, GraphTypes);

double logistic(double x) {
  return 1 / (1 + std::exp(-x));
}

struct OneCase {
  Mode mode;
  double (*f)(double);
};
// Formulas as PyTorch's documentation has them.
const OneCase kOfOne[] = {
    {Mode::identity, [](double x) { return x; }},
    {Mode::abs, [](double x) { return std::abs(x); }},
    {Mode::negate, [](double x) { return -x; }},
    {Mode::exp, [](double x) { return std::exp(x); }},
    {Mode::erf, [](double x) { return std::erf(x); }},
    {Mode::sin, [](double x) { return std::sin(x); }},
    {Mode::cos, [](double x) { return std::cos(x); }},
    {Mode::ceil, [](double x) { return std::ceil(x); }},
    {Mode::floor, [](double x) { return std::floor(x); }},
    {Mode::relu, [](double x) { return std::max(x, 0.0); }},
    {Mode::sigmoid, logistic},
    {Mode::tanh, [](double x) { return std::tanh(x); }},
    {Mode::elu, [](double x) { return x > 0 ? x : std::exp(x) - 1; }},
    {Mode::gelu, [](double x) { return x / 2 * (1 + std::erf(x / std::numbers::sqrt2)); }},
    {Mode::gelu_tanh,
     [](double x) {
       return x / 2 * (1 + std::tanh(std::sqrt(2 / std::numbers::pi) * (x + 0.044715 * x * x * x)));
     }},
    {Mode::softplus, [](double x) { return std::log(1 + std::exp(x)); }},
    {Mode::swish, [](double x) { return x * logistic(x); }},
};

TYPED_TEST(DnnGraph, FunctionsOfOneElement) {
  using T = TypeParam;
  const std::int64_t n = 1000;
  auto values = uniform<T>(n, 1);
  for (auto& value : values) value *= 4;
  const auto x = put(narrowed<T>(values));
  const auto y = device().template alloc<T>(n);
  for (const auto& one : kOfOne) {
    const auto done = dnn::on(device()).pointwise(one.mode, x, y).wait();
    ASSERT_TRUE(done.ok()) << static_cast<int>(one.mode) << ": " << done.error().message;
    const auto actual = device().download(y);
    for (std::size_t i = 0; i < actual.size(); ++i) {
      const double exact = one.f(values[i]);
      // cuDNN approximates some functions, tanh to 2^-17.
      ASSERT_NEAR(to_float(actual[i]), exact, kEpsilon<T> * std::abs(exact) + 0x1p-16)
          << "mode " << static_cast<int>(one.mode) << " of " << values[i];
    }
  }
}

/// Beside a node that cuDNN lacks they are computed by other kernels than alone.
template <class T>
std::vector<double> beside_a_movement(Mode mode, const std::vector<std::vector<T>>& inputs,
                                      const dnn::PointwiseOptions& options = {}) {
  dnn::Graph graph;
  std::vector<dnn::Bound> memory;
  std::vector<GpuRef<T>> refs;
  std::vector<dnn::TensorId> in;
  const auto n = std::ssize(inputs[0]);
  for (const auto& values : inputs) {
    in.push_back(graph.input(dtype_of<T>, {n}));
    refs.push_back(put(values));
    memory.emplace_back(in.back(), refs.back());
  }
  const auto made = in.size() == 1   ? dnn::pointwise(graph, mode, in[0], options)
                    : in.size() == 2 ? dnn::pointwise(graph, mode, in[0], in[1], options)
                                     : dnn::pointwise(graph, mode, in[0], in[1], in[2]);
  const auto y = dnn::reshape(graph, made, {1, n});
  graph.output(y, DType::f32);
  const auto y_ref = put_sevens<float>(n);
  memory.emplace_back(y, y_ref);
  dnn::on(device()).run(graph, memory).get();
  return widened(device().download(y_ref));
}

TYPED_TEST(DnnGraph, FunctionsBesideMovements) {
  using T = TypeParam;
  auto values = uniform<T>(300, 13);
  for (auto& value : values) value *= 4;
  auto positive = values;
  for (auto& value : positive) value = to_float(rounded<T>(std::abs(value) + 0.1));
  const auto near = [](Mode mode, const std::vector<double>& actual, auto exact) {
    for (std::size_t i = 0; i < actual.size(); ++i) {
      ASSERT_NEAR(actual[i], exact(i), 0x1p-22 * std::max(1.0, std::abs(exact(i))))
          << "mode " << static_cast<int>(mode) << ", element " << i;
    }
  };
  for (const auto& one : kOfOne)
    near(one.mode, beside_a_movement<T>(one.mode, {narrowed<T>(values)}),
         [&](std::size_t i) { return one.f(values[i]); });
  const OneCase of_positive[] = {{Mode::reciprocal, [](double x) { return 1 / x; }},
                                 {Mode::sqrt, [](double x) { return std::sqrt(x); }},
                                 {Mode::rsqrt, [](double x) { return 1 / std::sqrt(x); }},
                                 {Mode::log, [](double x) { return std::log(x); }},
                                 {Mode::tan, [](double x) { return std::tan(x); }},
                                 {Mode::logical_not, [](double) { return 0.0; }}};
  for (const auto& one : of_positive)
    near(one.mode, beside_a_movement<T>(one.mode, {narrowed<T>(positive)}),
         [&](std::size_t i) { return one.f(positive[i]); });

  const auto a = integers(300, 2, 14), b = integers(300, 2, 15), c = integers(300, 1, 16);
  const std::pair<Mode, double (*)(double, double)> modes[] = {
      {Mode::add, [](double p, double q) { return p + q; }},
      {Mode::add_square, [](double p, double q) { return p + q * q; }},
      {Mode::subtract, [](double p, double q) { return p - q; }},
      {Mode::multiply, [](double p, double q) { return p * q; }},
      {Mode::maximum, [](double p, double q) { return std::max(p, q); }},
      {Mode::minimum, [](double p, double q) { return std::min(p, q); }},
      {Mode::equal, [](double p, double q) { return p == q ? 1.0 : 0; }},
      {Mode::not_equal, [](double p, double q) { return p != q ? 1.0 : 0; }},
      {Mode::greater, [](double p, double q) { return p > q ? 1.0 : 0; }},
      {Mode::greater_equal, [](double p, double q) { return p >= q ? 1.0 : 0; }},
      {Mode::less, [](double p, double q) { return p < q ? 1.0 : 0; }},
      {Mode::less_equal, [](double p, double q) { return p <= q ? 1.0 : 0; }},
      {Mode::logical_and, [](double p, double q) { return p != 0 && q != 0 ? 1.0 : 0; }},
      {Mode::logical_or, [](double p, double q) { return p != 0 || q != 0 ? 1.0 : 0; }}};
  for (const auto& [mode, f] : modes)
    near(mode, beside_a_movement<T>(mode, {narrowed<T>(a), narrowed<T>(b)}),
         [&, f = f](std::size_t i) { return f(a[i], b[i]); });
  const std::pair<Mode, double (*)(double, double)> of_two_positive[] = {
      {Mode::divide, [](double p, double q) { return p / q; }},
      {Mode::modulo, [](double p, double q) { return std::fmod(p, q); }},
      {Mode::power, [](double p, double q) { return std::pow(p, q); }}};
  for (const auto& [mode, f] : of_two_positive)
    near(mode,
         beside_a_movement<T>(
             mode, {narrowed<T>(positive), narrowed<T>({positive.rbegin(), positive.rend()})}),
         [&, f = f](std::size_t i) { return f(positive[i], positive[positive.size() - 1 - i]); });
  near(Mode::select,
       beside_a_movement<T>(Mode::select, {narrowed<T>(a), narrowed<T>(b), narrowed<T>(c)}),
       [&](std::size_t i) { return c[i] != 0 ? a[i] : b[i]; });
}

TYPED_TEST(DnnGraph, GradientsAreThoseOfDifferences) {
  using T = TypeParam;
  const std::int64_t n = 500;
  // Away from 0, where some have no gradient.
  auto values = uniform<T>(n, 2);
  for (auto& value : values) value = to_float(rounded<T>(value + (value < 0 ? -0.1 : 0.1)));
  const auto gradients = uniform<T>(n, 3);
  const auto x = put(narrowed<T>(values)), dy = put(narrowed<T>(gradients));
  const auto dx = device().template alloc<T>(n);
  const std::pair<Mode, Mode> pairs[] = {
      {Mode::relu, Mode::relu_backward},         {Mode::sigmoid, Mode::sigmoid_backward},
      {Mode::tanh, Mode::tanh_backward},         {Mode::elu, Mode::elu_backward},
      {Mode::gelu, Mode::gelu_backward},         {Mode::gelu_tanh, Mode::gelu_tanh_backward},
      {Mode::softplus, Mode::softplus_backward}, {Mode::swish, Mode::swish_backward}};
  for (const auto& [forward, backward] : pairs) {
    double (*const f)(double) =
        std::find_if(std::begin(kOfOne), std::end(kOfOne), [&](const auto& one) {
          return one.mode == forward;
        })->f;
    dnn::on(device()).pointwise(backward, dy, x, dx).get();
    const auto actual = device().download(dx);
    const auto beside =
        beside_a_movement<T>(backward, {narrowed<T>(gradients), narrowed<T>(values)});
    for (std::size_t i = 0; i < actual.size(); ++i) {
      constexpr double h = 1e-5;
      const double exact = gradients[i] * (f(values[i] + h) - f(values[i] - h)) / (2 * h);
      ASSERT_NEAR(to_float(actual[i]), exact, kEpsilon<T> * std::abs(exact) + 0x1p-16)
          << "mode " << static_cast<int>(backward) << " at " << values[i];
      ASSERT_NEAR(beside[i], exact, 0x1p-21 * std::max(1.0, std::abs(exact)))
          << "mode " << static_cast<int>(backward) << " at " << values[i];
    }
  }
}

TYPED_TEST(DnnGraph, FunctionsOfTwoElements) {
  using T = TypeParam;
  const std::int64_t n = 1000;
  const auto a = integers(n, 4, 4), b = integers(n, 3, 5);
  const auto a_ref = put(narrowed<T>(a)), b_ref = put(narrowed<T>(b));
  const auto y = device().template alloc<T>(n);
  const std::pair<Mode, double (*)(double, double)> modes[] = {
      {Mode::add, [](double p, double q) { return p + q; }},
      {Mode::subtract, [](double p, double q) { return p - q; }},
      {Mode::multiply, [](double p, double q) { return p * q; }},
      {Mode::maximum, [](double p, double q) { return std::max(p, q); }},
      {Mode::minimum, [](double p, double q) { return std::min(p, q); }},
      {Mode::add_square, [](double p, double q) { return p + q * q; }},
  };
  for (const auto& [mode, f] : modes) {
    dnn::on(device()).pointwise(mode, a_ref, b_ref, y).get();
    const auto actual = widened(device().download(y));
    for (std::size_t i = 0; i < actual.size(); ++i)
      ASSERT_EQ(actual[i], f(a[i], b[i])) << "mode " << static_cast<int>(mode);
  }
}

TYPED_TEST(DnnGraph, WhatLiesBetweenNodesIsNotRounded) {
  using T = TypeParam;
  const std::int64_t batch = 2, rows = 16, columns = 32;
  const auto x_values = uniform<T>(batch * rows * columns, 7), b_values = uniform<T>(columns, 8);
  dnn::Graph graph;
  const auto x = graph.input(dtype_of<T>, {batch, rows, columns});
  const auto bias = graph.input(dtype_of<T>, {1, 1, columns});
  const auto sum = dnn::pointwise(graph, Mode::add, x, bias);
  const auto scaled = dnn::pointwise(graph, Mode::multiply, sum, graph.constant(0.5f, 3));
  const auto y = dnn::pointwise(graph, Mode::relu, scaled);
  graph.output(y, DType::f32);
  const auto y_ref = device().template alloc<float>(batch * rows * columns);
  const auto done =
      dnn::on(device())
          .run(graph,
               {{x, put(narrowed<T>(x_values))}, {bias, put(narrowed<T>(b_values))}, {y, y_ref}})
          .wait();
  ASSERT_TRUE(done.ok()) << done.error().message;
  const auto actual = device().download(y_ref);
  for (std::size_t i = 0; i < actual.size(); ++i) {
    const auto exact =
        std::max(0.0, (x_values[i] + b_values[i % static_cast<std::size_t>(columns)]) / 2);
    ASSERT_NEAR(actual[i], exact, 0x1p-23 * std::abs(exact)) << i;
  }
}

using DnnGraphLayout = DnnGraph<float>;
TEST_F(DnnGraphLayout, StridesAreHeeded) {
  const std::int64_t rows = 8, columns = 16, pitch = 24;
  const auto values = integers(rows * pitch, 100, 9);
  dnn::Graph graph;
  const auto x = graph.input(DType::f32, Layout({1, rows, columns}, {rows * pitch, pitch, 1}));
  const auto y = dnn::pointwise(graph, Mode::negate, x);
  graph.output(y, DType::f32, {rows * columns, columns, 1});
  const auto y_ref = device().alloc<float>(rows * columns);
  dnn::on(device()).run(graph, {{x, put(narrowed<float>(values))}, {y, y_ref}}).get();
  const auto actual = device().download(y_ref);
  for (std::int64_t i = 0; i < rows * columns; ++i) {
    ASSERT_EQ(actual[static_cast<std::size_t>(i)],
              -values[static_cast<std::size_t>(i / columns * pitch + i % columns)]);
  }
}

TEST_F(DnnGraphLayout, ExtentsOfOneStandForAllIndices) {
  const Layout wholes[] = {{4, 8, 16},
                           Layout({4, 8, 16}, {8, 1, 32}),  // told to cuDNN it would come out wrong
                           dnn::channels_last(4, 16, {3, 2}),
                           dnn::channels_last(2, 8, {3, 2, 3})};
  for (const auto& whole : wholes) {
    const auto rank = whole.extents.size();
    std::int64_t count = 1;
    for (const auto extent : whole.extents) count *= extent;
    const auto a_values = integers(count, 50, 10), b_values = integers(count, 50, 11);
    for (unsigned pattern = 0; pattern < 1u << rank; ++pattern) {
      auto extents = whole.extents;
      std::int64_t part_count = 1;
      for (std::size_t i = 0; i < rank; ++i) {
        if ((pattern >> i & 1) != 0) extents[i] = 1;
        part_count *= extents[i];
      }
      const auto part = dnn::packed_like(whole, extents);
      dnn::Graph graph;
      const auto a = graph.input(DType::f32, whole), b = graph.input(DType::f32, part);
      const auto y = dnn::pointwise(graph, Mode::add, a, b);
      graph.output(y, DType::f32);
      const auto a_ref = put(narrowed<float>(a_values));
      const auto b_ref = put(narrowed<float>(b_values)).slice(0, part_count);
      const auto y_ref = device().alloc<float>(count);
      const auto done = dnn::on(device()).run(graph, {{a, a_ref}, {b, b_ref}, {y, y_ref}}).wait();
      ASSERT_TRUE(done.ok()) << done.error().message;
      const auto actual = device().download(y_ref);
      for (std::int64_t i = 0; i < count; ++i) {
        std::int64_t at_a = 0, at_b = 0, rest = i;
        for (auto d = rank; d-- > 0; rest /= whole.extents[d]) {
          const auto index = rest % whole.extents[d];
          at_a += index * whole.strides[d];
          at_b += extents[d] == 1 ? 0 : index * part.strides[d];
        }
        const auto to = static_cast<std::size_t>(at_a), from = static_cast<std::size_t>(at_b);
        ASSERT_EQ(actual[to], a_values[to] + b_values[from])
            << "rank " << rank << ", pattern " << pattern;
      }
    }
  }
}

/// What a graph that cannot be is refused with.
class DnnGraphRefused : public ::testing::Test {
 protected:
  static void refuses(const std::string& why, const dnn::Graph& graph,
                      std::initializer_list<dnn::Bound> memory) {
    const auto refused = dnn::on(device()).run(graph, memory).wait();
    ASSERT_EQ(refused.code(), Errc::invalid) << why;
    EXPECT_NE(refused.error().message.find(why), std::string::npos) << refused.error().message;
    (void)device().take_error();
  }
  GpuRef<float> x_ref = device().alloc<float>(64), y_ref = device().alloc<float>(64);
};

TEST_F(DnnGraphRefused, WhatCannotBe) {
  {
    dnn::Graph graph;
    const auto x = graph.input(DType::f32, {4, 4});
    dnn::pointwise(graph, Mode::relu, x);
    refuses("has no output", graph, {{x, x_ref}});
  }
  {
    dnn::Graph graph;
    const auto x = graph.input(DType::f32, {4, 4});
    const auto z = graph.input(DType::f32, {4, 3});
    const auto y = dnn::pointwise(graph, Mode::add, x, z);
    graph.output(y, DType::f32);
    refuses("another extent than the result", graph, {{x, x_ref}, {z, x_ref}, {y, y_ref}});
  }
  {
    dnn::Graph graph;
    const auto x = graph.input(DType::f32, {4, 4});
    const auto y = dnn::pointwise(graph, Mode::add, x);
    graph.output(y, DType::f32);
    refuses("the mode takes 2 inputs", graph, {{x, x_ref}, {y, y_ref}});
  }
  dnn::Graph graph;
  const auto x = graph.input(DType::f32, {8, 8});
  const auto y = dnn::pointwise(graph, Mode::relu, x);
  graph.output(y, DType::f32);
  refuses("tensor 1 has no memory", graph, {{x, x_ref}});
  refuses("for a tensor that it does not read", graph, {{x, x_ref}, {y, y_ref}, {x, x_ref}});
  refuses("tensor 0 is of f32, its memory of f64", graph,
          {{x, device().alloc<double>(64)}, {y, y_ref}});
  refuses("tensor 1 needs 64 elements, has 63", graph, {{x, x_ref}, {y, y_ref.slice(0, 63)}});
  refuses("tensor 0 is not aligned to 16 bytes", graph,
          {{x, device().alloc<float>(65).slice(1, 64)}, {y, y_ref}});
  refuses("overlap", graph, {{x, x_ref}, {y, x_ref}});
  {
    dnn::Graph strided;
    const auto in = strided.input(DType::f32, {8, 8});
    const auto out = dnn::pointwise(strided, Mode::relu, in);
    strided.output(out, DType::f32, {4, 1});
    refuses("share a place", strided, {{in, x_ref}, {out, y_ref}});
  }
  {
    dnn::Graph strided;
    refuses("no node", strided, {});
  }
}

}  // namespace
}  // namespace troupe::test
