#include <troupe/lib/dnn.hpp>

#include <cmath>
#include <string>

#include "bad_arguments.hpp"
#include "dnn_numbers.hpp"

namespace troupe::test {
namespace {

using dnn::RotaryPairs;

/// The angles' functions by position and pair, of the paper: position / 10000^(j / pairs).
std::vector<double> of_angles(const RotaryOptions& shape, double (*function)(double)) {
  const auto pairs = shape.rotated / 2;
  std::vector<double> values;
  for (std::int64_t i = 0; i < shape.sequence; ++i) {
    for (std::int64_t j = 0; j < pairs; ++j) {
      const auto share = static_cast<double>(j) / static_cast<double>(pairs);
      values.push_back(
          static_cast<float>(function(static_cast<double>(i) * std::pow(10000, -share))));
    }
  }
  return values;
}

/// The pairs as complex numbers, times cos + i sin, or its conjugate.
std::vector<double> turned_pairs(const std::vector<double>& x, const RotaryOptions& shape,
                                 const std::vector<double>& cos, const std::vector<double>& sin,
                                 double direction) {
  auto y = x;
  const auto pairs = shape.rotated / 2;
  for (std::int64_t row = 0; row < std::ssize(x) / shape.dim; ++row) {
    for (std::int64_t j = 0; j < pairs; ++j) {
      const bool halves = shape.pairs == RotaryPairs::halves;
      const auto a = static_cast<std::size_t>(row * shape.dim + (halves ? j : 2 * j)),
                 b = a + static_cast<std::size_t>(halves ? pairs : 1),
                 angle = static_cast<std::size_t>(row / shape.heads % shape.sequence * pairs + j);
      y[a] = x[a] * cos[angle] - direction * sin[angle] * x[b];
      y[b] = direction * sin[angle] * x[a] + x[b] * cos[angle];
    }
  }
  return y;
}

const RotaryOptions kRotations[] = {
    {.batch = 2, .sequence = 9, .heads = 3, .dim = 16, .rotated = 16},
    {.batch = 2,
     .sequence = 9,
     .heads = 3,
     .dim = 16,
     .rotated = 16,
     .pairs = RotaryPairs::neighbours},
    {.batch = 1, .sequence = 33, .heads = 2, .dim = 11, .rotated = 6},
    {.batch = 3,
     .sequence = 5,
     .heads = 1,
     .dim = 10,
     .rotated = 4,
     .pairs = RotaryPairs::neighbours},
    {.batch = 1, .sequence = 1, .heads = 1, .dim = 2, .rotated = 2}};

template <class T>
class DnnRotary : public OfLayers<T> {};
using RotaryTypes = ::testing::Types<Half, BFloat16, float>;
TYPED_TEST_SUITE(DnnRotary, RotaryTypes);

TYPED_TEST(DnnRotary, TurnsPairsAndTurnsGradientsBack) {
  using T = TypeParam;
  for (const auto& shape : kRotations) {
    const auto count = shape.batch * shape.sequence * shape.heads * shape.dim;
    const auto values = uniform<T>(count, 1);
    const auto cos = of_angles(shape, std::cos), sin = of_angles(shape, std::sin);
    const auto x = put(narrowed<T>(values));
    const auto of_cos = put(narrowed<float>(cos)), of_sin = put(narrowed<float>(sin));
    const auto y = device().template alloc<T>(count);
    for (const double direction : {1.0, -1.0}) {
      auto layer = dnn::on(device());
      (direction > 0 ? layer.rotary(x, of_cos, of_sin, y, shape)
                     : layer.rotary_backward(x, of_cos, of_sin, y, shape))
          .get();
      const auto actual = widened(device().download(y));
      const auto exact = turned_pairs(values, shape, cos, sin, direction);
      for (std::size_t i = 0; i < exact.size(); ++i) {
        // One rounding to T, and those of products and sums in f32.
        ASSERT_NEAR(actual[i], exact[i], kEpsilon<T> / 2 * std::abs(exact[i]) + 0x1p-22) << i;
      }
    }
  }
}

/// Small integers are exact: cos and sin of each head, x by head and then position, and what is
/// turned put into another order.
TEST(DnnRotaryGraph, OfAnyLayout) {
  const auto probe = put(std::vector<float>(8));
  skip_unless_installed(
      dnn::on(device()).pointwise(dnn::Mode::identity, probe, put(std::vector<float>(8))));
  if (::testing::Test::IsSkipped() || ::testing::Test::HasFatalFailure()) return;
  constexpr std::int64_t kHeads = 3, kPositions = 4, kDim = 6, kPairs = 2;
  const auto values = integers(kHeads * kPositions * kDim, 9, 1);
  const auto cos = integers(kHeads * kPairs, 3, 2), sin = integers(kHeads * kPairs, 3, 3);
  dnn::Graph graph;
  const auto x =
      graph.input(DType::f16, dnn::Layout({kHeads, kPositions, kDim}, {kDim, kHeads * kDim, 1}));
  const auto of_cos = graph.input(DType::f32, {kHeads, 1, kPairs});
  const auto of_sin = graph.input(DType::f32, {kHeads, 1, kPairs});
  const auto y = dnn::transpose(graph, dnn::rotary(graph, x, of_cos, of_sin), {2, 0, 1});
  graph.output(y, DType::f32);
  const auto made = device().alloc<float>(std::ssize(values));
  dnn::on(device())
      .run(graph, {{x, put(narrowed<Half>(values))},
                   {of_cos, put(narrowed<float>(cos))},
                   {of_sin, put(narrowed<float>(sin))},
                   {y, made}})
      .get();
  const auto actual = device().download(made);
  for (std::int64_t h = 0; h < kHeads; ++h) {
    for (std::int64_t i = 0; i < kPositions; ++i) {
      const auto* const row = values.data() + (i * kHeads + h) * kDim;
      for (std::int64_t d = 0; d < kDim; ++d) {
        const auto angle = static_cast<std::size_t>(h * kPairs + d % kPairs);
        const double expected = d < kPairs ? row[d] * cos[angle] - row[d + kPairs] * sin[angle]
                                : d < 2 * kPairs
                                    ? row[d] * cos[angle] + row[d - kPairs] * sin[angle]
                                    : row[d];
        ASSERT_EQ(actual[static_cast<std::size_t>((d * kHeads + h) * kPositions + i)], expected);
      }
    }
  }
}

TEST(DnnRotaryRefused, WhatCannotBe) {
  const auto x = device().alloc<float>(24), y = device().alloc<float>(24);
  const auto refused = [](const std::string& why, const Future<void>& done) {
    const Result<void> result = done.wait();
    ASSERT_EQ(result.code(), Errc::invalid) << why;
    EXPECT_NE(result.error().message.find(why), std::string::npos) << result.error().message;
    (void)device().take_error();
  };
  const auto call = [&](const RotaryOptions& shape) {
    return dnn::on(device()).rotary(x, x, x, y, shape);
  };
  refused("cos has more pairs than x", call({.sequence = 4, .dim = 6, .rotated = 8}));
  refused("unknown pairs", call({.sequence = 4, .dim = 6, .pairs = static_cast<RotaryPairs>(2)}));
  refused("needs 48 elements, has 24", call({.batch = 2, .sequence = 4, .dim = 6}));
  refused("is not positive", call({.sequence = 0, .dim = 6}));
  const auto graph_of = [&](const std::string& why, const dnn::Layout& cos,
                            const dnn::Layout& sin) {
    dnn::Graph graph;
    const auto in = graph.input(DType::f32, {4, 6});
    const auto of_cos = graph.input(DType::f32, cos), of_sin = graph.input(DType::f32, sin);
    const auto out = dnn::rotary(graph, in, of_cos, of_sin);
    graph.output(out, DType::f32);
    refused(why, dnn::on(device()).run(graph, {{in, x}, {of_cos, x}, {of_sin, x}, {out, y}}));
  };
  graph_of("cos and sin have different extents", {4, 3}, {1, 3});
  graph_of("not as many dimensions", {3}, {3});
  graph_of("another extent than x, and not 1", {2, 3}, {2, 3});
}

}  // namespace
}  // namespace troupe::test
