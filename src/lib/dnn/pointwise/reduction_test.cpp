#include <troupe/lib/dnn.hpp>

#include <algorithm>
#include <cmath>
#include <vector>

#include "dnn_numbers.hpp"

namespace troupe::test {
namespace {

using dnn::Mode;
using dnn::ReduceOp;

template <class T>
class DnnReduction : public OfLayers<T> {};
using ReducedTypes = ::testing::Types<Half, BFloat16, float>;
TYPED_TEST_SUITE(DnnReduction, ReducedTypes);

TYPED_TEST(DnnReduction, SmallIntegersAreReducedExactly) {
  using T = TypeParam;
  const std::int64_t rows = 6, columns = 10, depth = 8;
  const auto values = integers(rows * columns * depth, 2, 6);
  const auto x = put(narrowed<T>(values));
  struct Case {
    ReduceOp reduction;
    double first;
    double (*joined)(double, double);
    double (*result)(double, double);  // of that and how many there are
  };
  const auto same = [](double sum, double) { return sum; };
  const auto add = [](double sum, double p) { return sum + p; };
  const Case cases[] = {
      {ReduceOp::sum, 0, add, same},
      {ReduceOp::prod, 1, [](double sum, double p) { return sum * p; }, same},
      {ReduceOp::min, 9, [](double sum, double p) { return std::min(sum, p); }, same},
      {ReduceOp::max, -9, [](double sum, double p) { return std::max(sum, p); }, same},
      {ReduceOp::max_abs, 0, [](double sum, double p) { return std::max(sum, std::abs(p)); }, same},
      {ReduceOp::avg, 0, add, [](double sum, double count) { return sum / count; }},
      {ReduceOp::norm1, 0, [](double sum, double p) { return sum + std::abs(p); }, same},
      {ReduceOp::norm2, 0, [](double sum, double p) { return sum + p * p; },
       [](double sum, double) { return std::sqrt(sum); }},
      {ReduceOp::prod_without_zeros, 1, [](double sum, double p) { return p == 0 ? sum : sum * p; },
       same},
  };
  // The channels, all but the channels, all, and what cuDNN has not at all.
  const std::vector<std::int64_t> extents{rows, columns, depth};
  for (const unsigned kept : {3u, 4u, 0u, 1u, 2u, 5u}) {
    auto reduced = extents;
    std::int64_t results = 1;
    for (std::size_t d = 0; d < 3; ++d)
      results *= reduced[d] = (kept >> d & 1) != 0 ? extents[d] : 1;
    const auto y = put_sevens<float>(results);
    for (const auto& one : cases) {
      const bool product = one.reduction == ReduceOp::prod_without_zeros;
      if (product && results * 64 < std::ssize(values)) continue;  // beyond f32
      dnn::on(device()).reduce(one.reduction, x, y, extents, reduced).get();
      std::vector<double> exact(static_cast<std::size_t>(results), one.first);
      for (std::int64_t i = 0; i < std::ssize(values); ++i) {
        std::int64_t at = 0;
        const std::int64_t index[] = {i / (columns * depth), i / depth % columns, i % depth};
        for (std::size_t d = 0; d < 3; ++d) at = at * reduced[d] + (reduced[d] == 1 ? 0 : index[d]);
        auto& sum = exact[static_cast<std::size_t>(at)];
        sum = one.joined(sum, values[static_cast<std::size_t>(i)]);
      }
      const auto actual = device().download(y);
      for (std::size_t i = 0; i < exact.size(); ++i) {
        const auto count = static_cast<double>(values.size() / exact.size());
        ASSERT_FLOAT_EQ(actual[i], static_cast<float>(one.result(exact[i], count)))
            << "reduction " << static_cast<int>(one.reduction) << ", kept " << kept;
      }
    }
  }
}

using DnnReductionOfF32 = DnnReduction<float>;
/// Of few results and many elements, which are added up in parts.
TEST_F(DnnReductionOfF32, SumsAreExactAndRepeatTheSameBits) {
  const auto values = random_values<float>(64 * 4096, 12);
  const auto x = put(values);
  for (const std::int64_t channels : {1, 2, 64}) {
    const auto rows = std::ssize(values) / channels;
    for (const bool of_channels : {true, false}) {
      const auto results = of_channels ? channels : rows;
      const auto y = device().alloc<float>(results);
      const auto sum = [&] {
        return dnn::on(device()).reduce(ReduceOp::sum, x, y, {1, rows, channels},
                                        {1, of_channels ? 1 : rows, of_channels ? channels : 1});
      };
      sum().get();
      const auto first = device().download(y);
      std::vector<double> exact(static_cast<std::size_t>(results));
      for (std::int64_t i = 0; i < std::ssize(values); ++i) {
        exact[static_cast<std::size_t>(of_channels ? i % channels : i / channels)] +=
            values[static_cast<std::size_t>(i)];
      }
      ASSERT_TRUE(close_to(first, exact)) << channels;
      for (int i = 0; i < (of_channels ? 10 : 2); ++i) {
        sum().get();
        ASSERT_EQ(device().download(y), first);
      }
    }
  }
}

/// The numbers of a tensor that is written and read by another node are rounded where they are
/// written.
TEST_F(DnnReductionOfF32, OutputsThatAreReadAreNotRounded) {
  dnn::Graph graph;
  const auto x = graph.input(DType::f32, {2, 3});
  const auto third = dnn::pointwise(graph, Mode::multiply, x, graph.constant(1.0f / 3, 2));
  const auto sum = dnn::reduce(graph, ReduceOp::sum, third, {2, 1});
  const auto turned = dnn::transpose(graph, third, {1, 0});
  graph.output(third, DType::f16, {4, 1});
  graph.output(sum, DType::f32);
  graph.output(turned, DType::f32);
  const auto third_ref = put_sevens<Half>(7);
  const auto sum_ref = device().alloc<float>(2), turned_ref = device().alloc<float>(6);
  dnn::on(device())
      .run(graph, {{x, put(std::vector<float>{1, 2, 3, 4, 5, 7})},
                   {third, third_ref},
                   {sum, sum_ref},
                   {turned, turned_ref}})
      .get();
  EXPECT_TRUE(close_to(device().download(sum_ref), {2, 16.0 / 3}));
  EXPECT_TRUE(
      close_to(device().download(turned_ref), {1.0 / 3, 4.0 / 3, 2.0 / 3, 5.0 / 3, 1, 7.0 / 3}));
  EXPECT_TRUE(
      close_to(device().download(third_ref), {1.0 / 3, 2.0 / 3, 1, 7, 4.0 / 3, 5.0 / 3, 7.0 / 3}));
}

}  // namespace
}  // namespace troupe::test
