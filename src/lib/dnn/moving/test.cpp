#include <troupe/lib/dnn.hpp>

#include <numeric>
#include <string>

#include "bad_arguments.hpp"
#include "dnn_numbers.hpp"

namespace troupe::test {
namespace {

using Indices = std::vector<std::int64_t>;

std::int64_t volume_of_all(const Indices& extents) {
  return std::accumulate(extents.begin(), extents.end(), std::int64_t{1}, std::multiplies<>());
}
/// The place of an index in a row-major tensor, and the index of a place.
std::int64_t row_major_place(const Indices& index, const Indices& extents) {
  std::int64_t place = 0;
  for (std::size_t i = 0; i < extents.size(); ++i) place = place * extents[i] + index[i];
  return place;
}
Indices row_major_index(std::int64_t place, const Indices& extents) {
  Indices index(extents.size());
  for (auto i = extents.size(); i-- > 0; place /= extents[i]) index[i] = place % extents[i];
  return index;
}
/// What it moves is told from what else there is: all of these numbers are exact in each type.
template <class T>
std::vector<T> counted_values(std::int64_t count) {
  std::vector<T> values;
  for (std::int64_t i = 0; i < count; ++i) {
    const auto value = i % 127 - 13;
    if constexpr (std::is_integral_v<T>)
      values.push_back(static_cast<T>(value));
    else
      values.push_back(from_float<T>(static_cast<float>(value)));
  }
  return values;
}
template <class T>
bool same_bits(const T& a, const T& b) {
  return std::memcmp(&a, &b, sizeof a) == 0;
}

template <class T>
class DnnMoving : public OfLayers<T> {};
using MovedTypes = ::testing::Types<Half, float, std::int8_t, std::int64_t>;
TYPED_TEST_SUITE(DnnMoving, MovedTypes);

TYPED_TEST(DnnMoving, TransposesInAnyOrder) {
  using T = TypeParam;
  const std::pair<Indices, Indices> cases[] = {
      {{5, 7}, {1, 0}},
      {{33, 40}, {1, 0}},
      {{2, 3, 4, 5}, {0, 2, 1, 3}},
      {{2, 3, 4, 5}, {3, 1, 0, 2}},
      {{4, 1, 6}, {1, 2, 0}},
      {{9}, {0}},
      {{2, 1, 3, 2, 1, 2, 3, 2}, {7, 6, 5, 4, 3, 2, 1, 0}}};
  for (const auto& [extents, order] : cases) {
    const auto values = counted_values<T>(volume_of_all(extents));
    const auto y = device().template alloc<T>(volume_of_all(extents));
    dnn::on(device()).transpose(put(values), y, extents, order).get();
    const auto moved = device().download(y);
    Indices swapped;
    for (const auto dimension : order)
      swapped.push_back(extents[static_cast<std::size_t>(dimension)]);
    for (std::int64_t i = 0; i < std::ssize(moved); ++i) {
      const auto to = row_major_index(i, swapped);
      Indices from(order.size());
      for (std::size_t k = 0; k < order.size(); ++k)
        from[static_cast<std::size_t>(order[k])] = to[k];
      ASSERT_TRUE(same_bits(moved[static_cast<std::size_t>(i)],
                            values[static_cast<std::size_t>(row_major_place(from, extents))]))
          << i;
    }
  }
}

TYPED_TEST(DnnMoving, TakesParts) {
  using T = TypeParam;
  const std::pair<Indices, dnn::Part> cases[] = {
      {{10}, {{3}, {4}}},
      {{10}, {{1}, {3}, {4}}},
      {{6, 7}, {{2, 0}, {3, 7}}},
      {{6, 7}, {{1, 1}, {3, 2}, {2, 5}}},
      {{3, 4, 5, 6}, {{0, 1, 2, 3}, {3, 2, 1, 2}, {1, 2, 1, 2}}},
      {{3, 4}, {{0, 0}, {3, 4}}}};
  for (const auto& [extents, part] : cases) {
    const auto values = counted_values<T>(volume_of_all(extents));
    const auto y = device().template alloc<T>(volume_of_all(part.extents));
    dnn::on(device()).slice(put(values), y, extents, part).get();
    const auto moved = device().download(y);
    for (std::int64_t i = 0; i < std::ssize(moved); ++i) {
      auto at = row_major_index(i, part.extents);
      for (std::size_t k = 0; k < at.size(); ++k)
        at[k] = part.first[k] + at[k] * (part.steps.empty() ? 1 : part.steps[k]);
      ASSERT_TRUE(same_bits(moved[static_cast<std::size_t>(i)],
                            values[static_cast<std::size_t>(row_major_place(at, extents))]))
          << i;
    }
  }
}

TYPED_TEST(DnnMoving, PutsPartsBehindOneAnother) {
  using T = TypeParam;
  constexpr std::int64_t kOuter = 3, kInner = 5;
  const std::int64_t lengths[] = {2, 1, 4};
  const auto all = counted_values<T>(kOuter * 7 * kInner);
  std::vector<std::vector<T>> parts(3);
  for (std::int64_t i = 0, next = 0; i < kOuter; ++i) {
    for (std::size_t k = 0; k < 3; ++k) {
      for (std::int64_t j = 0; j < lengths[k] * kInner; ++j)
        parts[k].push_back(all[static_cast<std::size_t>(next++)]);
    }
  }
  const auto y = device().template alloc<T>(std::ssize(all));
  dnn::on(device())
      .concatenate<T>({put(parts[0]), put(parts[1]), put(parts[2])}, y, kOuter, kInner)
      .get();
  const auto moved = device().download(y);
  for (std::size_t i = 0; i < all.size(); ++i) ASSERT_TRUE(same_bits(moved[i], all[i])) << i;
}

/// Tensors that lie with gaps and in another order, nodes behind one another, and another type of
/// the result: the columns of x in halves, the second one first, as rows.
TEST(DnnMovingGraph, NodesBehindOneAnother) {
  const auto probe = put(std::vector<Half>(8));
  skip_unless_installed(
      dnn::on(device()).pointwise(dnn::Mode::identity, probe, put(std::vector<Half>(8))));
  if (::testing::Test::IsSkipped() || ::testing::Test::HasFatalFailure()) return;
  constexpr std::int64_t kRows = 6, kColumns = 4, kStride = 9;
  dnn::Graph graph;
  const auto x = graph.input(DType::f16, dnn::Layout({kRows, kColumns}, {kStride, 2}));
  const auto half = [&](std::int64_t first) {
    return dnn::slice(graph, x, {{0, first}, {kRows, kColumns / 2}});
  };
  const auto turned =
      dnn::transpose(graph, dnn::concatenate(graph, {half(kColumns / 2), half(0)}, 1), {1, 0});
  const auto y = dnn::reshape(graph, turned, {2, kColumns / 2, kRows});
  graph.output(y, DType::f32, {kColumns / 2 * (kRows + 1), kRows + 1, 1});
  const auto values = integers(kRows * kStride, 100, 1);
  const auto made = put(std::vector<float>(kColumns * (kRows + 1), 7));
  dnn::on(device()).run(graph, {{x, put(narrowed<Half>(values))}, {y, made}}).get();
  const auto moved = device().download(made);
  for (std::int64_t column = 0; column < kColumns; ++column) {
    for (std::int64_t row = 0; row <= kRows; ++row) {
      const auto from = row * kStride + 2 * ((column + kColumns / 2) % kColumns);
      const auto expected = row == kRows ? 7 : values[static_cast<std::size_t>(from)];
      ASSERT_EQ(moved[static_cast<std::size_t>(column * (kRows + 1) + row)], expected)
          << row << " " << column;
    }
  }
}

/// With constants, and of integers and reals.
TEST(DnnMovingGraph, StandsBesideFunctionsAndReductions) {
  const auto x_ref = put(narrowed<float>({1, -2, 3, -4, 5, -6})),
             y_ref = put(std::vector<float>(8));
  skip_unless_installed(dnn::on(device()).pointwise(dnn::Mode::identity, x_ref, y_ref.slice(0, 6)));
  if (::testing::Test::IsSkipped() || ::testing::Test::HasFatalFailure()) return;
  dnn::Graph graph;
  const auto x = graph.input(DType::f32, {1, 2, 3});
  const auto n = graph.input(DType::i64, {2});
  const auto turned = dnn::transpose(graph, dnn::pointwise(graph, dnn::Mode::abs, x), {0, 2, 1});
  const auto with_sums = dnn::concatenate(
      graph, {turned, dnn::reduce(graph, dnn::ReduceOp::sum, turned, {1, 1, 2})}, 1);
  const auto factors = dnn::pointwise(graph, dnn::Mode::add, dnn::reshape(graph, n, {1, 1, 2}),
                                      graph.constant(0.5f, 3));
  const auto y = dnn::pointwise(graph, dnn::Mode::multiply, with_sums, factors);
  graph.output(y, DType::f32);
  dnn::on(device())
      .run(graph, {{x, x_ref}, {n, put(std::vector<std::int64_t>{1, -2})}, {y, y_ref}})
      .get();
  EXPECT_EQ(device().download(y_ref),
            (std::vector<float>{1.5f, -6, 3, -7.5f, 4.5f, -9, 9, -22.5f}));
}

/// Beside other nodes they are what cuDNN has not.
TEST(DnnMovingGraph, StandsBesideProductsOnTheCpu) {
  const auto a_ref = put(narrowed<Half>({1, 2, 3, 4}));
  const auto y_ref = put(std::vector<float>(4));
  skip_unless_installed(
      dnn::on(device()).pointwise(dnn::Mode::identity, a_ref, put(std::vector<Half>(4))));
  if (::testing::Test::IsSkipped() || ::testing::Test::HasFatalFailure()) return;
  dnn::Graph graph;
  const auto a = graph.input(DType::f16, {1, 2, 2});
  const auto y = dnn::transpose(graph, dnn::matmul(graph, a, a), {0, 2, 1});
  graph.output(y, DType::f32);
  if (answered_by_cpu(dnn::on(device()).run(graph, {{a, a_ref}, {y, y_ref}}),
                      "no node transpose")) {
    EXPECT_EQ(device().download(y_ref), (std::vector<float>{7, 15, 10, 22}));
  }
}

TEST(DnnMovingRefused, WhatCannotBe) {
  const auto x = device().alloc<float>(24), y = device().alloc<float>(24);
  auto layer = dnn::on(device());
  const auto refused = [](const std::string& why, const Future<void>& done) {
    const Result<void> result = done.wait();
    ASSERT_EQ(result.code(), Errc::invalid) << why;
    EXPECT_NE(result.error().message.find(why), std::string::npos) << result.error().message;
    (void)device().take_error();
  };
  refused("does not name each dimension once", layer.transpose(x, y, {4, 6}, {0, 0}));
  refused("does not name each dimension once", layer.transpose(x, y, {4, 6}, {1, 0, 2}));
  refused("has not one number for each dimension", layer.slice(x, y, {4, 6}, {{0}, {1, 1}}));
  refused("or a step is not positive", layer.slice(x, y, {4, 6}, {{0, 0}, {1, 1}, {0, 1}}));
  refused("a part begins before x", layer.slice(x, y, {4, 6}, {{-1, 0}, {1, 1}}));
  refused("a part ends behind x", layer.slice(x, y, {4, 6}, {{2, 0}, {3, 6}}));
  refused("a part ends behind x", layer.slice(x, y, {4, 6}, {{0, 0}, {2, 6}, {4, 1}}));
  refused("needs 30 elements, has 24", layer.slice(x, y, {5, 6}, {{0, 0}, {1, 6}}));
  refused("is not positive", layer.slice(x, y, {4, 6}, {{0, 0}, {0, 6}}));
  refused("there is no part", layer.concatenate<float>({}, y, 2));
  refused("needs 48 elements, has 24", layer.concatenate<float>({x, x}, y, 2, 3));
  refused("needs 25 elements, has 24", layer.concatenate<float>({x}, device().alloc<float>(25), 5));
  const auto run = [&](const std::string& why, auto add) {
    dnn::Graph graph;
    const auto in = graph.input(DType::f32, {4, 6});
    const auto out = add(graph, in);
    graph.output(out, DType::f32);
    refused(why, layer.run(graph, {{in, x}, {out, y}}));
  };
  run("not as many elements as x", [](auto& graph, auto in) {
    return dnn::reshape(graph, in, {4, 5});
  });
  run("no such dimension", [](auto& graph, auto in) { return dnn::concatenate(graph, {in}, 2); });
  run("more than 8", [](auto& graph, auto in) {
    return dnn::concatenate(graph, std::vector<dnn::TensorId>(9, in), 0);
  });
  run("different numbers of dimensions", [](auto& graph, auto in) {
    return dnn::concatenate(graph, {in, graph.constant(1, 3)}, 0);
  });
  run("another extent than the result", [](auto& graph, auto in) {
    return dnn::concatenate(graph, {in, graph.constant(1, 2)}, 0);
  });
}

}  // namespace
}  // namespace troupe::test
