#include <troupe/lib/dnn.hpp>

#include <string>
#include <utility>
#include <vector>

#include "bad_arguments.hpp"
#include "reference/recurrent.hpp"

/// Shapes of recurrent networks: where weights stand, what is refused.
namespace troupe::test {
namespace {

using dnn::RnnCell;
using dnn::RnnShape;
using dnn::RnnWeight;

TEST(DnnRnnWeights, StandWhereItIsWritten) {
  // Two gates' worth of numbers by hand: 3 gates of 2 x 5, then of 2 x 2, for each direction; the
  // second layer reads 4 elements.
  const RnnShape shape{RnnCell::gru, 2, 2, 2, 7, 9, 5, 2};
  EXPECT_EQ(shape.w_elements(), 2 * 3 * (10 + 4) + 2 * 3 * (8 + 4) + 4 * 2 * 6);
  const auto matrix = [&](const RnnWeight& which) {
    return dnn::rnn_matrix_place(shape, which).offset;
  };
  const auto bias = [&](const RnnWeight& which) {
    return dnn::rnn_bias_place(shape, which).offset;
  };
  EXPECT_EQ(matrix({0, 0, 0, false}), 0);
  EXPECT_EQ(matrix({0, 0, 2, false}), 20);
  EXPECT_EQ(matrix({0, 0, 0, true}), 30);
  EXPECT_EQ(matrix({0, 0, 1, true}), 34);
  EXPECT_EQ(matrix({0, 1, 0, false}), 42);
  EXPECT_EQ(matrix({1, 0, 0, false}), 84);
  EXPECT_EQ(matrix({1, 1, 2, true}), 84 + 36 + 24 + 8);
  EXPECT_EQ(bias({0, 0, 0, false}), 84 + 72);
  EXPECT_EQ(bias({0, 0, 1, true}), 84 + 72 + 6 + 2);
  EXPECT_EQ(bias({1, 1, 2, true}), shape.w_elements() - 2);
}

TEST(DnnRnnWeights, FillTheArrayWithoutOverlap) {
  for (const auto cell : kRnnCells) {
    for (const std::uint32_t biases : {0u, 2u}) {
      const RnnShape shape{cell, biases, 3, 2, 1, 1, 5, 4};
      std::vector<int> covered(static_cast<std::size_t>(shape.w_elements()));
      const auto cover = [&](const dnn::RnnPlace& place) {
        for (std::int64_t i = 0; i < place.rows * place.columns; ++i)
          ++covered.at(static_cast<std::size_t>(place.offset + i));
      };
      for (std::uint32_t layer = 0; layer < 3; ++layer) {
        for (std::uint32_t direction = 0; direction < 2; ++direction) {
          for (std::int64_t gate = 0; gate < shape.gates(); ++gate) {
            for (const bool recurrent : {false, true}) {
              cover(dnn::rnn_matrix_place(shape, {layer, direction, gate, recurrent}));
              if (biases > 0)
                cover(dnn::rnn_bias_place(shape, {layer, direction, gate, recurrent}));
            }
          }
        }
      }
      EXPECT_EQ(covered, std::vector<int>(covered.size(), 1));
    }
  }
}

/// What an operation that cannot be is refused with, before anything is launched. The operations
/// are as large as their memory, 16 numbers of 8 bytes: a gru of f32 with one layer and direction.
class DnnRnnRefused : public BadArguments {
 protected:
  template <class Op>
  static void refuses(const std::string& why, const Op& op,
                      const std::vector<std::int32_t>& lengths = {}, Errc code = Errc::invalid) {
    const auto future =
        detail::submit(device().submitter(), op,
                       Parts(std::span<const TailOperand>(), std::as_bytes(std::span(lengths))));
    ASSERT_TRUE(future.ready()) << why << ": it was launched";
    ASSERT_EQ(future.wait().code(), code) << why;
    const auto& message = future.wait().error().message;
    EXPECT_TRUE(message.starts_with(Op::kName)) << message;
    EXPECT_NE(message.find(why), std::string::npos) << message << ", not " << why;
  }
  /// Every wrong shape of an operation that checks out.
  template <class Op>
  static void refuses_shapes_of(const Op& good) {
    ASSERT_TRUE(good.check().ok()) << good.check().error().message;
    const auto with = [&](const std::string& why, auto change) {
      auto op = good;
      change(op.shape);
      refuses(why, op);
    };
    constexpr auto kHuge = std::int64_t{1} << 40;
    with("unknown cell", [](auto& shape) { shape.cell = static_cast<RnnCell>(4); });
    with("no or two biases", [](auto& shape) { shape.biases = 1; });
    with("no layer", [](auto& shape) { shape.layers = 0; });
    with("more than 256", [](auto& shape) { shape.layers = 257; });
    with("one or two directions", [](auto& shape) { shape.directions = 0; });
    with("one or two directions", [](auto& shape) { shape.directions = 3; });
    for (const auto extent : {std::int64_t{0}, std::int64_t{-1}, kHuge}) {
      with("the batch", [&](auto& shape) { shape.batch = extent; });
      with("the time", [&](auto& shape) { shape.time = extent; });
      with("a number of elements", [&](auto& shape) { shape.input = extent; });
      with("a number of elements", [&](auto& shape) { shape.hidden = extent; });
    }
    with("too large", [](auto& shape) { shape.batch = shape.time = shape.hidden = kHuge >> 10; });
    auto wrong_type = good;
    wrong_type.dtype = DType::f64;
    refuses("no dtype f64", wrong_type, {}, Errc::unsupported);
  }
  template <class Op>
  static void refuses_lengths_of(const Op& good) {
    refuses("not as many lengths as sequences", good, {1});
    refuses("not as many lengths as sequences", good, {1, 1, 1});
    refuses("a length is not within", good, {0, 2});
    refuses("a length is not within", good, {2, 3});
    refuses("a length is not within", good, {-1, 2});
    refuses("above 12288", good, std::vector<std::int32_t>(3073, 1));
  }
  /// Of operands that must be there, of so many elements each, and of those that may be absent.
  template <class Op>
  void refuses_operands_of(const Op& good,
                           const std::vector<std::pair<std::string, Operand Op::*>>& needed,
                           const std::vector<std::pair<std::string, Operand Op::*>>& optional) {
    const auto with = [&](const std::string& why, Operand Op::*which, const Operand& operand) {
      auto op = good;
      op.*which = operand;
      refuses(why, op);
    };
    auto all = needed;
    for (const auto& [name, which] : needed) with(name + " is missing", which, absent);
    all.insert(all.end(), optional.begin(), optional.end());
    for (const auto& [name, which] : all) {
      auto few = good.*which, shifted = good.*which;
      few.bytes = 0;
      with(name + " needs ", which, few);
      shifted.offset += 8;
      with(name + " is not aligned to 16 bytes", which, shifted);
    }
  }
  Operand apart() {
    refs_.push_back(device().alloc<double>(64));
    return refs_.back().operand();
  }
  // x: 2 x 2 x 2; w: 3 x 2 x (2 + 2) + 12; y: 2 x 2 x 2; a state: 2 x 2.
  static constexpr RnnShape kShape{RnnCell::gru, 2, 1, 1, 2, 2, 2, 2};

