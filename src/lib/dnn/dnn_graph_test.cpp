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
using dnn::Reduction;

/// Graphs, functions of single elements, and reductions.
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
    for (std::size_t i = 0; i < actual.size(); ++i) {
      constexpr double h = 1e-5;
      const double exact = gradients[i] * (f(values[i] + h) - f(values[i] - h)) / (2 * h);
      ASSERT_NEAR(to_float(actual[i]), exact, kEpsilon<T> * std::abs(exact) + 0x1p-16)
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

TYPED_TEST(DnnGraph, SmallIntegersAreReducedExactly) {
  using T = TypeParam;
  const std::int64_t rows = 24, columns = 40;
  const auto values = integers(rows * columns, 2, 6);
  const auto x = put(narrowed<T>(values));
  const auto y = device().template alloc<float>(rows);
  const std::pair<Reduction, double (*)(double, double)> reductions[] = {
      {Reduction::add, [](double sum, double p) { return sum + p; }},
      {Reduction::maximum, [](double sum, double p) { return std::max(sum, p); }},
      {Reduction::minimum, [](double sum, double p) { return std::min(sum, p); }},
      {Reduction::norm1, [](double sum, double p) { return sum + std::abs(p); }},
  };
  for (const auto& [reduction, f] : reductions) {
    const auto done = dnn::on(device()).reduce(reduction, x, y, {1, rows, columns}, {1, rows, 1});
    if (!answered(done, "reduction " + std::to_string(static_cast<int>(reduction)))) {
      ASSERT_TRUE(reduction == Reduction::add || reduction == Reduction::norm1);
      continue;
    }
    const auto actual = device().download(y);
    for (std::int64_t i = 0; i < rows; ++i) {
      const auto* const row = values.data() + i * columns;
      double exact = reduction == Reduction::norm1 ? std::abs(row[0]) : row[0];
      for (std::int64_t j = 1; j < columns; ++j) exact = f(exact, row[j]);
      ASSERT_EQ(actual[static_cast<std::size_t>(i)], exact) << static_cast<int>(reduction);
    }
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

/// Whether an engine that takes an input whose extents of 1 stand for all indices reads it rightly.
/// One that does not take it says so; it must take those of the bias of a layer.
TEST_F(DnnGraphLayout, ExtentsOfOneStandForAllIndices) {
  const Layout wholes[] = {
      {4, 8, 16}, dnn::channels_last(4, 16, {3, 2}), dnn::channels_last(2, 8, {3, 2, 3})};
  for (const auto& whole : wholes) {
    const auto rank = whole.extents.size();
    std::int64_t count = 1;
    for (const auto extent : whole.extents) count *= extent;
    const auto a_values = integers(count, 50, 10), b_values = integers(count, 50, 11);
    const auto channels = rank == 3 ? 2u : 1u;
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
      const bool bias = pattern == ((1u << rank) - 1) - (1u << channels);
      if (!done.ok() && !bias && pattern != 0) {
        EXPECT_EQ(done.code(), Errc::unsupported) << done.error().message;
        (void)device().take_error();
        continue;
      }
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

TEST_F(DnnGraphLayout, ReductionsRepeatTheSameBits) {
  const auto x = put(random_values<float>(64 * 4096, 12));
  const auto y = device().alloc<float>(64);
  const auto sum = [&] {
    return dnn::on(device()).reduce(Reduction::add, x, y, {1, 4096, 64}, {1, 1, 64});
  };
  if (!answered(sum(), "sums of channels")) return;
  const auto first = device().download(y);
  for (int i = 0; i < 20; ++i) {
    sum().get();
    ASSERT_EQ(device().download(y), first);
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
