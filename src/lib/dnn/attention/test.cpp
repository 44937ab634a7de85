#include <troupe/lib/dnn.hpp>

#include <algorithm>
#include <limits>
#include <string>

#include "dnn_attention_runs.hpp"

namespace troupe::test {
namespace {

using dnn::Diagonal;
using dnn::Mask;

template <class T>
class DnnAttention : public Typed<T> {
 protected:
  void SetUp() override {
    const auto q = put(std::vector<T>(64)), o = put(std::vector<T>(64));
    skip_unless_installed(dnn::on(device()).attention(q, q, q, o, {.sequence_q = 1, .dim_qk = 64}));
  }
};
using NarrowTypes = ::testing::Types<Half, BFloat16>;
TYPED_TEST_SUITE(DnnAttention, NarrowTypes);

/// Runs each of the problems, with operands, that the engine has: run(problem, on device).
template <class T, class Run>
void with_each_problem(const Run& run) {
  int number = 0;
  for (const auto& shape : attention_problems()) {
    const auto problem = filled<T>(shape);
    AttentionOnDevice<T> on_device(problem);
    SCOPED_TRACE("problem " + std::to_string(number++));
    const auto done = on_device.forward();
    if (on_cuda() && cudnn_lacks(problem)) {
      EXPECT_EQ(done.code(), Errc::unsupported);
      continue;
    }
    ASSERT_TRUE(done.ok()) << done.error().message;
    run(problem, on_device);
  }
}

TYPED_TEST(DnnAttention, IsAsExactAsAPlainImplementation) {
  with_each_problem<TypeParam>([](const auto& problem, auto& on_device) {
    const auto exact = exact_attention(problem);
    const auto plain = plain_attention<TypeParam>(problem);
    const auto o = on_device.o();
    EXPECT_TRUE(as_exact_as(narrowed<TypeParam>(plain.o), o, exact.o));
    const auto stats = on_device.stats();
    for (std::size_t i = 0; i < stats.size(); ++i) {
      if (std::isinf(exact.stats[i])) {
        ASSERT_EQ(stats[i], exact.stats[i]) << "of the row " << i << ", which sees no key";
      } else {
        ASSERT_NEAR(stats[i], exact.stats[i], 1e-4) << i;
      }
    }
    ASSERT_TRUE(on_device.forward(false).ok());
    EXPECT_TRUE(as_exact_as(narrowed<TypeParam>(plain.o), on_device.o(), exact.o)) << "no stats";
    EXPECT_TRUE(on_device.untouched());
  });
}

TYPED_TEST(DnnAttention, RepeatsTheSameBits) {
  with_each_problem<TypeParam>([](const auto&, auto& on_device) {
    const auto o = widened(on_device.o());
    const auto stats = on_device.stats();
    ASSERT_TRUE(on_device.forward().ok());
    EXPECT_EQ(widened(on_device.o()), o);
    EXPECT_EQ(on_device.stats(), stats);
  });
}

/// Queries of 0 see all keys alike: o is the mean of v, and the sums of integers are exact.
TYPED_TEST(DnnAttention, OfEqualWeightsIsTheMean) {
  for (const std::int64_t heads_kv : {4, 2, 1}) {
    constexpr std::int64_t kKeys = 64;
    auto problem = filled<TypeParam>({{.batch = 2,
                                       .heads_q = 4,
                                       .heads_kv = heads_kv,
                                       .sequence_q = 24,
                                       .sequence_kv = kKeys,
                                       .dim_qk = 64}});
    std::fill(problem.q.begin(), problem.q.end(), 0.0);
    problem.v = integers(problem.keys() * problem.options.dim_v, 4, 65);
    AttentionOnDevice<TypeParam> on_device(problem);
    ASSERT_TRUE(on_device.forward().ok());
    EXPECT_EQ(widened(on_device.o()), exact_attention(problem).o);
    for (const auto value : on_device.stats()) EXPECT_NEAR(value, std::log(kKeys), 1e-5);
  }
}

/// With no room for others a query sees the one key of its diagonal, which then weighs 1.
TYPED_TEST(DnnAttention, TheDiagonalBeginsWhereItIsSaidTo) {
  constexpr std::int64_t kQueries = 32, kKeys = 64, kDim = 64;
  for (const auto diagonal : {Diagonal::top_left, Diagonal::bottom_right}) {
    const auto problem = filled<TypeParam>({{.batch = 2,
                                             .sequence_q = kQueries,
                                             .sequence_kv = kKeys,
                                             .dim_qk = kDim,
                                             .mask = Mask::window(1, diagonal)}});
    AttentionOnDevice<TypeParam> on_device(problem);
    const auto done = on_device.forward();
    ASSERT_TRUE(done.ok()) << done.error().message;
    const auto o = widened(on_device.o());
    const auto first = diagonal == Diagonal::top_left ? 0 : kKeys - kQueries;
    for (std::int64_t b = 0; b < 2; ++b) {
      for (std::int64_t i = 0; i < kQueries * kDim; ++i) {
        ASSERT_EQ(o[static_cast<std::size_t>(b * kQueries * kDim + i)],
                  problem.v[static_cast<std::size_t>((b * kKeys + first) * kDim + i)]);
      }
    }
  }
}

/// What lies beside an operand plays no part, even if it is not a number.
TYPED_TEST(DnnAttention, TakesNothingFromBesideItsOperands) {
  std::vector<AttentionProblem> shapes = attention_problems();
  std::erase_if(shapes, [](const auto& shape) {
    return shape.biased() || !shape.length_q.empty() || cudnn_lacks(shape);
  });
  shapes.push_back({{.sequence_q = 4, .sequence_kv = 2, .dim_qk = 8}});
  shapes.push_back({{.sequence_q = 4, .sequence_kv = 2, .dim_qk = 8, .scale = 0.0f}});
  constexpr std::int64_t kBeside = 4096;
  const auto among_nans = [](const std::vector<double>& values) {
    auto all = values;
    const std::vector<double> nans(kBeside, std::numeric_limits<double>::quiet_NaN());
    all.insert(all.begin(), nans.begin(), nans.end());
    all.insert(all.end(), nans.begin(), nans.end());
    return put(narrowed<TypeParam>(all)).slice(kBeside, std::ssize(values));
  };
  for (const auto& shape : shapes) {
    const auto problem = filled<TypeParam>(shape);
    AttentionOnDevice<TypeParam> on_device(problem);
    ASSERT_TRUE(on_device.forward(false).ok());
    const auto expected = widened(on_device.o());
    EXPECT_EQ(std::count_if(expected.begin(), expected.end(), [](double x) { return x != x; }), 0);
    const auto q = among_nans(problem.q), k = among_nans(problem.k), v = among_nans(problem.v);
    const auto o = put(narrowed<TypeParam>(std::vector<double>(expected.size(), 7)));
    dnn::on(device()).attention(q, k, v, o, problem.options).get();
    EXPECT_EQ(widened(device().download(o)), expected)
        << problem.options.sequence_q << " queries, " << problem.options.sequence_kv << " keys of "
        << problem.options.dim_qk;
  }
}

/// q, k and v as one tensor of a projection makes them, side by side: strides say where they are.
TYPED_TEST(DnnAttention, TakesPackedOperands) {
  const auto problem = filled<TypeParam>(
      {{.batch = 2, .heads_q = 4, .sequence_q = 64, .dim_qk = 32, .mask = Mask::causal()}});
  constexpr std::int64_t kRow = 4 * 32;
  std::vector<double> packed;
  for (std::int64_t token = 0; token < 2 * 64; ++token) {
    for (const auto* const from : {&problem.q, &problem.k, &problem.v})
      packed.insert(packed.end(), from->begin() + token * kRow, from->begin() + (token + 1) * kRow);
  }
  const auto memory = put(narrowed<TypeParam>(packed));
  dnn::Graph graph;
  const auto input = [&] {
    return graph.input(dtype_of<TypeParam>,
                       dnn::Layout({2, 4, 64, 32}, {64 * 3 * kRow, 32, 3 * kRow, 1}));
  };
  const auto q = input(), k = input(), v = input();
  const auto made = dnn::attention(graph, {q, k, v}, {.mask = Mask::causal()});
  graph.output(made.o, dtype_of<TypeParam>);
  const auto o = device().alloc<TypeParam>(2 * 64 * kRow);
  const auto from = [&](std::int64_t number) {
    return memory.slice(number * kRow, memory.length() - number * kRow);
  };
  const auto done =
      dnn::on(device()).run(graph, {{q, from(0)}, {k, from(1)}, {v, from(2)}, {made.o, o}}).wait();
  ASSERT_TRUE(done.ok()) << done.error().message;
  EXPECT_TRUE(as_exact_as(narrowed<TypeParam>(plain_attention<TypeParam>(problem).o),
                          device().download(o), exact_attention(problem).o));
}

/// What an attention that cannot be is refused with.
class DnnAttentionRefused : public ::testing::Test {
 protected:
  static void refuses(const std::string& why, const AttentionOptions& options) {
    const auto q = device().alloc<Half>(1024), o = device().alloc<Half>(1024);
    const auto stats = device().alloc<float>(64);
    is_refused(why, dnn::on(device()).attention(q, q, q, o, stats, options));
  }
  static void is_refused(const std::string& why, const Future<void>& future) {
    const auto refused = future.wait();
    ASSERT_EQ(refused.code(), Errc::invalid) << why;
    EXPECT_NE(refused.error().message.find(why), std::string::npos) << refused.error().message;
    (void)device().take_error();
  }
};

TEST_F(DnnAttentionRefused, OptionsThatCannotBe) {
  // 2 batches of 4 heads of 4 queries of 32 numbers fill q.
  const AttentionOptions good{
      .batch = 2, .heads_q = 4, .heads_kv = 2, .sequence_q = 4, .dim_qk = 32};
  const auto with = [&](const std::string& why, auto change) {
    auto options = good;
    change(options);
    refuses(why, options);
  };
  static constexpr auto kHuge = std::int64_t{1} << 40;
  with("is not positive", [](auto& to) { to.batch = 0; });
  with("is not positive", [](auto& to) { to.batch = -1; });
  with("needs 1536 elements, has 1024", [](auto& to) { to.batch = 3; });
  with("too large", [](auto& to) { to.batch = kHuge; });
  with("are no multiple of those", [](auto& to) { to.heads_kv = 3; });
  with("is not positive", [](auto& to) { to.heads_kv = -1; });
  with("is not positive", [](auto& to) { to.sequence_q = 0; });
  with("needs 1280 elements", [](auto& to) { to.sequence_q = 5; });
  with("too large", [](auto& to) { to.sequence_kv = kHuge; });
  with("is not positive", [](auto& to) { to.dim_qk = 0; });
  with("needs", [](auto& to) { to.dim_v = 64; });
  with("the scale is negative or not finite", [](auto& to) { to.scale = -0.5f; });
  with("the scale is negative or not finite",
       [](auto& to) { to.scale = std::numeric_limits<float>::quiet_NaN(); });
  with("the mask's left bound is not positive", [](auto& to) { to.mask.left = 0; });
  with("or its right one negative", [](auto& to) { to.mask.right = -1; });
  with("a bound of the mask is negative or too large", [](auto& to) { to.mask.left = kHuge; });
  with("unknown mask", [](auto& to) { to.mask.diagonal = static_cast<Diagonal>(2); });
  with("alibi needs a causal mask", [](auto& to) { to.alibi = true; });
  with("alibi needs a causal mask", [](auto& to) {
    to.alibi = true;
    to.mask = Mask::causal(Diagonal::bottom_right);
  });
  with("a length of queries or of keys alone",
       [](auto& to) { to.length_q = device().alloc<std::int32_t>(4); });
}

TEST_F(DnnAttentionRefused, TensorsThatDoNotFit) {
  const auto q_ref = device().alloc<Half>(256), o_ref = device().alloc<Half>(256);
  const auto bias_ref = device().alloc<Half>(64);
  const auto lengths = device().alloc<std::int32_t>(4);
  const auto with = [&](const std::string& why, const dnn::Layout& k_layout,
                        const dnn::Layout& bias_layout, const dnn::Layout& length_layout) {
    dnn::Graph graph;
    const auto q = graph.input(DType::f16, {1, 2, 4, 32});
    const auto k = graph.input(DType::f16, k_layout);
    const auto bias = graph.input(DType::f16, bias_layout);
    const auto length = graph.input(DType::i32, length_layout);
    const auto made = dnn::attention(graph, {q, k, q, bias, length, length});
    graph.output(made.o, DType::f16);
    is_refused(
        why,
        dnn::on(device()).run(
            graph, {{q, q_ref}, {k, q_ref}, {bias, bias_ref}, {length, lengths}, {made.o, o_ref}}));
  };
  with("has not four dimensions", {2, 4, 32}, {1, 1, 4, 4}, {1, 1, 1, 1});
  with("do not fit one another", {1, 2, 4, 16}, {1, 1, 4, 4}, {1, 1, 1, 1});
  with("do not fit one another", {1, 2, 3, 32}, {1, 1, 4, 4}, {1, 1, 1, 1});
  with("the bias has an extent", {1, 2, 4, 32}, {1, 1, 4, 3}, {1, 1, 1, 1});
  with("the bias has an extent", {1, 2, 4, 32}, {4, 4}, {1, 1, 1, 1});
  with("lengths are not one i32", {1, 2, 4, 32}, {1, 1, 4, 4}, {2, 1, 1, 1});
}

}  // namespace
}  // namespace troupe::test