 private:
  std::vector<GpuRef<double>> refs_;
};

TEST_F(DnnRnnRefused, ForwardThatCannotBe) {
  using dnn::Rnn;
  const Rnn good{DType::f32, kShape, apart(), apart(), apart(), apart(), apart(), apart()};
  refuses_shapes_of(good);
  refuses_lengths_of(good);
  refuses_operands_of<Rnn>(
      good, {{"x", &Rnn::x}, {"w", &Rnn::w}, {"y", &Rnn::y}},
      {{"initial", &Rnn::initial}, {"final", &Rnn::final}, {"reserve", &Rnn::reserve}});
  auto overlapping = good;
  overlapping.y = good.x;
  refuses("overlap", overlapping);
  overlapping = good;
  overlapping.final = good.initial;
  refuses("overlap", overlapping);
}

TEST_F(DnnRnnRefused, BackwardThatCannotBe) {
  using Data = dnn::RnnBackwardData;
  const Data data{DType::f32, kShape,  apart(), apart(), apart(),
                  apart(),    apart(), apart(), apart(), apart()};
  refuses_shapes_of(data);
  refuses_lengths_of(data);
  refuses_operands_of<Data>(
      data,
      {{"y", &Data::y},
       {"dy", &Data::dy},
       {"w", &Data::w},
       {"dx", &Data::dx},
       {"reserve", &Data::reserve}},
      {{"initial", &Data::initial}, {"dfinal", &Data::dfinal}, {"dinitial", &Data::dinitial}});
  auto overlapping = data;
  overlapping.dx = data.dy;
  refuses("overlap", overlapping);

  using Weights = dnn::RnnBackwardWeights;
  const Weights weights{DType::f32, kShape, apart(), apart(), apart(), apart(), apart()};
  refuses_shapes_of(weights);
  refuses_lengths_of(weights);
  refuses_operands_of<Weights>(weights,
                               {{"x", &Weights::x},
                                {"y", &Weights::y},
                                {"dw", &Weights::dw},
                                {"reserve", &Weights::reserve}},
                               {{"initial", &Weights::initial}});
}

TEST_F(DnnRnnRefused, ReserveOfWhatCannotBe) {
  RnnOptions options{.batch = 0, .time = 1, .input = 1, .hidden = 1};
  const auto refused = dnn::on(device()).rnn_reserve<float>(options).wait();
  ASSERT_EQ(refused.code(), Errc::invalid);
  EXPECT_NE(refused.error().message.find("the batch is not positive"), std::string::npos)
      << refused.error().message;
  options.batch = 1;
  EXPECT_EQ(dnn::on(device()).rnn_reserve<double>(options).wait().code(), Errc::unsupported);
  (void)device().take_error();
}

TEST(DnnRnnAccess, AllOfTheOutputsIsWritten) {
  const Operand some{1, 1, 1, 0, 0, 1 << 20};
  constexpr RnnShape kShape{RnnCell::lstm, 2, 2, 2, 3, 5, 7, 8};
  dnn::Rnn forward{DType::f16, kShape, some, some, some, some, {}, some};
  EXPECT_EQ(forward.written(forward.y), 3u * 5 * 16 * 2);
  EXPECT_EQ(forward.written(forward.final), 0u);
  EXPECT_EQ(forward.written(forward.reserve), 0u);
  forward.final = some;
  EXPECT_EQ(forward.written(forward.final), 2u * 2 * 2 * 3 * 8 * 2);
  const dnn::RnnBackwardData backward{DType::f32, kShape, some, some, some,
                                      some,       some,   some, {},   some};
  EXPECT_EQ(backward.written(backward.dx), 3u * 5 * 7 * 4);
  EXPECT_EQ(backward.written(backward.dinitial), 0u);
  EXPECT_EQ(backward.written(backward.reserve), 0u);
}

}  // namespace
}  // namespace troupe::test
