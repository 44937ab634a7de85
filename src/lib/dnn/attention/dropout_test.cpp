#include <troupe/lib/dnn.hpp>

#include <algorithm>
#include <numeric>
#include <random>
#include <string>

#include "dnn_attention_runs.hpp"

namespace troupe::test {
namespace {

using dnn::Mask;

/// Dropout, sinks and pages of attention.
template <class T>
class DnnAttentionExtras : public Typed<T> {
 protected:
  void SetUp() override {
    const auto q = put(std::vector<T>(64)), o = put(std::vector<T>(64));
    skip_unless_installed(dnn::on(device()).attention(q, q, q, o, {.sequence_q = 1, .dim_qk = 64}));
  }
};
using ExtraTypes = ::testing::Types<Half, BFloat16>;
TYPED_TEST_SUITE(DnnAttentionExtras, ExtraTypes);

/// Draws the problem's mask as dnn::dropout_mask() does.
template <class T>
void draw_mask(AttentionProblem& problem, float probability, std::uint64_t seed) {
  const auto mask = device().alloc<T>(problem.queries() * problem.options.sequence_kv);
  dnn::on(device()).dropout_mask(mask, {.probability = probability, .seed = seed}).get();
  problem.dropout = probability;
  problem.dropout_mask = widened(device().download(mask));
}

/// Whether it is computed. Where cuDNN does not have the case, that is printed with the reason.
bool has_case(const Result<void>& done, const std::string& what) {
  if (done.ok()) return true;
  EXPECT_TRUE(on_cuda() && done.code() == Errc::unsupported) << what << done.error().message;
  std::printf("%s: %s\n", what.c_str(), done.error().message.c_str());
  return false;
}

/// Problems with dropout, with a sink, and with both.
template <class T>
std::vector<AttentionProblem> extra_problems() {
  const AttentionOptions shapes[] = {
      {.batch = 2, .heads_q = 4, .heads_kv = 2, .sequence_q = 64, .dim_qk = 32},
      {.batch = 1, .heads_q = 2, .sequence_q = 72, .sequence_kv = 136, .dim_qk = 64},
      {.batch = 2, .heads_q = 2, .sequence_q = 64, .dim_qk = 64, .mask = Mask::causal()}};
  std::vector<AttentionProblem> problems;
  for (const auto& shape : shapes) {
    for (int what = 1; what <= 3; ++what) {
      auto problem = filled<T>({shape});
      if ((what & 1) != 0) draw_mask<T>(problem, 0.25f, problems.size());
      if ((what & 2) != 0) problem.sink = uniform<float>(shape.heads_q, 70 + problems.size());
      problems.push_back(std::move(problem));
    }
  }
  return problems;
}

TYPED_TEST(DnnAttentionExtras, DropoutAndSinksAreThoseOfTheDefinition) {
  using T = TypeParam;
  int number = 0;
  for (const auto& problem : extra_problems<T>()) {
    const auto name = "problem " + std::to_string(number++);
    SCOPED_TRACE(name);
    AttentionOnDevice<T> on_device(problem);
    if (!has_case(on_device.forward(), name)) continue;
    const auto exact = exact_attention(problem, true), plain = plain_attention<T>(problem, true);
    EXPECT_TRUE(as_exact_as(narrowed<T>(plain.o), on_device.o(), exact.o));
    const auto stats = on_device.stats();
    for (std::size_t i = 0; i < stats.size(); ++i) ASSERT_NEAR(stats[i], exact.stats[i], 1e-4) << i;
    if (!problem.sink.empty()) {
      const auto d_sink = on_device.d_sink();
      for (std::size_t h = 0; h < d_sink.size(); ++h) {
        // From o, whose elements are rounded to T: a sum over all queries.
        ASSERT_NEAR(d_sink[h], exact.d_sink[h], 4 * kEpsilon<T>) << h;
      }
    }
    const auto backward = on_device.backward();
    if (on_cuda() && problem.dropout != 0) {  // which cuDNN computes wrongly
      EXPECT_EQ(backward.code(), Errc::unsupported);
      continue;
    }
    if (!has_case(backward, name + ", gradients")) continue;
    EXPECT_TRUE(as_exact_as(narrowed<T>(plain.d_q), on_device.d_q(), exact.d_q)) << "d_q";
    EXPECT_TRUE(as_exact_as(narrowed<T>(plain.d_k), on_device.d_k(), exact.d_k)) << "d_k";
    EXPECT_TRUE(as_exact_as(narrowed<T>(plain.d_v), on_device.d_v(), exact.d_v)) << "d_v";
  }
}

/// The derivative of the sum of d_o * o with regard to a sink, by central differences.
TEST(DnnAttentionSink, ItsGradientIsThatOfDifferences) {
  auto problem = filled<Half>({{.batch = 2, .heads_q = 2, .sequence_q = 5, .dim_qk = 8}});
  problem.sink = {0.5, -0.25};
  const auto exact = exact_attention(problem, true);
  const auto sum = [&](std::size_t head, double by) {
    auto moved = problem;
    moved.sink[head] += by;
    const auto o = exact_attention(moved).o;
    return std::inner_product(o.begin(), o.end(), moved.d_o.begin(), 0.0);
  };
  for (std::size_t h = 0; h < 2; ++h)
    EXPECT_NEAR((sum(h, 1e-5) - sum(h, -1e-5)) / 2e-5, exact.d_sink[h], 1e-8) << h;
}

/// The keys of a problem in pages of any order, with pages between them that are not its own.
TYPED_TEST(DnnAttentionExtras, TakesKeysFromPages) {
  using T = TypeParam;
  constexpr std::int64_t kSize = 16, kPages = 5;
  struct Case {
    AttentionOptions options;
    std::vector<std::int32_t> length_q, length_kv;
  };
  const Case cases[] = {{{.batch = 2,
                          .heads_q = 4,
                          .heads_kv = 2,
                          .sequence_q = 32,
                          .sequence_kv = kPages * kSize,
                          .dim_qk = 64},
                         {32, 32},
                         {80, 37}},
                        {{.batch = 2,
                          .heads_q = 2,
                          .heads_kv = 1,
                          .sequence_q = 1,
                          .sequence_kv = kPages * kSize,
                          .dim_qk = 64},
                         {1, 1},
                         {64, 5}}};
  for (const auto& one : cases) {
    const auto problem = filled<T>({one.options, {}, one.length_q, one.length_kv});
    const auto& shape = problem.options;
    const auto dim = shape.dim_qk, heads = shape.heads_kv;
    constexpr std::int64_t kThereAre = 13;
    std::vector<std::int32_t> places(kThereAre);
    std::iota(places.begin(), places.end(), 0);
    const auto shuffled = [&](std::uint64_t seed) {
      std::shuffle(places.begin(), places.end(), std::mt19937_64(seed));
      std::vector<std::int32_t> table(places.begin(), places.begin() + shape.batch * kPages);
      return table;
    };
    // By page, head, key of the page and dim.
    const auto in_pages = [&](const std::vector<double>& from,
                              const std::vector<std::int32_t>& table) {
      std::vector<double> pages(static_cast<std::size_t>(kThereAre * heads * kSize * dim), 100);
      for (std::int64_t b = 0; b < shape.batch; ++b) {
        for (std::int64_t key = 0; key < kPages * kSize; ++key) {
          const auto page = table[static_cast<std::size_t>(b * kPages + key / kSize)];
          for (std::int64_t h = 0; h < heads; ++h) {
            for (std::int64_t d = 0; d < dim; ++d) {
              pages[static_cast<std::size_t>(((page * heads + h) * kSize + key % kSize) * dim +
                                             d)] =
                  from[static_cast<std::size_t>(((b * kPages * kSize + key) * heads + h) * dim +
                                                d)];
            }
          }
        }
      }
      return put(narrowed<T>(pages));
    };
    const auto table_k = shuffled(1), table_v = shuffled(2);
    dnn::Graph graph;
    const auto pages = [&] { return graph.input(dtype_of<T>, {kThereAre, heads, kSize, dim}); };
    const auto table = [&] { return graph.input(DType::i32, {shape.batch, 1, kPages, 1}); };
    const auto lengths = [&] { return graph.input(DType::i32, {shape.batch, 1, 1, 1}); };
    dnn::AttentionInputs in{
        .q = graph.input(dtype_of<T>,
                         dnn::sequence_major(shape.batch, shape.heads_q, shape.sequence_q, dim)),
        .k = pages(),
        .v = pages()};
    in.length_q = lengths(), in.length_kv = lengths();
    in.page_table_k = table(), in.page_table_v = table();
    const auto made = dnn::attention(graph, in);
    graph.output(made.o, dtype_of<T>);
    const auto o = put(narrowed<T>(std::vector<double>(problem.d_o.size(), 7)));
    const auto done = dnn::on(device()).run(graph, {{in.q, put(narrowed<T>(problem.q))},
                                                    {in.k, in_pages(problem.k, table_k)},
                                                    {in.v, in_pages(problem.v, table_v)},
                                                    {in.length_q, put(problem.length_q)},
                                                    {in.length_kv, put(problem.length_kv)},
                                                    {in.page_table_k, put(table_k)},
                                                    {in.page_table_v, put(table_v)},
                                                    {made.o, o}});
    if (!answered(done, "pages")) continue;
    EXPECT_TRUE(as_exact_as(narrowed<T>(plain_attention<T>(problem).o), device().download(o),
                            exact_attention(problem).o));
  }
}

TEST(DnnAttentionExtrasRefused, WhatDoesNotFit) {
  const auto memory = device().alloc<Half>(256), made_memory = device().alloc<Half>(256);
  const auto numbers = device().alloc<float>(64);
  const auto integers = device().alloc<std::int32_t>(64);
  const auto refused = [&](const std::string& why, const dnn::AttentionRule& rule, auto add) {
    dnn::Graph graph;
    const auto q = graph.input(DType::f16, {1, 2, 4, 32});
    dnn::AttentionInputs in{q, q, q};
    std::vector<dnn::Bound> bound{{q, memory}};
    add(graph, in, bound);
    const auto made = dnn::attention(graph, in, rule);
    graph.output(made.o, DType::f16);
    bound.emplace_back(made.o, made_memory);
    const Result<void> result = dnn::on(device()).run(graph, bound).wait();
    ASSERT_EQ(result.code(), Errc::invalid) << why;
    EXPECT_NE(result.error().message.find(why), std::string::npos) << result.error().message;
    (void)device().take_error();
  };
  const auto with_mask = [&](const dnn::Layout& layout) {
    return [&, layout](auto& graph, auto& in, auto& bound) {
      in.dropout_mask = graph.input(DType::f32, layout);
      bound.emplace_back(in.dropout_mask, numbers);
    };
  };
  const auto with_sink = [&](DType dtype, const dnn::Layout& layout) {
    return [&, dtype, layout](auto& graph, auto& in, auto& bound) {
      in.sink = graph.input(dtype, layout);
      if (dtype == DType::f16)
        bound.emplace_back(in.sink, memory);
      else
        bound.emplace_back(in.sink, numbers);
    };
  };
  const auto nothing = [](auto&, auto&, auto&) {};
  dnn::AttentionRule dropping;
  dropping.dropout = 0.5f;
  refused("there is dropout without a mask", dropping, nothing);
  refused("the mask of dropout has not the extents", dropping, with_mask({1, 1, 4, 4}));
  dropping.dropout = 1;
  refused("negative, or not below 1", dropping, with_mask({1, 2, 4, 4}));
  refused("the sink is not one f32", {}, with_sink(DType::f32, {1, 1, 2, 1}));
  refused("the sink is not one f32", {}, with_sink(DType::f16, {1, 2, 1, 1}));
  const auto with_tables = [&](bool both, bool lengths, const dnn::Layout& layout) {
    return [&, both, lengths, layout](auto& graph, auto& in, auto& bound) {
      in.page_table_k = graph.input(DType::i32, layout);
      bound.emplace_back(in.page_table_k, integers);
      if (both) in.page_table_v = in.page_table_k;
      if (!lengths) return;
      in.length_q = in.length_kv = graph.input(DType::i32, {1, 1, 1, 1});
      bound.emplace_back(in.length_q, integers);
    };
  };
  refused("a page table of k or of v alone", {}, with_tables(false, true, {1, 1, 3, 1}));
  refused("page tables without lengths", {}, with_tables(true, false, {1, 1, 3, 1}));
  refused("not one i32 for each page", {}, with_tables(true, true, {3, 1, 1, 1}));
}

}  // namespace
}  // namespace troupe::test
