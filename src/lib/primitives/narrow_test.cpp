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
