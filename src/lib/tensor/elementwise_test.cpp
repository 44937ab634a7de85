#include <troupe/lib/sequence.hpp>
#include <troupe/sequence.hpp>

#include "tensor_values.hpp"

// Permutations and functions of each element, also in recorded sequences.

namespace troupe::test {
namespace {

using reference::Data;
using tensor::Binary;
using tensor::Unary;

const PerLetter kSides{{'a', 3}, {'b', 4}, {'c', 2}, {'d', 5}};

template <class T>
class TensorElements : public Typed<T> {
 protected:
  void SetUp() override { skip_unless_tensors(); }
};
TYPED_TEST_SUITE(TensorElements, TensorTypes);

TYPED_TEST(TensorElements, ArePermutedExactly) {
  using T = TypeParam;
  std::uint64_t seed = 1;
  for (const auto& [a, b, order] : {std::array<std::string, 3>{"abcd", "dcba", ""},
                                    {"abcd", "acbd", "bdac"},
                                    {"ab", "ba", ""},
                                    {"", "", ""},
                                    {"bd", "abcd", ""},  // repeated along a and c
                                    {"", "ab", ""}}) {
    for (const std::int64_t gap : {0, 1}) {
      SCOPED_TRACE(a + "->" + b + ", gap " + std::to_string(gap));
      const auto x = draw<T>(a, kSides, seed++, Data::fractions);
      auto expected = reference::tensor_of(b, kSides);
      reference::for_each_index(kSides,
                                [&](const PerLetter& index) { expected.at(index) = x.at(index); });
      const auto from = place<T>(x, order, gap), to = place<T>(draw<T>(b, kSides, seed++), {}, gap);
      tensor::on(device()).permute(from(), to());
      EXPECT_TRUE(holds(to, expected));
      tensor::on(device()).permute(ScalarTypeOf<T>(-2), from(), to());
      EXPECT_TRUE(holds(to, sum(-2, expected, 0, expected)));
    }
  }
  EXPECT_EQ(not_working(device()), "");
}

template <class From, class To>
void convert() {
  const auto x = draw<From>("abc", kSides, 7, Data::fractions);
  const auto from = place<From>(x), to = place<To>(reference::tensor_of("cab", kSides));
  auto expected = reference::tensor_of("cab", kSides);
  reference::for_each_index({{'a', 3}, {'b', 4}, {'c', 2}},
                            [&](const PerLetter& index) { expected.at(index) = x.at(index); });
  EXPECT_TRUE(tensor::on(device()).permute(from(), to()).wait().ok());
  EXPECT_TRUE(holds(to, expected));
}
TEST(TensorTypes, AreConverted) {
  if (skip_unless_tensors(); ::testing::Test::IsSkipped()) return;
  convert<Half, float>();
  convert<float, Half>();
  convert<float, double>();
  convert<double, float>();
  convert<std::complex<float>, std::complex<double>>();
  convert<std::complex<double>, std::complex<float>>();
}

TYPED_TEST(TensorElements, OfTwoAreCombined) {
  using T = TypeParam;
  using S = ScalarTypeOf<T>;
  const auto x = draw<T>("ca", kSides, 1), z = draw<T>("abc", kSides, 2);
  const auto in_a = place<T>(x);
  for (const auto function : {Binary::add, Binary::mul, Binary::max, Binary::min}) {
    if (ComplexElement<T> && function > Binary::mul) continue;
    SCOPED_TRACE(static_cast<int>(function));
    const auto in_c = place<T>(z), in_d = place<T>(z);
    auto expected = z;
    reference::for_each_index({{'a', 3}, {'b', 4}, {'c', 2}}, [&](const PerLetter& index) {
      const auto one = 2.0 * x.at(index), other = 3.0 * z.at(index);
      expected.at(index) = function == Binary::add   ? one + other
                           : function == Binary::mul ? one * other
                           : function == Binary::max ? std::max(one.real(), other.real())
                                                     : std::min(one.real(), other.real());
    });
    tensor::on(device()).elementwise<T>(function, S(2), in_a(), S(3), in_c(), in_d());
    EXPECT_TRUE(holds(in_d, expected));
    tensor::on(device()).elementwise<T>(function, S(2), in_a(), S(3), in_c(), in_c());
    EXPECT_TRUE(holds(in_c, expected)) << "in place";
  }
}

TYPED_TEST(TensorElements, OfThreeAreCombined) {
  using T = TypeParam;
  using S = ScalarTypeOf<T>;
  const auto x = draw<T>("ca", kSides, 1), y = draw<T>("b", kSides, 2),
             z = draw<T>("abc", kSides, 3);
  const auto in_a = place<T>(x), in_b = place<T>(y), in_c = place<T>(z, "cba", 1),
             in_d = place<T>(z, "cba", 1);
  auto expected = z;
  reference::for_each_index({{'a', 3}, {'b', 4}, {'c', 2}}, [&](const PerLetter& index) {
    expected.at(index) = (2.0 * x.at(index)) * (-1.0 * y.at(index)) + 3.0 * z.at(index);
  });
  tensor::on(device()).elementwise<T>(Binary::mul, Binary::add, S(2), in_a(), S(-1), in_b(), S(3),
                                      in_c(), in_d());
  EXPECT_TRUE(holds(in_d, expected));
  EXPECT_EQ(not_working(device()), "");
}

/// C and D of half the bits.
template <class T, class Narrow>
void combine_narrow() {
  using S = ScalarTypeOf<T>;
  const auto x = draw<T>("ca", kSides, 1), y = draw<T>("b", kSides, 2),
             z = draw<Narrow>("abc", kSides, 3);
  const auto in_a = place<T>(x), in_b = place<T>(y);
  const auto in_c = place<Narrow>(z, "cba", 1), in_d = place<Narrow>(z, "cba", 1);
  auto two = z, three = z;
  reference::for_each_index({{'a', 3}, {'b', 4}, {'c', 2}}, [&](const PerLetter& index) {
    two.at(index) = (2.0 * x.at(index)) * (3.0 * z.at(index));
    three.at(index) = (2.0 * x.at(index)) * (-1.0 * y.at(index)) + 3.0 * z.at(index);
  });
  auto on_device = tensor::on(device());
  on_device.elementwise<T>(Binary::mul, S(2), in_a(), S(3), in_c(), in_d());
  EXPECT_TRUE(holds(in_d, two));
  on_device.elementwise<T>(Binary::mul, Binary::add, S(2), in_a(), S(-1), in_b(), S(3), in_c(),
                           in_c());
  EXPECT_TRUE(holds(in_c, three));
  EXPECT_EQ(not_working(device()), "");
}
TEST(TensorTypes, AreCombinedToNarrowerOnes) {
  if (skip_unless_tensors(); ::testing::Test::IsSkipped()) return;
  combine_narrow<float, Half>();
  combine_narrow<double, float>();
  combine_narrow<std::complex<double>, std::complex<float>>();
}

template <class T>
class TensorFunctions : public TensorElements<T> {};
using FunctionTypes = ::testing::Types<float, Half, double>;
TYPED_TEST_SUITE(TensorFunctions, FunctionTypes);

/// Within a few roundings; a GPU's functions are good to some units in the last place.
TYPED_TEST(TensorFunctions, AreWhatTheyAreCalled) {
  using T = TypeParam;
  const auto sigmoid = [](double v) { return 1 / (1 + std::exp(-v)); };
  const auto soft_plus = [](double v) { return std::log1p(std::exp(v)); };
  struct Function {
    Unary unary;
    std::function<double(double)> f;
    double shift;  ///< fractions from -1 to 1 become arguments
  };
  const std::vector<Function> functions{
      {Unary::identity, [](double v) { return v; }, 0},
      {Unary::conj, [](double v) { return v; }, 0},
      {Unary::neg, [](double v) { return -v; }, 0},
      {Unary::abs, [](double v) { return std::abs(v); }, 0},
      {Unary::sqrt, [](double v) { return std::sqrt(v); }, 2},
      {Unary::rcp, [](double v) { return 1 / v; }, 2},
      {Unary::relu, [](double v) { return std::max(v, 0.0); }, 0},
      {Unary::exp, [](double v) { return std::exp(v); }, 0},
      {Unary::log, [](double v) { return std::log(v); }, 2},
      {Unary::sin, [](double v) { return std::sin(v); }, 0},
      {Unary::cos, [](double v) { return std::cos(v); }, 0},
      {Unary::tan, [](double v) { return std::tan(v); }, 0},
      {Unary::sinh, [](double v) { return std::sinh(v); }, 0},
      {Unary::cosh, [](double v) { return std::cosh(v); }, 0},
      {Unary::tanh, [](double v) { return std::tanh(v); }, 0},
      {Unary::asin, [](double v) { return std::asin(v); }, 0},
      {Unary::acos, [](double v) { return std::acos(v); }, 0},
      {Unary::atan, [](double v) { return std::atan(v); }, 0},
      {Unary::asinh, [](double v) { return std::asinh(v); }, 0},
      {Unary::acosh, [](double v) { return std::acosh(v); }, 3},
      {Unary::atanh, [](double v) { return std::atanh(v); }, 0},
      {Unary::ceil, [](double v) { return std::ceil(v); }, 0},
      {Unary::floor, [](double v) { return std::floor(v); }, 0},
      {Unary::sigmoid, sigmoid, 0},
      {Unary::soft_plus, soft_plus, 0},
      {Unary::soft_sign, [](double v) { return v / (std::abs(v) + 1); }, 0},
      {Unary::swish, [&](double v) { return v * sigmoid(v); }, 0},
      {Unary::mish, [&](double v) { return v * std::tanh(soft_plus(v)); }, 0}};
  ASSERT_EQ(functions.size(), tensor::kUnaryCount);
  for (const auto& [unary, f, shift] : functions) {
    SCOPED_TRACE(static_cast<int>(unary));
    auto x = draw<T>("ab", kSides, 1, Data::fractions);
    for (auto& value : x.values) value = wide_of<T>(stored_of<T>(0.75 * value + shift));
    auto expected = reference::tensor_of("ba", kSides);
    double largest = 1;
    reference::for_each_index({{'a', 3}, {'b', 4}}, [&](const PerLetter& index) {
      expected.at(index) = f(x.at(index).real());
      largest = std::max(largest, std::abs(expected.at(index)));
    });
    const auto from = place<T>(x), to = place<T>(reference::tensor_of("ba", kSides));
    tensor::on(device()).permute(from(unary), to());
    EXPECT_TRUE(holds(to, expected, 16 * kComputeEpsilon<T> * largest));
  }
  EXPECT_EQ(not_working(device()), "");
}

/// Often enough to become a graph, whose factor is another one in each run.
TEST(TensorSequences, AreRecorded) {
  if (skip_unless_tensors(); ::testing::Test::IsSkipped()) return;
  const auto x = draw<double>("abc", kSides, 1), y = draw<double>("cbd", kSides, 2);
  const auto in_a = place<double>(x), in_b = place<double>(y),
             turned = place<double>(reference::tensor_of("da", kSides)),
             product = place<double>(reference::tensor_of("ad", kSides)),
             total = place<double>(reference::tensor_of("d", kSides));
  Parameter<double> alpha(2.0);
  const auto sequence = device().record([&] {
    auto on_device = tensor::on(device());
    on_device.contract<double>(alpha, in_a(), in_b(), 0.0, product());
    on_device.permute(product(), turned());
    on_device.reduce(Binary::add, turned(), total());
    on_device.elementwise<double>(Binary::add, 1.0, total(), 1.0, turned(), turned());
  });
  const auto expected = reference::sum_of_products("da", {x, y}),
             sums = reference::sum_of_products("d", {x, y});
  for (int i = 0; i < 8; ++i) {
    const double factor = i % 2 == 0 ? 2 : i;
    if (i % 2 == 0)
      ASSERT_TRUE(sequence.run().wait().ok());
    else
      ASSERT_TRUE(sequence.run({alpha(factor)}).wait().ok());
    auto wanted = expected;
    reference::for_each_index({{'a', 3}, {'d', 5}}, [&](const PerLetter& index) {
      wanted.at(index) = factor * (expected.at(index) + sums.at(index));
    });
    EXPECT_TRUE(holds(turned, wanted)) << i;
  }
}

}  // namespace
}  // namespace troupe::test
