#include <troupe/lib/primitives.hpp>

#include <algorithm>
#include <bit>
#include <cmath>
#include <numeric>
#include <random>

#include "bad_arguments.hpp"
#include "narrow_numbers.hpp"

/// f16 and bf16: every number there is, where that is possible.
namespace troupe::test {
namespace {

using primitives::Binary;
using primitives::Extreme;
using primitives::Order;
using primitives::ReduceOp;
using primitives::Unary;

template <class T>
class PrimitiveNarrow : public Typed<T> {};
using NarrowFloats = ::testing::Types<Half, BFloat16>;
TYPED_TEST_SUITE(PrimitiveNarrow, NarrowFloats);
class PrimitiveNarrowRefused : public BadArguments {};

NarrowBits small_integers_as(std::uint16_t (*encode)(double), std::int64_t n) {
  std::mt19937_64 random(133);
  NarrowBits bits(static_cast<std::size_t>(n));
  for (auto& one : bits) one = encode(static_cast<double>(random() % 3) - 1);
  return bits;
}

/// Signs and magnitudes have the order of keys, and both zeros are 0.
int key_order_of(std::uint16_t bits) {
  return bits < 0x8000 ? bits : -(bits & 0x7fff);
}
std::vector<std::size_t> narrow_places(const NarrowBits& keys, std::size_t begin, std::size_t end,
                                       Order order) {
  std::vector<std::size_t> places(keys.size());
  std::iota(places.begin(), places.end(), std::size_t{0});
  const auto first = places.begin() + static_cast<std::ptrdiff_t>(begin);
  std::stable_sort(first, places.begin() + static_cast<std::ptrdiff_t>(end),
                   [&](std::size_t a, std::size_t b) {
                     const int x = key_order_of(keys[a]), y = key_order_of(keys[b]);
                     return order == Order::ascending ? x < y : y < x;
                   });
  return places;
}
template <class V>
std::vector<V> at_places(const std::vector<V>& values, const std::vector<std::size_t>& places) {
  std::vector<V> taken;
  for (const auto place : places) taken.push_back(values[place]);
  return taken;
}

template <class T, class V>
void check_narrow_pairs(const NarrowBits& keys, const std::vector<std::size_t>& places,
                        Order order) {
  std::vector<V> values(keys.size());
  std::iota(values.begin(), values.end(), V(0));
  const auto n = std::ssize(keys);
  const auto sorted = device().alloc<T>(n);
  const auto sorted_values = device().alloc<V>(n);
  primitives::on(device()).sort(put_bits<T>(keys), put(values), sorted, sorted_values, order).get();
  EXPECT_EQ(bits_in(sorted), at_places(keys, places));
  EXPECT_EQ(device().download(sorted_values), at_places(values, places));
}

TYPED_TEST(PrimitiveNarrow, Sorts) {
  using T = TypeParam;
  for (const auto order : {Order::ascending, Order::descending}) {
    for (const auto& keys : {every_number(), few_numbers<T>(0), few_numbers<T>(1),
                             few_numbers<T>(1000), few_numbers<T>(300'001)}) {
      SCOPED_TRACE(::testing::Message()
                   << keys.size() << " keys, order " << static_cast<int>(order));
      const auto places = narrow_places(keys, 0, keys.size(), order);
      const auto x = put_bits<T>(keys), sorted = device().template alloc<T>(std::ssize(keys));
      primitives::on(device()).sort(x, sorted, order).get();
      EXPECT_EQ(bits_in(sorted), at_places(keys, places));
      EXPECT_EQ(bits_in(x), keys) << "the input has changed";
      check_narrow_pairs<T, std::uint32_t>(keys, places, order);
      check_narrow_pairs<T, std::int64_t>(keys, places, order);
    }
  }
}

TYPED_TEST(PrimitiveNarrow, SortsOfSegments) {
  using T = TypeParam;
  const auto keys = every_number();
  const std::vector<std::int64_t> offsets{10, 10, 35'000, 70'000};
  for (const auto order : {Order::ascending, Order::descending}) {
    auto expected = at_places(keys, narrow_places(keys, 10, 35'000, order));
    expected = at_places(expected, narrow_places(expected, 35'000, 70'000, order));
    const auto sorted = device().template alloc<T>(std::ssize(keys));
    primitives::on(device()).segmented_sort(put_bits<T>(keys), put(offsets), sorted, order).get();
    EXPECT_EQ(bits_in(sorted), expected);
  }
}

TYPED_TEST(PrimitiveNarrow, Merges) {
  using T = TypeParam;
  for (const auto order : {Order::ascending, Order::descending}) {
    auto a = every_number(), b = few_numbers<T>(5001);
    a = at_places(a, narrow_places(a, 0, a.size(), order));
    b = at_places(b, narrow_places(b, 0, b.size(), order));
    auto both = a;
    both.insert(both.end(), b.begin(), b.end());
    const auto places = narrow_places(both, 0, both.size(), order);
    std::vector<std::uint32_t> values(both.size());
    std::iota(values.begin(), values.end(), 0u);
    const auto n_a = static_cast<std::ptrdiff_t>(a.size());
    const std::vector<std::uint32_t> of_a(values.begin(), values.begin() + n_a),
        of_b(values.begin() + n_a, values.end());
    const auto merged = device().template alloc<T>(std::ssize(both));
    const auto merged_values = device().template alloc<std::uint32_t>(std::ssize(both));
    primitives::on(device())
        .merge(put_bits<T>(a), put(of_a), put_bits<T>(b), put(of_b), merged, merged_values, order)
        .get();
    EXPECT_EQ(bits_in(merged), at_places(both, places));
    EXPECT_EQ(device().download(merged_values), at_places(values, places));
  }
}

template <class T>
std::uint16_t reduced_bits(const NarrowBits& bits, ReduceOp reduction, std::int64_t first = 0) {
  const auto result = device().alloc<T>(1);
  primitives::on(device())
      .reduce(put_bits<T>(bits).slice(first, std::ssize(bits) - first), result, reduction)
      .get();
  return bits_in(result)[0];
}

TYPED_TEST(PrimitiveNarrow, ReductionsOfSmallIntegersAreExact) {
  using T = TypeParam;
  for (const std::int64_t n : {1, 7, 8, 1000, 4097, 65'537, 1'000'003}) {
    for (const std::int64_t first : {0, 1}) {  // aligned to packs or not
      SCOPED_TRACE(::testing::Message() << n << " from " << first);
      const auto bits = small_integers_as(nearest_bits<T>, n + first);
      double sum = 0;
      for (std::size_t i = static_cast<std::size_t>(first); i < bits.size(); ++i)
        sum += number_of<T>(bits[i]);
      EXPECT_EQ(reduced_bits<T>(bits, ReduceOp::sum, first), nearest_bits<T>(sum));
      double squares = 0, least = 2, most = -2;
      for (std::size_t i = static_cast<std::size_t>(first); i < bits.size(); ++i) {
        const auto x = number_of<T>(bits[i]);
        squares += x * x, least = std::min(least, x), most = std::max(most, x);
      }
      EXPECT_EQ(reduced_bits<T>(bits, ReduceOp::min, first), nearest_bits<T>(least));
      EXPECT_EQ(reduced_bits<T>(bits, ReduceOp::max, first), nearest_bits<T>(most));
      const auto result = device().template alloc<T>(1);
      primitives::on(device())
          .transform_reduce(put_bits<T>(bits).slice(first, n), result, Unary::square)
          .get();
      EXPECT_EQ(bits_in(result)[0], nearest_bits<T>(squares));
    }
  }
}

/// Sums that were rounded to the type on their way would stop growing.
TYPED_TEST(PrimitiveNarrow, SumsAreRoundedOnce) {
  using T = TypeParam;
  EXPECT_EQ(reduced_bits<T>(NarrowBits(40'001, nearest_bits<T>(1)), ReduceOp::sum),
            nearest_bits<T>(40'001));
  EXPECT_EQ(reduced_bits<T>(NarrowBits(1'000'000, nearest_bits<T>(4)), ReduceOp::sum),
            nearest_bits<T>(4'000'000));  // infinity in f16
}

TYPED_TEST(PrimitiveNarrow, ReductionsOfNothingAndOfNans) {
  using T = TypeParam;
  const auto infinity = static_cast<std::uint16_t>(kInfinityBits<T>);
  EXPECT_EQ(reduced_bits<T>({}, ReduceOp::sum), 0);
  EXPECT_EQ(reduced_bits<T>({}, ReduceOp::prod), nearest_bits<T>(1));
  EXPECT_EQ(reduced_bits<T>({}, ReduceOp::min), infinity);
  EXPECT_EQ(reduced_bits<T>({}, ReduceOp::max), infinity | 0x8000);
  NarrowBits bits(5000, nearest_bits<T>(-1));
  EXPECT_EQ(reduced_bits<T>(bits, ReduceOp::prod), nearest_bits<T>(1));
  bits[1234] = 0xffff;
  for (const auto reduction : {ReduceOp::sum, ReduceOp::prod, ReduceOp::min, ReduceOp::max})
    EXPECT_TRUE(std::isnan(number_of<T>(reduced_bits<T>(bits, reduction))));
}

template <class T>
void check_narrow_extremes(const NarrowBits& bits) {
  for (const auto extreme : {Extreme::min, Extreme::max}) {
    std::int64_t expected = -1;
    for (std::size_t i = 0; i < bits.size(); ++i) {
      const auto x = number_of<T>(bits[i]);
      const auto best = expected < 0 ? x : number_of<T>(bits[static_cast<std::size_t>(expected)]);
      const bool better = std::isnan(x)             ? !std::isnan(best)
                          : extreme == Extreme::min ? x < best
                                                    : x > best;
      if (expected < 0 || better) expected = static_cast<std::int64_t>(i);
    }
    const auto value = device().alloc<T>(1);
    const auto index = device().alloc<std::int64_t>(1);
    primitives::on(device()).arg_reduce(put_bits<T>(bits), value, index, extreme).get();
    EXPECT_EQ(device().download(index)[0], expected);
    const int sign = extreme == Extreme::min ? 0 : 0x8000;
    EXPECT_EQ(bits_in(value)[0],
              expected < 0 ? kInfinityBits<T> | sign : bits[static_cast<std::size_t>(expected)]);
  }
}

TYPED_TEST(PrimitiveNarrow, ArgReduce) {
  using T = TypeParam;
  check_narrow_extremes<T>({});
  check_narrow_extremes<T>({0x8000, 0, 0x8000});
  check_narrow_extremes<T>(every_number());  // with NaNs
  auto numbers = every_number();
  for (auto& bits : numbers) {
    if (std::isnan(number_of<T>(bits))) bits = 0;
  }
  check_narrow_extremes<T>(numbers);
}

TYPED_TEST(PrimitiveNarrow, Selections) {
  using T = TypeParam;
  for (const auto& bits : {every_number(), few_numbers<T>(5001)}) {
    const auto n = std::ssize(bits);
    std::vector<std::uint8_t> flags(bits.size());
    std::vector<std::int64_t> places(bits.size(), -1);
    NarrowBits selected, others, unique;
    std::size_t nonzero = 0;
    for (std::size_t i = 0; i < bits.size(); ++i) {
      const auto x = number_of<T>(bits[i]);
      flags[i] = bits[i] % 3 == 0 ? 1 : 0;
      (flags[i] != 0 ? selected : others).push_back(bits[i]);
      if (x != 0) places[nonzero++] = static_cast<std::int64_t>(i);
      if (i == 0 || number_of<T>(bits[i - 1]) != x) unique.push_back(bits[i]);
    }
    const auto x = put_bits<T>(bits);
    auto calls = primitives::on(device());
    const auto indices = device().template alloc<std::int64_t>(n);
    EXPECT_EQ(calls.select_nonzero(x, indices).get(), static_cast<std::int64_t>(nonzero));
    EXPECT_EQ(device().download(indices), places);

    const auto room = device().template alloc<T>(n), rest = device().template alloc<T>(n);
    const auto none = device().template alloc<T>(0);
    EXPECT_EQ(calls.select_flagged(x, put(flags), room).get(), std::ssize(selected));
    EXPECT_EQ(bits_in(room.slice(0, std::ssize(selected))), selected);
    auto parted = selected;
    parted.insert(parted.end(), others.rbegin(), others.rend());
    EXPECT_EQ(calls.partition_flagged(x, put(flags), room).get(), std::ssize(selected));
    EXPECT_EQ(bits_in(room), parted);
    const std::vector<std::uint8_t> no_flags(bits.size());
    const auto counts =
        calls.partition_three_way(x, put(no_flags), put(flags), none, room, rest).get();
    EXPECT_EQ(counts.second, std::ssize(selected));
    EXPECT_EQ(bits_in(room.slice(0, std::ssize(selected))), selected);
    EXPECT_EQ(bits_in(rest.slice(0, std::ssize(others))), others);

    EXPECT_EQ(calls.unique(x, room).get(), std::ssize(unique));
    EXPECT_EQ(bits_in(room.slice(0, std::ssize(unique))), unique);
  }
}

TYPED_TEST(PrimitiveNarrow, Runs) {
  using T = TypeParam;
  const auto bits = few_numbers<T>(5001);
  const auto n = std::ssize(bits);
  NarrowBits firsts, lasts;
  std::vector<std::int64_t> begins, lengths, long_begins, long_lengths;
  for (std::size_t i = 0; i < bits.size(); ++i) {
    if (i == 0 || number_of<T>(bits[i - 1]) != number_of<T>(bits[i])) {
      firsts.push_back(bits[i]), lasts.push_back(0), lengths.push_back(0);
      begins.push_back(static_cast<std::int64_t>(i));
    }
    lasts.back() = bits[i], ++lengths.back();
  }
  for (std::size_t run = 0; run < lengths.size(); ++run) {
    if (lengths[run] > 1) long_begins.push_back(begins[run]), long_lengths.push_back(lengths[run]);
  }
  const auto x = put_bits<T>(bits), keys = device().template alloc<T>(n);
  const auto found = device().template alloc<std::int64_t>(n),
             more = device().template alloc<std::int64_t>(n);
  const auto runs = std::ssize(firsts), long_runs = std::ssize(long_begins);
  auto calls = primitives::on(device());
  EXPECT_EQ(calls.run_length_encode(x, keys, found).get(), runs);
  EXPECT_EQ(bits_in(keys.slice(0, runs)), lasts);
  EXPECT_EQ(device().download(found.slice(0, runs)), lengths);
  EXPECT_EQ(calls.non_trivial_runs(x, found, more).get(), long_runs);
  EXPECT_EQ(device().download(found.slice(0, long_runs)), long_begins);
  EXPECT_EQ(device().download(more.slice(0, long_runs)), long_lengths);
  std::vector<std::int64_t> numbers(bits.size());
  std::iota(numbers.begin(), numbers.end(), 0);
  EXPECT_EQ(calls.unique_by_key(x, put(numbers), keys, found).get(), runs);
  EXPECT_EQ(bits_in(keys.slice(0, runs)), firsts);
  EXPECT_EQ(device().download(found.slice(0, runs)), begins);
}

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

TYPED_TEST(PrimitiveNarrow, Transforms) {
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

TYPED_TEST(PrimitiveNarrow, Conversions) {
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

TYPED_TEST(PrimitiveNarrow, ConversionsFromOtherNumbers) {
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

/// What is added in parts has no such kernels.
TEST_F(PrimitiveNarrowRefused, ByTheOthers) {
  const auto half = x;
  expect_refused(primitives::SegmentedReduce{DType::f16, ReduceOp::sum, 0, 4, 1, half, half, half},
                 Errc::unsupported);
  expect_refused(
      primitives::Scan{
          DType::bf16, primitives::Scanning::inclusive, ReduceOp::sum, 4, half, half, {}},
      Errc::unsupported);
  expect_refused(
      primitives::AdjacentDifference{DType::f16, primitives::Neighbour::left, 0, 4, half, half},
      Errc::unsupported);
  expect_refused(
      primitives::Sort{DType::f16, Order::ascending, 0, 4, half, absent, half, absent, 3, 9});
  expect_refused(primitives::Reduce{DType::bf16, ReduceOp::bit_or, 0, 4, half, half});
  expect_refused(primitives::Transform{DType::f16, Unary::bit_not, 0, 4, half, half});
}

}  // namespace
}  // namespace troupe::test
