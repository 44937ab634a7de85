#include <troupe/lib/dnn.hpp>
#include <troupe/sequence.hpp>

#include <limits>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "dnn_numbers.hpp"
#include "reference/recurrent.hpp"

namespace troupe::test {
namespace {

using dnn::RnnCell;

constexpr double kRnnNaN = std::numeric_limits<double>::quiet_NaN();

template <class T>
class DnnRnn : public Typed<T> {
 protected:
  void SetUp() override {
    const RnnOptions options{.cell = RnnCell::tanh, .time = 1, .input = 8, .hidden = 8};
    const auto x = put(std::vector<T>(8)), y = put(std::vector<T>(8));
    const auto w = put(std::vector<T>(static_cast<std::size_t>(options.shape().w_elements())));
    skip_unless_installed(dnn::on(device()).rnn<T>({.x = x, .w = w, .y = y}, options));
  }
};
using RnnTypes = ::testing::Types<Half, BFloat16, float>;
TYPED_TEST_SUITE(DnnRnn, RnnTypes);

/// Numbers for a network that T represents; weights are small enough that no gate is saturated.
template <class T>
RnnNumbers rnn_numbers(const RnnOptions& options, bool with_initial, std::uint64_t seed) {
  const auto shape = options.shape();
  RnnNumbers numbers{
      uniform<T>(shape.x_elements(), seed), uniform<T>(shape.w_elements(), seed + 1), {}};
  for (auto& weight : numbers.w) weight = static_cast<double>(to_float(rounded<T>(weight / 2)));
  if (with_initial) numbers.initial = uniform<T>(shape.state_elements(), seed + 2);
  return numbers;
}

/// What an implementation makes whose steps are all rounded to T.
template <class T>
RnnResults plain_rnn(const RnnOptions& options, const RnnNumbers& numbers) {
  const auto round = [](double x) { return static_cast<double>(to_float(rounded<T>(x))); };
  return RnnOracle<float, decltype(round)>(options, numbers, round).compute();
}

/// What is behind the end of a sequence becomes `value`.
std::vector<double> filled_behind_ends(const RnnOptions& options, std::vector<double> all,
                                       std::int64_t elements, double value) {
  for (std::int64_t b = 0; b < options.batch && !options.lengths.empty(); ++b) {
    const auto length = options.lengths[static_cast<std::size_t>(b)];
    std::fill(all.begin() + (b * options.time + length) * elements,
              all.begin() + (b + 1) * options.time * elements, value);
  }
  return all;
}

GpuRef<std::uint8_t> reserve_of(std::int64_t bytes) {
  return device().alloc<std::uint8_t>(bytes);
}
template <class T>
GpuRef<std::uint8_t> reserve_for(const RnnOptions& options) {
  return reserve_of(dnn::on(device()).rnn_reserve<T>(options).get());
}

/// The tensors of a network. What x has behind the ends is NaN.
template <class T>
RnnTensors<T> rnn_tensors(const RnnOptions& options, const RnnNumbers& numbers) {
  const auto shape = options.shape();
  RnnTensors<T> tensors{
      .x = put(narrowed<T>(filled_behind_ends(options, numbers.x, shape.input, kRnnNaN))),
      .w = put(narrowed<T>(numbers.w)),
      .y = put_sevens<T>(shape.y_elements()),
      .final = put_sevens<T>(shape.state_elements())};
  if (!numbers.initial.empty()) tensors.initial = put(narrowed<T>(numbers.initial));
  return tensors;
}

std::string rnn_named(const RnnOptions& options) {
  return "cell " + std::to_string(static_cast<int>(options.cell)) + ", " +
         std::to_string(options.layers) + " layers, directions " +
         std::to_string(options.shape().directions) + ", batch " + std::to_string(options.batch) +
         ", time " + std::to_string(options.time) + ", hidden " + std::to_string(options.hidden) +
         (options.lengths.empty() ? "" : ", lengths");
}

/// Networks of every cell.
std::vector<RnnOptions> rnns() {
  std::vector<RnnOptions> all;
  for (const auto cell : kRnnCells) {
    all.push_back({.cell = cell, .batch = 3, .time = 5, .input = 16, .hidden = 24});
    all.push_back({.cell = cell, .bias = false, .time = 1, .input = 8, .hidden = 8});
    all.push_back({.cell = cell,
                   .layers = 3,
                   .both_directions = true,
                   .batch = 2,
                   .time = 4,
                   .input = 8,
                   .hidden = 16});
    all.push_back({.cell = cell, .layers = 2, .batch = 4, .time = 3, .input = 5, .hidden = 7});
    all.push_back({.cell = cell,
                   .layers = 2,
                   .both_directions = true,
                   .batch = 4,
                   .time = 6,
                   .input = 8,
                   .hidden = 8,
                   .lengths = {6, 1, 4, 2}});
    all.push_back({.cell = cell,
                   .bias = false,
                   .batch = 3,
                   .time = 5,
                   .input = 3,
                   .hidden = 8,
                   .lengths = {2, 3, 1}});
  }
  return all;
}

TYPED_TEST(DnnRnn, AsExactAsTheFormulasRoundedStepByStep) {
  using T = TypeParam;
  for (const auto& options : rnns()) {
    for (const bool training : {false, true}) {
      const auto numbers = rnn_numbers<T>(options, training, 11);
      auto tensors = rnn_tensors<T>(options, numbers);
      if (training) tensors.reserve = reserve_for<T>(options);
      const Result<void> done = dnn::on(device()).rnn(tensors, options).wait();
      ASSERT_TRUE(done.ok()) << rnn_named(options) << ": " << done.error().message;
      const auto exact = exact_rnn(options, numbers);
      const auto plain = plain_rnn<T>(options, numbers);
      EXPECT_TRUE(as_exact_as(narrowed<T>(plain.y), device().download(tensors.y), exact.y))
          << rnn_named(options);
      EXPECT_TRUE(
          as_exact_as(narrowed<T>(plain.final), device().download(tensors.final), exact.final))
          << rnn_named(options);
    }
  }
}

TYPED_TEST(DnnRnn, WeightsMeetTheNumbersThatTheyAreSaidToMeet) {
  using T = TypeParam;
  // relu, and x of positive integers: a matrix W that is the identity hands them on as they are.
  const RnnOptions options{.cell = RnnCell::relu,
                           .layers = 2,
                           .both_directions = true,
                           .batch = 2,
                           .time = 3,
                           .input = 8,
                           .hidden = 8};
  const auto shape = options.shape();
  auto x = integers(shape.x_elements(), 10, 5);
  for (auto& value : x) value += 11;
  for (std::uint32_t below = 0; below < 2; ++below) {
    for (std::uint32_t above = 0; above < 2; ++above) {
      std::vector<double> w(static_cast<std::size_t>(shape.w_elements()));
      const auto first = dnn::rnn_matrix_place(shape, {0, below, 0, false});
      const auto second = dnn::rnn_matrix_place(shape, {1, above, 0, false});
      for (std::int64_t i = 0; i < 8; ++i) {
        w[static_cast<std::size_t>(first.offset + i * first.columns + i)] = 1;
        w[static_cast<std::size_t>(second.offset + i * second.columns + below * 8 + i)] = 1;
      }
      w[static_cast<std::size_t>(dnn::rnn_bias_place(shape, {1, above, 0, true}).offset + 3)] = 4;
      std::vector<double> expected(static_cast<std::size_t>(shape.y_elements()));
      for (std::size_t row = 0; row < 6; ++row) {
        for (std::size_t i = 0; i < 8; ++i)
          expected[row * 16 + above * 8 + i] = x[row * 8 + i] + (i == 3 ? 4 : 0);
      }
      const auto tensors = rnn_tensors<T>(options, {x, w, {}});
      dnn::on(device()).rnn(tensors, options).get();
      EXPECT_EQ(widened(device().download(tensors.y)), expected) << below << above;
    }
  }
}

TYPED_TEST(DnnRnn, IsZeroBehindTheEnds) {
  using T = TypeParam;
  for (const auto& options : rnns()) {
    if (options.lengths.empty()) continue;
    const auto tensors = rnn_tensors<T>(options, rnn_numbers<T>(options, true, 3));
    dnn::on(device()).rnn(tensors, options).get();
    const auto y = widened(device().download(tensors.y));
    const auto elements = options.shape().directions * options.hidden;
    EXPECT_EQ(y, filled_behind_ends(options, y, elements, 0)) << rnn_named(options);
  }
}

/// Some tens of roundings, of numbers as large as the largest one.
template <class T>
::testing::AssertionResult near_in_scale(const GpuRef<T>& actual,
                                         const std::vector<double>& exact) {
  const auto found = difference(device().download(actual), exact);
  const auto allowed = 16 * kEpsilon<T> * std::max(found.magnitude, 1.0);
  if (found.largest <= allowed) return ::testing::AssertionSuccess();
  return ::testing::AssertionFailure()
         << found.largest << " apart, of numbers up to " << found.magnitude;
}

/// Small networks of every cell.
std::vector<RnnOptions> small_rnns() {
  std::vector<RnnOptions> all;
  for (const auto cell : kRnnCells) {
    all.push_back({.cell = cell, .batch = 2, .time = 3, .input = 3, .hidden = 4});
    all.push_back({.cell = cell,
                   .layers = 2,
                   .both_directions = true,
                   .bias = false,
                   .batch = 2,
                   .time = 3,
                   .input = 2,
                   .hidden = 3});
    all.push_back({.cell = cell,
                   .layers = 2,
                   .both_directions = true,
                   .batch = 3,
                   .time = 4,
                   .input = 2,
                   .hidden = 2,
                   .lengths = {2, 4, 1}});
  }
  return all;
}

TYPED_TEST(DnnRnn, GradientsAreThoseOfDifferences) {
  using T = TypeParam;
  for (const auto& options : small_rnns()) {
    const auto shape = options.shape();
    // With and without all that may be absent.
    for (const bool states : {true, false}) {
      const auto numbers = rnn_numbers<T>(options, states, 21);
      auto tensors = rnn_tensors<T>(options, numbers);
      tensors.reserve = reserve_for<T>(options);
      const auto dy = uniform<T>(shape.y_elements(), 31);
      const auto dfinal = states ? uniform<T>(shape.state_elements(), 32) : std::vector<double>();
      RnnGradients<T> gradients{.dy = put(narrowed<T>(filled_behind_ends(
                                    options, dy, shape.directions * shape.hidden, kRnnNaN))),
                                .dx = put_sevens<T>(shape.x_elements())};
      if (states) {
        gradients.dfinal = put(narrowed<T>(dfinal));
        gradients.dinitial = put_sevens<T>(shape.state_elements());
      }
      const auto added_to = uniform<T>(shape.w_elements(), 33);
      const auto dw = put(narrowed<T>(added_to));
      auto library = dnn::on(device());
      library.rnn(tensors, options).get();
      library.rnn_backward_data(tensors, gradients, options).get();
      library.rnn_backward_weights(tensors, dw, options).get();

      RnnDifferences exact(options, numbers, dy, dfinal);
      EXPECT_TRUE(near_in_scale(gradients.dx, exact.of(&RnnNumbers::x)))
          << "dx, " << rnn_named(options);
      auto dw_exact = exact.of(&RnnNumbers::w);
      for (std::size_t i = 0; i < dw_exact.size(); ++i) dw_exact[i] += added_to[i];
      EXPECT_TRUE(near_in_scale(dw, dw_exact)) << "dw, " << rnn_named(options);
      if (states) {
        EXPECT_TRUE(near_in_scale(gradients.dinitial, exact.of(&RnnNumbers::initial)))
            << "dinitial, " << rnn_named(options);
      }
    }
  }
}

TYPED_TEST(DnnRnn, RepeatsTheSameBits) {
  using T = TypeParam;
  for (const auto& options : rnns()) {
    const auto shape = options.shape();
    const auto numbers = rnn_numbers<T>(options, true, 41);
    const auto run = [&] {
      auto tensors = rnn_tensors<T>(options, numbers);
      tensors.reserve = reserve_for<T>(options);
      const RnnGradients<T> gradients{.dy = put(narrowed<T>(uniform<T>(shape.y_elements(), 42))),
                                      .dx = put_sevens<T>(shape.x_elements())};
      const auto dw = put_sevens<T>(shape.w_elements());
      auto library = dnn::on(device());
      library.rnn(tensors, options);
      library.rnn_backward_data(tensors, gradients, options);
      library.rnn_backward_weights(tensors, dw, options);
      return std::vector{widened(device().download(tensors.y)),
                         widened(device().download(gradients.dx)), widened(device().download(dw))};
    };
    const auto first = run();
    EXPECT_EQ(run(), first) << rnn_named(options);
  }
}

TYPED_TEST(DnnRnn, MakesTheSameBitsInASequence) {
  using T = TypeParam;
  const RnnOptions options{.cell = RnnCell::gru,
                           .layers = 2,
                           .both_directions = true,
                           .batch = 3,
                           .time = 4,
                           .input = 8,
                           .hidden = 8,
                           .lengths = {4, 2, 3}};
  const auto shape = options.shape();
  auto tensors = rnn_tensors<T>(options, rnn_numbers<T>(options, true, 61));
  tensors.reserve = reserve_for<T>(options);
  const RnnGradients<T> gradients{.dy = put(narrowed<T>(uniform<T>(shape.y_elements(), 62))),
                                  .dx = put_sevens<T>(shape.x_elements())};
  const auto dw = device().template alloc<T>(shape.w_elements());
  const auto train = [&] {
    auto library = dnn::on(device());
    library.rnn(tensors, options);
    library.rnn_backward_data(tensors, gradients, options);
    library.rnn_backward_weights(tensors, dw, options);
  };
  const auto sequence = device().record(train);
  EXPECT_EQ(sequence.commands(), 3u);
  const std::vector<T> zeros(static_cast<std::size_t>(shape.w_elements()));
  const auto results = [&](const auto& run) {
    device().template upload<T>(zeros, dw);
    run();
    return std::vector{widened(device().download(tensors.y)),
                       widened(device().download(gradients.dx)), widened(device().download(dw))};
  };
  const auto expected = results(train);
  for (int i = 0; i < 4; ++i)
    EXPECT_EQ(results([&] { sequence.run().get(); }), expected) << "run " << i;
}

TYPED_TEST(DnnRnn, RefusesAReserveThatIsTooSmall) {
  using T = TypeParam;
  const RnnOptions options{.batch = 2, .time = 3, .input = 8, .hidden = 8};
  const auto bytes = dnn::on(device()).rnn_reserve<T>(options).get();
  ASSERT_GT(bytes, 0);
  auto tensors = rnn_tensors<T>(options, rnn_numbers<T>(options, false, 51));
  tensors.reserve = reserve_of(bytes - 1);
  const Result<void> refused = dnn::on(device()).rnn(tensors, options).wait();
  ASSERT_EQ(refused.code(), Errc::invalid);
  EXPECT_NE(refused.error().message.find("reserve needs " + std::to_string(bytes) + " bytes, has " +
                                         std::to_string(bytes - 1)),
            std::string::npos)
      << refused.error().message;
  (void)device().take_error();
  tensors = rnn_tensors<T>(options, rnn_numbers<T>(options, false, 51));
  EXPECT_TRUE(dnn::on(device()).rnn(tensors, options).wait().ok());
}

}  // namespace
}  // namespace troupe::test
