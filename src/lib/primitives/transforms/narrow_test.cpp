#include <troupe/lib/primitives.hpp>

#include <algorithm>
#include <bit>
#include <cmath>
#include <numeric>
#include <random>

#include "conformance.hpp"
#include "narrow_numbers.hpp"

// f16 and bf16, element by element: every number there is, where that is possible.

namespace troupe::test {
namespace {

using primitives::Binary;
using primitives::Unary;

template <class T>
class PrimitiveNarrowTransforms : public Typed<T> {};
using NarrowFloats = ::testing::Types<Half, BFloat16>;
TYPED_TEST_SUITE(PrimitiveNarrowTransforms, NarrowFloats);

float expected_in_float(Unary op, float x) {
  switch (op) {
    case Unary::negate: return -x;
    case Unary::absolute: return std::fabs(x);
    case Unary::square: return x * x;
    case Unary::square_root: return std::sqrt(x);
    default: return 1 / x;
  }
}
float expected_in_float(Binary op, float x, float y) {
  switch (op) {
    case Binary::add: return x + y;
    case Binary::subtract: return x - y;
    case Binary::multiply: return x * y;
    case Binary::divide: return x / y;
    case Binary::min: return y != y || y < x ? y : x;
    default: return y != y || x < y ? y : x;
  }
}

TYPED_TEST(PrimitiveNarrowTransforms, Transforms) {
  using T = TypeParam;
  auto bits = every_number();
  std::shuffle(bits.begin(), bits.end(), std::mt19937_64(134));
  const auto others = every_number();
  const auto n = std::ssize(bits);
  auto calls = primitives::on(device());
  for (const auto op :
       {Unary::negate, Unary::absolute, Unary::square, Unary::square_root, Unary::reciprocal}) {
    SCOPED_TRACE(static_cast<int>(op));
    NarrowBits expected;
    for (const auto one : bits)
      expected.push_back(
          nearest_bits<T>(expected_in_float(op, static_cast<float>(number_of<T>(one)))));
    const auto x = put_bits<T>(bits);
    calls.transform(x, x, op).get();
    EXPECT_EQ(without_payload<T>(bits_in(x)), without_payload<T>(expected));
  }
  for (const auto op : {Binary::add, Binary::subtract, Binary::multiply, Binary::divide,
                        Binary::min, Binary::max}) {
    SCOPED_TRACE(static_cast<int>(op));
    NarrowBits expected{7};
    for (std::size_t i = 1; i < bits.size(); ++i) {
      const auto x = static_cast<float>(number_of<T>(bits[i])),
                 y = static_cast<float>(number_of<T>(others[i]));
      expected.push_back(nearest_bits<T>(expected_in_float(op, x, y)));
    }
    const auto z = put_bits<T>(NarrowBits(bits.size(), 7));
    calls
        .transform(put_bits<T>(bits).slice(1, n - 1), put_bits<T>(others).slice(1, n - 1),
                   z.slice(1, n - 1), op)
        .get();
    EXPECT_EQ(without_payload<T>(bits_in(z)), without_payload<T>(expected));
  }
}

template <class To, class T>
std::vector<To> converted_to(const GpuRef<T>& x) {
  const auto y = device().alloc<To>(x.length());
  primitives::on(device()).convert(x, y).get();
  return device().download(y);
}
template <class I>
I expected_integer(double x) {
  if (std::isnan(x)) return 0;
  if (x <= static_cast<double>(std::numeric_limits<I>::min())) return std::numeric_limits<I>::min();
  if (x >= static_cast<double>(std::numeric_limits<I>::max())) return std::numeric_limits<I>::max();
  return static_cast<I>(x);
}

TYPED_TEST(PrimitiveNarrowTransforms, Conversions) {
  using T = TypeParam;
  using Other = std::conditional_t<std::is_same_v<T, Half>, BFloat16, Half>;
  const auto bits = every_number();
  const auto x = put_bits<T>(bits);
  const auto integers = converted_to<std::int32_t>(x);
  const auto unsigned_integers = converted_to<std::uint64_t>(x);
  const auto floats = converted_to<float>(x);
  const auto doubles = converted_to<double>(x);
  const auto other = device().template alloc<Other>(x.length());
  primitives::on(device()).convert(x, other).get();
  NarrowBits expected_other;
  for (std::size_t i = 0; i < bits.size(); ++i) {
    const auto number = number_of<T>(bits[i]);
    expected_other.push_back(nearest_bits<Other>(number));
    if (std::isnan(number)) {
      EXPECT_TRUE(integers[i] == 0 && std::isnan(floats[i]) && std::isnan(doubles[i]));
      continue;
    }
    ASSERT_EQ(doubles[i], number);
    ASSERT_EQ(static_cast<double>(floats[i]), number);
    ASSERT_EQ(std::signbit(floats[i]), std::signbit(number));
    ASSERT_EQ(integers[i], expected_integer<std::int32_t>(number)) << number;
    ASSERT_EQ(unsigned_integers[i], expected_integer<std::uint64_t>(number)) << number;
  }
  EXPECT_EQ(without_payload<Other>(bits_in(other)), without_payload<Other>(expected_other));
}

TYPED_TEST(PrimitiveNarrowTransforms, ConversionsFromOtherNumbers) {
  using T = TypeParam;
  std::mt19937_64 random(135);
  std::vector<float> floats;
  for (int i = 0; i < 100'000; ++i)
    floats.push_back(std::bit_cast<float>(static_cast<std::uint32_t>(random())));
  for (int bits = 0; bits < kInfinityBits<T>; ++bits) {  // halfway between two numbers
    const auto between = (magnitude_of<T>(bits) + magnitude_of<T>(bits + 1)) / 2;
    for (const double near : {between, -between, between * (1 + 1e-7), between * (1 - 1e-7)})
      floats.push_back(static_cast<float>(near));
  }
  std::vector<std::int64_t> integers;
  for (int i = 0; i < 10'000; ++i)
    integers.push_back(static_cast<std::int64_t>(random()) >> (random() % 64));
  NarrowBits from_floats, from_integers;
  for (const auto x : floats) from_floats.push_back(nearest_bits<T>(x));
  for (const auto x : integers) from_integers.push_back(nearest_bits<T>(static_cast<float>(x)));
  const auto a = device().template alloc<T>(std::ssize(floats));
  const auto b = device().template alloc<T>(std::ssize(integers));
  primitives::on(device()).convert(put(floats), a);
  primitives::on(device()).convert(put(integers), b).get();
  EXPECT_EQ(without_payload<T>(bits_in(a)), without_payload<T>(from_floats));
  EXPECT_EQ(bits_in(b), from_integers);
}

}  // namespace
}  // namespace troupe::test
