#include <troupe/lib/fft.hpp>

#include "bad_arguments.hpp"
#include "common/core/narrow.hpp"
#include "reference/transforms.hpp"

// Transforms of f16 and bf16, whose complex numbers are pairs of elements.

namespace troupe::test {
namespace {

template <class T>
class FftHalves : public Typed<T> {
 protected:
  void SetUp() override {
    const auto x = put(std::vector<std::complex<float>>(1));
    if (fft::on(device()).forward(x, x, {.extents = {1}}).wait().ok()) return;
    (void)device().take_error();
    ASSERT_FALSE(on_cuda());
    GTEST_SKIP() << "the cpu engine has no FFT library";
  }
};
using Narrow16 = ::testing::Types<Half, BFloat16>;
TYPED_TEST_SUITE(FftHalves, Narrow16);

template <class T>
constexpr double kNarrowEpsilon = std::is_same_v<T, Half> ? 0x1p-10 : 0x1p-7;

/// The numbers of one side, a pair for each where it is complex.
template <class T>
std::vector<T> paired(const std::vector<Wide>& values, bool complex) {
  std::vector<T> all;
  for (const auto& value : values) {
    all.push_back(from_float<T>(static_cast<float>(value.real())));
    if (complex) all.push_back(from_float<T>(static_cast<float>(value.imag())));
  }
  return all;
}

template <class T>
std::vector<T> transformed_halves(Kind kind, const std::vector<T>& input, std::size_t numbers,
                                  const FftOptions& shape) {
  const auto x = put(input), y = put(std::vector<T>(numbers));
  auto on_device = fft::on(device());
  switch (kind) {
    case Kind::forward: on_device.forward(x, y, shape).get(); break;
    case Kind::inverse: on_device.inverse(x, y, shape).get(); break;
    case Kind::real_to_complex: on_device.real_to_complex(x, y, shape).get(); break;
    default: on_device.complex_to_real(x, y, shape).get();
  }
  return device().download(y);
}

template <class T>
void check_halves(Kind kind, const Extents& extents, std::int64_t batch, double magnitude) {
  SCOPED_TRACE(::testing::Message()
               << "kind " << static_cast<int>(kind) << ", " << extents.extent[0] << " x "
               << extents.extent[1] << " x " << extents.extent[2] << ", batch of " << batch);
  std::mt19937_64 random(41);
  std::vector<Wide> input, output;
  for (std::int64_t b = 0; b < batch; ++b) {
    auto one = expected_of(kind, extents, [&] {  // in both formats exactly
      return static_cast<double>(static_cast<int>(random() % 9) - 4) * magnitude;
    });
    if (kind == Kind::complex_to_real) {
      // The spectrum as the format holds it.
      for (auto& value : one.input)
        value = {to_float(from_float<T>(static_cast<float>(value.real()))),
                 to_float(from_float<T>(static_cast<float>(value.imag())))};
    }
    input.insert(input.end(), one.input.begin(), one.input.end());
    output.insert(output.end(), one.output.begin(), one.output.end());
  }
  const auto expected = paired<T>(output, kind != Kind::complex_to_real);
  const auto actual = transformed_halves<T>(kind, paired<T>(input, kind != Kind::real_to_complex),
                                            expected.size(), {.extents = extents, .batch = batch});
  double error = 0, norm = 0;
  for (std::size_t i = 0; i < actual.size(); ++i) {
    const double a = to_float(actual[i]), b = to_float(expected[i]);
    error += (a - b) * (a - b);
    norm += b * b;
  }
  const double levels = std::max(1.0, std::log2(static_cast<double>(volume_of(extents))));
  EXPECT_LE(std::sqrt(error / norm), 4 * kNarrowEpsilon<T> * levels);
}

TYPED_TEST(FftHalves, AreCloseToTheDefinition) {
  for (const auto& extents : {Extents{2}, Extents{4}, Extents{64}, Extents{512}, Extents{8, 16},
                              Extents{32, 4}, Extents{4, 8, 16}}) {
    for (const auto kind :
         {Kind::forward, Kind::inverse, Kind::real_to_complex, Kind::complex_to_real}) {
      check_halves<TypeParam>(kind, extents, 1, 0.25);
      check_halves<TypeParam>(kind, extents, 3, 0.25);
    }
  }
}

/// A wrong layout or sign would not pass.
TYPED_TEST(FftHalves, OfIntegersAndALengthOfFourAreExact) {
  const auto input = [](std::initializer_list<float> values) {
    std::vector<TypeParam> all;
    for (const float value : values) all.push_back(from_float<TypeParam>(value));
    return all;
  };
  const auto floats = [](const std::vector<TypeParam>& values) {
    std::vector<float> all;
    for (const auto value : values) all.push_back(to_float(value));
    return all;
  };
  const FftOptions four{.extents = {4}};
  EXPECT_EQ(floats(transformed_halves<TypeParam>(Kind::forward, input({0, 0, 1, 2, 0, 0, 0, 0}), 8,
                                                 four)),
            (std::vector<float>{1, 2, 2, -1, -1, -2, -2, 1}));
  EXPECT_EQ(floats(transformed_halves<TypeParam>(Kind::inverse, input({0, 0, 1, 2, 0, 0, 0, 0}), 8,
                                                 four)),
            (std::vector<float>{1, 2, -2, 1, -1, -2, 2, -1}));
  EXPECT_EQ(
      floats(transformed_halves<TypeParam>(Kind::real_to_complex, input({1, 2, 3, 4}), 6, four)),
      (std::vector<float>{10, 0, -2, 2, -2, 0}));
  EXPECT_EQ(floats(transformed_halves<TypeParam>(Kind::complex_to_real,
                                                 input({10, 0, -2, 2, -2, 0}), 4, four)),
            (std::vector<float>{4, 8, 12, 16}));
}

TYPED_TEST(FftHalves, WorkInPlaceAndLeaveGapsAlone) {
  // Two transforms of 4, 5 numbers apart.
  std::vector<TypeParam> values;
  for (int i = 0; i < 18; ++i) values.push_back(from_float<TypeParam>(static_cast<float>(i % 5)));
  const auto x = put(values), y = put(values);
  const FftOptions shape{.extents = {4}, .batch = 2, .input = {5}, .output = {5}};
  fft::on(device()).forward(x, x, shape).get();
  const auto there = device().download(x);
  for (const std::size_t gap : {8u, 9u}) EXPECT_EQ(there[gap].bits, values[gap].bits);
  fft::on(device()).inverse(x, y, shape).get();
  const auto back = device().download(y);
  for (std::size_t i = 0; i < back.size(); ++i) {
    const float expected = to_float(values[i]) * (i == 8 || i == 9 ? 1 : 4);
    EXPECT_EQ(to_float(back[i]), expected) << i;
  }
}

TYPED_TEST(FftHalves, OfOtherLengthsAndStridesAreUnsupported) {
  const auto x = put(std::vector<TypeParam>(64)), y = put(std::vector<TypeParam>(64));
  auto on_device = fft::on(device());
  for (const auto& extents : {Extents{3}, Extents{4, 6}, Extents{12}})
    EXPECT_EQ(on_device.forward(x, y, {.extents = extents}).wait().code(), Errc::unsupported);
  const FftOptions strided{.extents = {4}, .input = {0, 2}, .output = {0, 2}};
  EXPECT_EQ(on_device.real_to_complex(x, y, strided).wait().code(), Errc::unsupported);
  EXPECT_EQ(on_device.complex_to_real(x, y, strided).wait().code(), Errc::unsupported);
  EXPECT_EQ(on_device.forward(x, y, {.extents = {64}}).wait().code(), Errc::invalid);
  EXPECT_EQ(on_device.forward(x.slice(1, 16), y, {.extents = {8}}).wait().code(), Errc::invalid)
      << "a pair is not aligned";
}

}  // namespace
}  // namespace troupe::test
