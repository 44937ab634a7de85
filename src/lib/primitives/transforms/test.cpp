#include <troupe/lib/primitives.hpp>

#include <cmath>
#include <cstdint>
#include <limits>

#include "bad_arguments.hpp"
#include "primitive_values.hpp"

/// What goes by elements, its reductions, and batches of copies.
namespace troupe::test {
namespace {

using primitives::Binary;
using primitives::ReduceOp;
using primitives::Unary;

template <class T>
class PrimitiveTransforms : public Typed<T> {};
TYPED_TEST_SUITE(PrimitiveTransforms, PrimitiveNumbers);
template <class T>
class PrimitiveTransformsOfIntegers : public Typed<T> {};
TYPED_TEST_SUITE(PrimitiveTransformsOfIntegers, PrimitiveIntegers);
template <class T>
class PrimitiveTransformsOfReals : public Typed<T> {};
TYPED_TEST_SUITE(PrimitiveTransformsOfReals, Reals);
class PrimitiveTransformsCopies : public ::testing::Test {};

/// Bits, of which all NaNs have the same.
template <class T>
std::vector<BitsOf<T>> bits_without_payload(std::vector<T> values) {
  if constexpr (std::floating_point<T>) {
    for (auto& value : values) {
      if (std::isnan(value)) value = std::numeric_limits<T>::quiet_NaN();
    }
  }
  return bits_of(values);
}

template <class T>
T expected_unary(Unary op, T x) {
  if constexpr (std::floating_point<T>) {
    switch (op) {
      case Unary::negate: return -x;
      case Unary::absolute: return std::signbit(x) ? -x : x;
      case Unary::square: return x * x;
      case Unary::square_root: return std::sqrt(x);
      default: return 1 / x;
    }
  } else {
    const auto bits = static_cast<std::uint64_t>(x);  // what wraps around does so in 64 bits, too
    switch (op) {
      case Unary::negate: return static_cast<T>(-bits);
      case Unary::absolute: return static_cast<T>(x < 0 ? -bits : bits);
      case Unary::square: return static_cast<T>(bits * bits);
      default: return static_cast<T>(~bits);
    }
  }
}

template <class T>
T expected_binary(Binary op, T x, T y) {
  switch (op) {
    case Binary::min: return y != y || y < x ? y : x;
    case Binary::max: return y != y || x < y ? y : x;
    default: break;
  }
  if constexpr (std::floating_point<T>) {
    switch (op) {
      case Binary::add: return x + y;
      case Binary::subtract: return x - y;
      case Binary::multiply: return x * y;
      default: return x / y;
    }
  } else {
    const auto a = static_cast<std::uint64_t>(x), b = static_cast<std::uint64_t>(y);
    switch (op) {
      case Binary::add: return static_cast<T>(a + b);
      case Binary::subtract: return static_cast<T>(a - b);
      case Binary::multiply: return static_cast<T>(a * b);
      case Binary::divide:
        if (y == 0) return 0;
        if (std::is_signed_v<T> && y == static_cast<T>(-1)) return static_cast<T>(-a);
        return static_cast<T>(x / y);
      case Binary::bit_and: return static_cast<T>(a & b);
      case Binary::bit_or: return static_cast<T>(a | b);
      default: return static_cast<T>(a ^ b);
    }
  }
}

template <class T>
std::vector<Unary> unary_operators() {
  if constexpr (std::floating_point<T>) {
    return {Unary::negate, Unary::absolute, Unary::square, Unary::square_root, Unary::reciprocal};
  }
  return {Unary::negate, Unary::absolute, Unary::square, Unary::bit_not};
}
template <class T>
std::vector<Binary> binary_operators() {
  std::vector<Binary> all{Binary::add,    Binary::subtract, Binary::multiply,
                          Binary::divide, Binary::min,      Binary::max};
  if constexpr (std::integral<T>)
    all.insert(all.end(), {Binary::bit_and, Binary::bit_or, Binary::bit_xor});
  return all;
}

TYPED_TEST(PrimitiveTransforms, OfOneRange) {
  using T = TypeParam;
  for (const auto op : unary_operators<T>()) {
    for (const std::int64_t n : {0, 1, 5, 1000, 65'537}) {
      for (const std::int64_t first : {0, 1}) {  // aligned to packs or not
        SCOPED_TRACE(::testing::Message()
                     << n << " from " << first << ", operator " << static_cast<int>(op));
        const auto values = keys_of<T>(Keys::any, n + first, 101);
        std::vector<T> expected(static_cast<std::size_t>(first), T(7));
        for (auto i = first; i < n + first; ++i)
          expected.push_back(expected_unary(op, values[static_cast<std::size_t>(i)]));
        expected.push_back(T(7));
        const auto all = put(values), x = all.slice(first, n);
        const auto around = put(std::vector<T>(expected.size(), T(7)));
        primitives::on(device()).transform(x, around.slice(first, n), op).get();
        EXPECT_EQ(bits_without_payload(device().download(around)), bits_without_payload(expected));
        EXPECT_EQ(bits_of(device().download(all)), bits_of(values)) << "the input has changed";
        primitives::on(device()).transform(x, x, op).get();
        EXPECT_EQ(bits_without_payload(device().download(x)),
                  bits_without_payload(device().download(around.slice(first, n))));
      }
    }
  }
}

TYPED_TEST(PrimitiveTransforms, OfTwoRanges) {
  using T = TypeParam;
  for (const auto op : binary_operators<T>()) {
    for (const std::int64_t n : {0, 1, 7, 1000, 65'537}) {
      for (const std::int64_t first : {0, 1}) {
        SCOPED_TRACE(::testing::Message()
                     << n << " from " << first << ", operator " << static_cast<int>(op));
        const auto a = keys_of<T>(Keys::any, n + first, 102), b = keys_of<T>(Keys::few, n, 103);
        std::vector<T> expected;
        for (std::size_t i = 0; i < b.size(); ++i)
          expected.push_back(expected_binary(op, a[i + static_cast<std::size_t>(first)], b[i]));
        const auto x = put(a).slice(first, n), y = put(b), z = device().template alloc<T>(n);
        primitives::on(device()).transform(x, y, z, op).get();
        const auto bits = bits_without_payload(expected);
        EXPECT_EQ(bits_without_payload(device().download(z)), bits);
        EXPECT_EQ(bits_of(device().download(y)), bits_of(b)) << "the input has changed";
        primitives::on(device()).transform(x, y, x, op).get();
        EXPECT_EQ(bits_without_payload(device().download(x)), bits);
        primitives::on(device()).transform(put(a).slice(first, n), y, y, op).get();
        EXPECT_EQ(bits_without_payload(device().download(y)), bits);
      }
    }
  }
}

TYPED_TEST(PrimitiveTransformsOfIntegers, DivideByZeroAndByMinusOne) {
  using T = TypeParam;
  constexpr T kLowest = std::numeric_limits<T>::lowest();
  const std::vector<T> x{5, 0, kLowest, kLowest, 9}, y{0, 0, 0, static_cast<T>(-1), 2};
  const auto z = device().template alloc<T>(5);
  primitives::on(device()).transform(put(x), put(y), z, Binary::divide).get();
  EXPECT_EQ(device().download(z), (std::vector<T>{0, 0, 0, kLowest, 4}));
}

/// What std::trunc and the limits say, in long double, which holds all of these numbers.
template <class To, class From>
To expected_conversion(From x) {
  if constexpr (std::integral<From>) {
    return static_cast<To>(x);
  } else if constexpr (std::floating_point<To>) {
    return static_cast<To>(x);
  } else {
    using Limits = std::numeric_limits<To>;
    if (std::isnan(x)) return 0;
    const auto whole = std::trunc(static_cast<long double>(x));
    if (whole <= static_cast<long double>(Limits::min())) return Limits::min();
    if (whole >= static_cast<long double>(Limits::max())) return Limits::max();
    return static_cast<To>(whole);
  }
}
template <class To, class From>
void check_conversion(const std::vector<From>& values) {
  SCOPED_TRACE(to_string(dtype_of<To>));
  std::vector<To> expected;
  for (const auto value : values) expected.push_back(expected_conversion<To>(value));
  const auto y = device().alloc<To>(std::ssize(values));
  primitives::on(device()).convert(put(values), y).get();
  EXPECT_EQ(bits_without_payload(device().download(y)), bits_without_payload(expected));
}

TYPED_TEST(PrimitiveTransforms, Convert) {
  using T = TypeParam;
  for (const std::int64_t n : {0, 1, 1000, 65'537}) {
    auto values = keys_of<T>(Keys::any, n, 104);
    for (const double value :
         {0.5, -0.5, 1.5, -1.5, -1.0, 2147483647.0, 2147483648.0, -2147483648.0, -2147483649.0,
          4294967295.0, 4294967296.0, 9.3e18, 1.9e19})
      if constexpr (std::floating_point<T>) values.push_back(static_cast<T>(value));
    check_conversion<std::int32_t>(values);
    check_conversion<std::uint32_t>(values);
    check_conversion<std::int64_t>(values);
    check_conversion<std::uint64_t>(values);
    check_conversion<float>(values);
    check_conversion<double>(values);
  }
}

TYPED_TEST(PrimitiveTransforms, ReduceWhatIsExact) {
  using T = TypeParam;
  for (const std::int64_t n : {0, 1, 255, 4097, 65'537, 1'000'003}) {
    SCOPED_TRACE(n);
    std::vector<T> values;
    std::mt19937_64 random(105);
    T squares = 0, largest = 0;
    for (std::int64_t i = 0; i < n; ++i) {
      const auto size = static_cast<T>(random() % 4);  // the sum is below 2^24
      values.push_back(random() % 2 == 0 ? size : static_cast<T>(-size));
      if (std::is_unsigned_v<T>) values.back() = size;
      squares += size * size;
      largest = std::max(largest, size);
    }
    if (n == 0)
      largest = std::floating_point<T> ? -std::numeric_limits<T>::infinity()
                                       : std::numeric_limits<T>::lowest();
    const auto x = put(values);
    const auto result = device().template alloc<T>(1);
    primitives::on(device()).transform_reduce(x, result, Unary::square).get();
    EXPECT_EQ(device().download(result), std::vector<T>{squares});
    primitives::on(device()).transform_reduce(x, result, Unary::absolute, ReduceOp::max).get();
    EXPECT_EQ(device().download(result), std::vector<T>{largest});
  }
}

TYPED_TEST(PrimitiveTransformsOfIntegers, ReduceAnyBits) {
  using T = TypeParam;
  const auto values = keys_of<T>(Keys::any, 70'001, 106);
  T sum = 0, all_and = static_cast<T>(-1), all_xor = 0, smallest = std::numeric_limits<T>::max();
  for (const auto value : values) {
    const auto inverted = expected_unary(Unary::bit_not, value);
    sum = expected_binary(Binary::add, sum, expected_unary(Unary::square, value));
    all_and = static_cast<T>(all_and & inverted);
    all_xor = static_cast<T>(all_xor ^ inverted);
    smallest = std::min(smallest, expected_unary(Unary::negate, value));
  }
  const auto x = put(values);
  const auto result = device().template alloc<T>(1);
  const auto reduced = [&](Unary op, ReduceOp reduction) {
    primitives::on(device()).transform_reduce(x, result, op, reduction).get();
    return device().download(result)[0];
  };
  EXPECT_EQ(reduced(Unary::square, ReduceOp::sum), sum);
  EXPECT_EQ(reduced(Unary::bit_not, ReduceOp::bit_and), all_and);
  EXPECT_EQ(reduced(Unary::bit_not, ReduceOp::bit_xor), all_xor);
  EXPECT_EQ(reduced(Unary::negate, ReduceOp::min), smallest);
}

TYPED_TEST(PrimitiveTransformsOfReals, ReduceRounded) {
  using T = TypeParam;
  std::mt19937_64 random(107);
  std::vector<T> values(1'000'003);
  long double squares = 0;
  for (auto& value : values) {
    value = std::uniform_real_distribution<T>(-1, 1)(random);
    squares += static_cast<long double>(value) * value;
  }
  const auto x = put(values);
  const auto result = device().template alloc<T>(1);
  primitives::on(device()).transform_reduce(x, result, Unary::square).get();
  const auto first = device().download(result);
  const auto tolerance =
      2 * (std::size(values) + 2.0L) * std::numeric_limits<T>::epsilon() * squares;
  EXPECT_NEAR(static_cast<double>(first[0]), static_cast<double>(squares),
              static_cast<double>(tolerance));
  primitives::on(device()).transform_reduce(x, result, Unary::square).get();
  EXPECT_EQ(device().download(result), first) << "other bits in the second run";

  values[4711] = std::numeric_limits<T>::quiet_NaN();
  for (const auto reduction : {ReduceOp::sum, ReduceOp::min, ReduceOp::max}) {
    primitives::on(device())
        .transform_reduce(put(values), result, Unary::absolute, reduction)
        .get();
    EXPECT_TRUE(std::isnan(device().download(result)[0]));
  }
}

/// Copies of these numbers of bytes, which begin at any byte.
void check_copies(const std::vector<std::int64_t>& lengths) {
  std::mt19937_64 random(108);
  std::vector<std::uint8_t> from, to, expected;
  std::vector<std::int64_t> from_places, to_places;
  for (const auto length : lengths) {
    for (auto gap = random() % 5; gap > 0; --gap) from.push_back(1);
    for (auto gap = random() % 5; gap > 0; --gap) expected.push_back(2);
    from_places.push_back(std::ssize(from)), to_places.push_back(std::ssize(expected));
    for (std::int64_t i = 0; i < length; ++i) {
      from.push_back(static_cast<std::uint8_t>(random()));
      expected.push_back(from.back());
    }
  }
  expected.push_back(2);
  to.assign(expected.size(), 2);
  const auto source = put(from), destination = put(to);
  std::vector<GpuRef<std::uint8_t>> sources, destinations;
  for (std::size_t i = 0; i < lengths.size(); ++i) {
    sources.push_back(source.slice(from_places[i], lengths[i]));
    destinations.push_back(destination.slice(to_places[i], lengths[i]));
  }
  primitives::on(device()).copy_batched(sources, destinations).get();
  EXPECT_EQ(device().download(destination), expected);
  EXPECT_EQ(device().download(source), from) << "a source has changed";
}

TEST_F(PrimitiveTransformsCopies, OfBytes) {
  check_copies({});
  check_copies({0});
  check_copies({1, 0, 16, 3, 16'384, 16'385, 40'000, 5});
  check_copies({0, 1'000'003});
  std::vector<std::int64_t> many;
  for (std::int64_t i = 0; i < primitives::CopyBatched::kMost; ++i) many.push_back(i % 77);
  check_copies(many);
}

TEST_F(PrimitiveTransformsCopies, OfBuffersOfNumbers) {
  std::vector<GpuRef<double>> from, to;
  std::vector<std::vector<double>> expected;
  for (const std::int64_t n : {1, 100, 10'000}) {
    expected.emplace_back(static_cast<std::size_t>(n), static_cast<double>(n));
    from.push_back(put(expected.back()));
    to.push_back(device().alloc<double>(n));
  }
  primitives::on(device()).copy_batched(from, to);
  for (std::size_t i = 0; i < to.size(); ++i) EXPECT_EQ(device().download(to[i]), expected[i]);
}

}  // namespace
}  // namespace troupe::test
