#include <troupe/lib/dnn.hpp>
#include <troupe/lib/rng.hpp>

#include <limits>
#include <string>

#include "bad_arguments.hpp"
#include "dnn_numbers.hpp"

namespace troupe::test {
namespace {

using dnn::DropoutRule;

/// Which of n elements are kept, of the words of the library rng.
std::vector<bool> kept_by(const DropoutRule& rule, std::int64_t n, std::uint64_t moved = 0) {
  const auto memory = device().alloc<std::uint32_t>(n);
  device()
      .rng()
      .bits(memory, {.seed = rule.seed,
                     .subsequence = rule.offset >> 40,
                     .offset = (rule.offset + moved) % (std::uint64_t{1} << 40)})
      .get();
  std::vector<bool> kept;
  for (const auto word : device().download(memory))
    kept.push_back(word >= static_cast<double>(rule.probability) * 0x1p32);
  return kept;
}

const DropoutRule kDropoutRules[] = {{0.5f, 1, 0},
                                     {0.1f, 2, 3},
                                     {0.9f, std::uint64_t{1} << 40, 4 * 65536 - 2},
                                     {0, 4, 5},
                                     {0.25f, 5, (std::uint64_t{1} << 50) + 1}};

template <class T>
class DnnDropout : public OfLayers<T> {};
using DropoutTypes = ::testing::Types<Half, BFloat16, float>;
TYPED_TEST_SUITE(DnnDropout, DropoutTypes);

TYPED_TEST(DnnDropout, KeepsWhatTheWordsSay) {
  using T = TypeParam;
  constexpr std::int64_t kCount = 5001;
  const auto values = uniform<T>(kCount, 1);
  const auto x = put(narrowed<T>(values));
  const auto y = device().template alloc<T>(kCount), mask = device().template alloc<T>(kCount);
  for (const auto& rule : kDropoutRules) {
    dnn::on(device()).dropout(x, y, rule).get();
    dnn::on(device()).dropout_mask(mask, rule).get();
    const auto made = widened(device().download(y)), masked = widened(device().download(mask));
    const auto kept = kept_by(rule, kCount);
    const auto scale = static_cast<float>(1 / (1 - static_cast<double>(rule.probability)));
    for (std::size_t i = 0; i < kept.size(); ++i) {
      ASSERT_EQ(masked[i], kept[i] ? 1 : 0) << i;
      // One product in f32, rounded once more.
      const auto product = static_cast<float>(values[i]) * scale;
      ASSERT_EQ(made[i], kept[i] ? to_float(rounded<T>(product)) : 0) << i;
    }
  }
}

/// Of a tensor that lies in another order the elements are counted as if it did not, and y and the
/// mask are of one draw. What is dropped is 0 whatever it was.
TEST(DnnDropoutGraph, OfAnyLayoutAndMovedOffset) {
  const auto probe = put(std::vector<float>(8));
  skip_unless_installed(
      dnn::on(device()).pointwise(dnn::Mode::identity, probe, put(std::vector<float>(8))));
  if (::testing::Test::IsSkipped() || ::testing::Test::HasFatalFailure()) return;
  constexpr std::int64_t kRows = 30, kColumns = 50, kCount = kRows * kColumns;
  const DropoutRule rule{0.5f, 11, 7};
  dnn::Graph graph;
  const auto x = graph.input(DType::f32, dnn::Layout({kRows, kColumns}, {1, kRows}));
  const auto moved = graph.input(DType::i64, {1});
  const auto made = dnn::dropout(graph, x, rule, moved, true);
  graph.output(made.y, DType::f32);
  graph.output(made.mask, DType::i8, {kColumns, 1});
  auto values = uniform<float>(kCount, 3);
  for (std::int64_t times = 0; times < 3; ++times) {
    const auto kept = kept_by(rule, kCount, static_cast<std::uint64_t>(1000 * times));
    const auto place = [](std::int64_t i) {
      return static_cast<std::size_t>(i / kColumns + i % kColumns * kRows);
    };
    auto read = narrowed<float>(values);
    for (std::int64_t i = 0; i < kCount; ++i) {
      if (!kept[static_cast<std::size_t>(i)])
        read[place(i)] = std::numeric_limits<float>::quiet_NaN();
    }
    const auto y = device().alloc<float>(kCount);
    const auto mask = device().alloc<std::int8_t>(kCount);
    dnn::on(device())
        .run(graph, {{x, put(read)},
                     {moved, put(std::vector<std::int64_t>{1000 * times})},
                     {made.y, y},
                     {made.mask, mask}})
        .get();
    const auto dropped = device().download(y);
    const auto masked = device().download(mask);
    for (std::int64_t i = 0; i < kCount; ++i) {
      const bool stays = kept[static_cast<std::size_t>(i)];
      ASSERT_EQ(masked[static_cast<std::size_t>(i)], stays ? 1 : 0) << i;
      ASSERT_EQ(dropped[place(i)], stays ? read[place(i)] * 2 : 0) << i;
    }
  }
}

TEST(DnnDropoutRefused, WhatCannotBe) {
  const auto x = device().alloc<float>(24), y = device().alloc<float>(24);
  const auto refused = [](const std::string& why, const Future<void>& done) {
    const Result<void> result = done.wait();
    ASSERT_EQ(result.code(), Errc::invalid) << why;
    EXPECT_NE(result.error().message.find(why), std::string::npos) << result.error().message;
    (void)device().take_error();
  };
  for (const float probability : {-0.1f, 1.0f, std::numeric_limits<float>::quiet_NaN()}) {
    refused("the probability is negative, or not below 1",
            dnn::on(device()).dropout(x, y, {.probability = probability}));
  }
  refused("needs 24 elements", dnn::on(device()).dropout(x, device().alloc<float>(23), {}));
  dnn::Graph graph;
  const auto moved = graph.input(DType::i32, {1});
  const auto mask = dnn::dropout_mask(graph, {4}, {}, moved);
  graph.output(mask, DType::f32);
  refused("is not one i64 in memory",
          dnn::on(device()).run(graph, {{moved, device().alloc<std::int32_t>(1)}, {mask, x}}));
}

}  // namespace
}  // namespace troupe::test
