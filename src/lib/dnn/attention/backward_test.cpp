#include <troupe/lib/dnn.hpp>

#include <numeric>
#include <string>

#include "dnn_attention_runs.hpp"

namespace troupe::test {
namespace {

using dnn::Diagonal;
using dnn::Mask;

template <class T>
class DnnAttentionBackward : public Typed<T> {
 protected:
  void SetUp() override {
    const auto q = put(std::vector<T>(64)), o = put(std::vector<T>(64));
    skip_unless_installed(dnn::on(device()).attention(q, q, q, o, {.sequence_q = 1, .dim_qk = 64}));
  }
  /// The gradients of the device against exact ones, as far as the problem has them.
  static void expect_gradients(const AttentionOnDevice<T>& on_device, const AttentionNumbers& plain,
                               const AttentionNumbers& exact) {
    EXPECT_TRUE(as_exact_as(narrowed<T>(plain.d_q), on_device.d_q(), exact.d_q)) << "d_q";
    EXPECT_TRUE(as_exact_as(narrowed<T>(plain.d_k), on_device.d_k(), exact.d_k)) << "d_k";
    EXPECT_TRUE(as_exact_as(narrowed<T>(plain.d_v), on_device.d_v(), exact.d_v)) << "d_v";
    EXPECT_TRUE(as_exact_as(narrowed<T>(plain.d_bias), on_device.d_bias(), exact.d_bias))
        << "d_bias";
  }
};
using BackwardTypes = ::testing::Types<Half, BFloat16>;
TYPED_TEST_SUITE(DnnAttentionBackward, BackwardTypes);

TYPED_TEST(DnnAttentionBackward, IsAsExactAsAPlainImplementation) {
  int number = 0;
  for (const auto& shape : attention_problems()) {
    SCOPED_TRACE("problem " + std::to_string(number++));
    const auto problem = filled<TypeParam>(shape);
    AttentionOnDevice<TypeParam> on_device(problem);
    const auto forward = on_device.forward(), backward = on_device.backward();
    if (on_cuda() && cudnn_lacks(problem)) {
      // It may have the gradient, but then nothing to give it.
      EXPECT_EQ(forward.code(), Errc::unsupported);
      continue;
    }
    ASSERT_TRUE(forward.ok()) << forward.error().message;
    ASSERT_TRUE(backward.ok()) << backward.error().message;
    this->expect_gradients(on_device, plain_attention<TypeParam>(problem, true),
                           exact_attention(problem, true));
    EXPECT_TRUE(on_device.untouched());
    const auto d_q = widened(on_device.d_q()), d_k = widened(on_device.d_k()),
               d_v = widened(on_device.d_v()), d_bias = widened(on_device.d_bias());
    ASSERT_TRUE(on_device.backward().ok());
    EXPECT_EQ(widened(on_device.d_q()), d_q) << "the second time";
    EXPECT_EQ(widened(on_device.d_k()), d_k) << "the second time";
    EXPECT_EQ(widened(on_device.d_v()), d_v) << "the second time";
    EXPECT_EQ(widened(on_device.d_bias()), d_bias) << "the second time";
  }
}

/// The derivatives of the sum of d_o * o, by central differences of the definition.
std::vector<double> differences(AttentionProblem problem,
                                std::vector<double> AttentionProblem::*operand) {
  const auto sum = [&] {
    const auto o = exact_attention(problem).o;
    return std::inner_product(o.begin(), o.end(), problem.d_o.begin(), 0.0);
  };
  return central_differences(problem.*operand, sum, 1e-5);
}

TYPED_TEST(DnnAttentionBackward, IsThatOfDifferences) {
  AttentionOptions options{
      .batch = 2, .heads_q = 2, .heads_kv = 1, .sequence_q = 5, .sequence_kv = 6, .dim_qk = 8};
  std::vector<AttentionProblem> problems;
  for (const auto& mask : {Mask{}, Mask::causal(), Mask::causal(Diagonal::bottom_right),
                           Mask::window(2), Mask{Diagonal::top_left, 2, 1}}) {
    options.mask = mask;
    problems.push_back({options});
    problems.push_back({options, {}, {5, 3}, {4, 6}});
    if (mask.diagonal == Diagonal::top_left) problems.push_back({options, {1, 2, 5, 6}});
  }
  options.mask = Mask::causal();
  options.alibi = true;
  problems.push_back({options});
  int number = 0;
  for (const auto& shape : problems) {
    SCOPED_TRACE("problem " + std::to_string(number++));
    const auto problem = filled<TypeParam>(shape);
    AttentionNumbers exact;
    exact.d_q = differences(problem, &AttentionProblem::q);
    exact.d_k = differences(problem, &AttentionProblem::k);
    exact.d_v = differences(problem, &AttentionProblem::v);
    exact.d_bias = differences(problem, &AttentionProblem::bias);
    AttentionOnDevice<TypeParam> on_device(problem);
    const auto forward = on_device.forward(), backward = on_device.backward();
    ASSERT_TRUE(forward.ok()) << forward.error().message;
    ASSERT_TRUE(backward.ok()) << backward.error().message;
    this->expect_gradients(on_device, plain_attention<TypeParam>(problem, true), exact);
  }
}

/// Within what PyTorch allows for f32. cuDNN's attention is of narrow types.
TEST(DnnAttentionInF32, IsThatOfTheDefinition) {
  const auto any = put(std::vector<Half>(64)), to = put(std::vector<Half>(64));
  skip_unless_installed(
      dnn::on(device()).attention(any, any, any, to, {.sequence_q = 1, .dim_qk = 64}));
  if (::testing::Test::IsSkipped() || ::testing::Test::HasFatalFailure()) return;
  int number = 0;
  for (const auto& shape : attention_problems()) {
    SCOPED_TRACE("problem " + std::to_string(number++));
    const auto problem = filled<float>(shape);
    AttentionOnDevice<float> on_device(problem);
    const auto forward = on_device.forward(), backward = on_device.backward();
    const std::vector made{on_device.o(),   on_device.stats(), on_device.d_q(),
                           on_device.d_k(), on_device.d_v(),   on_device.d_bias()};
    if (on_cuda()) {
      EXPECT_EQ(forward.code(), Errc::unsupported);
      EXPECT_EQ(backward.code(), Errc::unsupported);
      EXPECT_TRUE(std::ranges::all_of(made, still_sevens<float>));
      EXPECT_TRUE(on_device.untouched());
      continue;
    }
    ASSERT_TRUE(forward.ok()) << forward.error().message;
    ASSERT_TRUE(backward.ok()) << backward.error().message;
    const auto exact = exact_attention(problem, true);
    EXPECT_TRUE(close_to(made[0], exact.o)) << "o";
    EXPECT_TRUE(close_to(made[2], exact.d_q)) << "d_q";
    EXPECT_TRUE(close_to(made[3], exact.d_k)) << "d_k";
    EXPECT_TRUE(close_to(made[4], exact.d_v)) << "d_v";
    EXPECT_TRUE(close_to(made[5], exact.d_bias)) << "d_bias";
  }
}

TEST(DnnAttentionBackwardRefused, WhatDoesNotFit) {
  const auto memory = device().alloc<Half>(256), made = device().alloc<Half>(256 * 4);
  const auto stats_memory = device().alloc<float>(8);
  const auto refused = [&](const std::string& why, bool with_bias, const dnn::Layout& of_stats,
                           const dnn::Layout& of_d_o) {
    dnn::Graph graph;
    const auto q = graph.input(DType::f16, {1, 2, 4, 32});
    const auto stats = graph.input(DType::f32, of_stats), d_o = graph.input(DType::f16, of_d_o);
    const auto gradients =
        dnn::attention_backward(graph, {q, q, q}, {q, stats}, d_o, {}, with_bias);
    graph.output(gradients.q, DType::f16);
    graph.output(gradients.k, DType::f16);
    graph.output(gradients.v, DType::f16);
    const auto result = dnn::on(device())
                            .run(graph, {{q, memory},
                                         {stats, stats_memory},
                                         {d_o, memory},
                                         {gradients.q, made.slice(0, 256)},
                                         {gradients.k, made.slice(256, 256)},
                                         {gradients.v, made.slice(512, 256)}})
                            .wait();
    ASSERT_EQ(result.code(), Errc::invalid) << why;
    EXPECT_NE(result.error().message.find(why), std::string::npos) << result.error().message;
    (void)device().take_error();
  };
  refused("stats has other extents", false, {1, 4, 2, 1}, {1, 2, 4, 32});
  refused("a gradient has other extents", false, {1, 2, 4, 1}, {1, 4, 2, 32});
  refused("or there is no bias", true, {1, 2, 4, 1}, {1, 2, 4, 32});
}

}  // namespace
}  // namespace troupe::test
