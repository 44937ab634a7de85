#include <troupe/lib/primitives.hpp>

#include <algorithm>
#include <functional>
#include <numeric>

#include "bad_arguments.hpp"
#include "primitive_values.hpp"

namespace troupe::test {
namespace {

template <class T>
class PrimitiveReductionOps : public Typed<T> {};
TYPED_TEST_SUITE(PrimitiveReductionOps, PrimitiveNumbers);
template <class T>
class PrimitiveReductionOpsOfIntegers : public Typed<T> {};
TYPED_TEST_SUITE(PrimitiveReductionOpsOfIntegers, PrimitiveIntegers);
template <class T>
class PrimitiveReductionOpsOfReals : public Typed<T> {};
TYPED_TEST_SUITE(PrimitiveReductionOpsOfReals, Reals);

template <class T>
T reduced(const GpuRef<T>& x, primitives::ReduceOp reduction) {
  const auto result = put(std::vector<T>{T(77)});
  primitives::on(device()).reduce(x, result, reduction).get();
  return device().download(result)[0];
}

template <class T>
T reduced_nothing(primitives::ReduceOp reduction) {
  using Limits = std::numeric_limits<T>;
  if (reduction == primitives::ReduceOp::sum) return T(0);
  if (reduction == primitives::ReduceOp::min)
    return Limits::has_infinity ? Limits::infinity() : Limits::max();
  return Limits::has_infinity ? static_cast<T>(-Limits::infinity()) : Limits::lowest();
}

TYPED_TEST(PrimitiveReductionOps, ReductionsOfSmallIntegersAreExact) {
  using T = TypeParam;
  for (const auto n : kPrimitiveLengths) {
    if (n == 0) continue;
    for (const std::int64_t first : {0, 1}) {  // from 1 x is not aligned for wide loads
      SCOPED_TRACE(::testing::Message() << n << " from " << first);
      std::mt19937_64 random(63);
      std::vector<T> values(static_cast<std::size_t>(first + n));
      for (auto& value : values) value = static_cast<T>(static_cast<int>(random() % 9) - 4);
      const auto x = put(values).slice(first, n);
      values.erase(values.begin(), values.begin() + first);
      using Exact = std::conditional_t<std::floating_point<T>, double, BitsOf<T>>;
      const auto sum = std::accumulate(values.begin(), values.end(), Exact{0}, [](Exact a, T b) {
        return static_cast<Exact>(a + static_cast<Exact>(b));
      });
      EXPECT_EQ(reduced(x, primitives::ReduceOp::sum), static_cast<T>(sum));
      EXPECT_EQ(reduced(x, primitives::ReduceOp::min),
                *std::min_element(values.begin(), values.end()));
      EXPECT_EQ(reduced(x, primitives::ReduceOp::max),
                *std::max_element(values.begin(), values.end()));
    }
  }
}

/// One element that is smaller or larger than all others, wherever it is.
TYPED_TEST(PrimitiveReductionOps, ReductionsFindTheOnlyExtreme) {
  using T = TypeParam;
  using Limits = std::numeric_limits<T>;
  for (const std::int64_t at : {0, 1, 255, 4096, 65'535, 65'536}) {
    std::vector<T> values(65'537, T(5));
    values[static_cast<std::size_t>(at)] = Limits::lowest();
    EXPECT_EQ(reduced(put(values), primitives::ReduceOp::min), Limits::lowest()) << at;
    EXPECT_EQ(reduced(put(values), primitives::ReduceOp::max), T(5)) << at;
    values[static_cast<std::size_t>(at)] = Limits::max();
    EXPECT_EQ(reduced(put(values), primitives::ReduceOp::max), Limits::max()) << at;
    EXPECT_EQ(reduced(put(values), primitives::ReduceOp::min), T(5)) << at;
  }
}

TYPED_TEST(PrimitiveReductionOps, ReductionsOfNothing) {
  using T = TypeParam;
  using primitives::ReduceOp;
  const auto none = device().template alloc<T>(0);
  for (const auto reduction : {ReduceOp::sum, ReduceOp::min, ReduceOp::max})
    EXPECT_EQ(reduced(none, reduction), reduced_nothing<T>(reduction));
  EXPECT_EQ(reduced(none, ReduceOp::prod), T(1));
}

TYPED_TEST(PrimitiveReductionOpsOfIntegers, SumsWrapAround) {
  using T = TypeParam;
  const auto values = keys_of<T>(Keys::any, kManyElements, 64);
  BitsOf<T> sum = 0;
  for (const auto value : values) sum += static_cast<BitsOf<T>>(value);
  EXPECT_EQ(reduced(put(values), primitives::ReduceOp::sum), static_cast<T>(sum));
}

TYPED_TEST(PrimitiveReductionOpsOfReals, SumsAreCloseAndTheSameEachTime) {
  using T = TypeParam;
  for (const std::int64_t n : {1000, 1'000'003}) {
    const auto values = random_values<T>(n, 65);
    long double sum = 0, scale = 0;
    for (const T value : values) sum += value, scale += std::abs(value);
    const auto x = put(values);
    const auto first = reduced(x, primitives::ReduceOp::sum);
    // Blocks add at most a few hundred elements one after the other, then their sums.
    EXPECT_TRUE(
        close(std::vector<T>{first}, {static_cast<double>(sum)}, 1000, static_cast<double>(scale)));
    for (int run = 0; run < 3; ++run) EXPECT_EQ(reduced(x, primitives::ReduceOp::sum), first);
  }
}

TYPED_TEST(PrimitiveReductionOpsOfReals, ReductionsOfInfinitiesAndNans) {
  using T = TypeParam;
  using primitives::ReduceOp;
  constexpr T kInfinity = std::numeric_limits<T>::infinity();
  for (const std::int64_t n : {3, 65'537}) {
    for (const std::int64_t at : {std::int64_t{0}, n / 2, n - 1}) {
      std::vector<T> values(static_cast<std::size_t>(n), T(1));
      auto& one = values[static_cast<std::size_t>(at)];
      one = -kInfinity;
      EXPECT_EQ(reduced(put(values), ReduceOp::min), -kInfinity);
      EXPECT_EQ(reduced(put(values), ReduceOp::max), T(1));
      EXPECT_EQ(reduced(put(values), ReduceOp::sum), -kInfinity);
      one = std::numeric_limits<T>::quiet_NaN();
      for (const auto reduction : {ReduceOp::sum, ReduceOp::min, ReduceOp::max, ReduceOp::prod})
        EXPECT_TRUE(std::isnan(reduced(put(values), reduction))) << n << " " << at;
    }
  }
}

TYPED_TEST(PrimitiveReductionOpsOfIntegers, ProductsWrapAround) {
  using T = TypeParam;
  for (const auto n : kPrimitiveLengths) {
    auto values = keys_of<T>(Keys::any, n, 71);
    BitsOf<T> product = 1;
    for (auto& value : values) {
      value = static_cast<T>(value | T(1));  // odd: no product is 0
      product *= static_cast<BitsOf<T>>(value);
    }
    EXPECT_EQ(reduced(put(values), primitives::ReduceOp::prod), static_cast<T>(product)) << n;
  }
}

/// Powers of two, whose products are exact in any order.
TYPED_TEST(PrimitiveReductionOpsOfReals, ProductsOfPowersOfTwo) {
  using T = TypeParam;
  for (const auto n : kPrimitiveLengths) {
    std::mt19937_64 random(72);
    std::vector<T> values(static_cast<std::size_t>(n));
    T product = 1;
    for (std::size_t i = 0; i < values.size(); ++i) {
      const bool few = i % (values.size() / 64 + 1) == 0;  // the exponent stays small
      values[i] = few ? (random() % 2 == 0 ? T(2) : T(0.5)) : random() % 2 == 0 ? T(1) : T(-1);
      product *= values[i];
    }
    EXPECT_EQ(reduced(put(values), primitives::ReduceOp::prod), product) << n;
  }
}

TYPED_TEST(PrimitiveReductionOpsOfIntegers, CombineBits) {
  using T = TypeParam;
  using primitives::ReduceOp;
  for (const auto n : kPrimitiveLengths) {
    SCOPED_TRACE(n);
    // Most bits are set for the conjunction, few for the disjunction.
    auto values = keys_of<T>(Keys::any, n, 73);
    auto many = values, few = values;
    for (std::size_t i = 0; i < values.size(); ++i) {
      const auto bit = static_cast<T>(T(1) << (i % 11));
      many[i] = i % 1000 == 999 ? static_cast<T>(~bit) : static_cast<T>(-1);
      few[i] = i % 1000 == 999 ? bit : T(0);
    }
    const auto combined = [](const std::vector<T>& of, T initial, auto combine) {
      return std::accumulate(of.begin(), of.end(), initial, combine);
    };
    EXPECT_EQ(reduced(put(many), ReduceOp::bit_and),
              combined(many, static_cast<T>(-1), std::bit_and<T>{}));
    EXPECT_EQ(reduced(put(few), ReduceOp::bit_or), combined(few, T(0), std::bit_or<T>{}));
    EXPECT_EQ(reduced(put(values), ReduceOp::bit_xor), combined(values, T(0), std::bit_xor<T>{}));
  }
}

template <class T>
std::pair<T, std::int64_t> found_extreme(const GpuRef<T>& x, primitives::Extreme extreme) {
  const auto value = put(std::vector<T>{T(77)});
  const auto index = put(std::vector<std::int64_t>{77});
  primitives::on(device()).arg_reduce(x, value, index, extreme).get();
  return {device().download(value)[0], device().download(index)[0]};
}

/// By a loop: the first NaN, else the first of the smallest or largest elements.
template <class T>
std::int64_t place_of_extreme(const std::vector<T>& values, primitives::Extreme extreme) {
  std::int64_t best = -1;
  for (std::int64_t i = 0; i < std::ssize(values); ++i) {
    const T value = values[static_cast<std::size_t>(i)];
    if (value != value) return i;
    const T until_now = values[static_cast<std::size_t>(best < 0 ? 0 : best)];
    const bool beyond = extreme == primitives::Extreme::min ? value < until_now : until_now < value;
    if (best < 0 || beyond) best = i;
  }
  return best;
}

TYPED_TEST(PrimitiveReductionOps, ArgReduceFindsTheFirstOfEqualElements) {
  using T = TypeParam;
  using primitives::Extreme;
  for (const auto n : kPrimitiveLengths) {
    if (n == 0) continue;
    SCOPED_TRACE(n);
    std::mt19937_64 random(74);
    std::vector<T> few(static_cast<std::size_t>(n)), any = keys_of<T>(Keys::any, n, 75);
    for (auto& value : few) value = static_cast<T>(random() % 3);
    auto late = few;  // the extremes stand near the end
    std::fill(late.begin(), late.end() - n / 3, T(1));
    for (auto& value : any) value = value != value ? T(3) : value;
    for (const auto& values : {few, late, any}) {
      for (const auto extreme : {Extreme::min, Extreme::max}) {
        const auto expected = place_of_extreme(values, extreme);
        const auto [value, index] = found_extreme(put(values), extreme);
        EXPECT_EQ(index, expected);
        EXPECT_EQ(bits_of(std::vector<T>{value}),
                  bits_of(std::vector<T>{values[static_cast<std::size_t>(expected)]}));
      }
    }
  }
}

TYPED_TEST(PrimitiveReductionOps, ArgReduceOfNothingAndOfParts) {
  using T = TypeParam;
  using primitives::Extreme;
  const auto none = device().template alloc<T>(0);
  const T lowest = reduced_nothing<T>(primitives::ReduceOp::max);
  const T highest = reduced_nothing<T>(primitives::ReduceOp::min);
  EXPECT_EQ(found_extreme(none, Extreme::min), std::pair(highest, std::int64_t{-1}));
  EXPECT_EQ(found_extreme(none, Extreme::max), std::pair(lowest, std::int64_t{-1}));
  // What it gives for nothing is an element like any other.
  EXPECT_EQ(found_extreme(put(std::vector<T>{highest, highest}), Extreme::min),
            std::pair(highest, std::int64_t{0}));
  EXPECT_EQ(found_extreme(put(std::vector<T>{lowest, lowest}), Extreme::max),
            std::pair(lowest, std::int64_t{0}));
  const auto x = put(std::vector<T>{T(0), T(5), T(3), T(9)});
  EXPECT_EQ(found_extreme(x.slice(1, 2), Extreme::min), std::pair(T(3), std::int64_t{1}));
  EXPECT_EQ(found_extreme(x.slice(1, 2), Extreme::max), std::pair(T(5), std::int64_t{0}));
}

TYPED_TEST(PrimitiveReductionOpsOfReals, ArgReduceOfZerosAndNans) {
  using T = TypeParam;
  using primitives::Extreme;
  const T nan = std::numeric_limits<T>::quiet_NaN();
  for (const auto extreme : {Extreme::min, Extreme::max}) {
    const auto [zero, first] = found_extreme(put(std::vector<T>{T(0), T(-0.0), T(0)}), extreme);
    EXPECT_EQ(first, 0);
    EXPECT_FALSE(std::signbit(zero));
    const auto [other_zero, same] = found_extreme(put(std::vector<T>{T(-0.0), T(0)}), extreme);
    EXPECT_EQ(same, 0);
    EXPECT_TRUE(std::signbit(other_zero));
    for (const std::int64_t n : {100, 65'537}) {
      std::vector<T> values(static_cast<std::size_t>(n), T(1));
      values[3] = extreme == Extreme::min ? T(-9) : T(9);
      values[static_cast<std::size_t>(n - 1)] = nan;
      values[static_cast<std::size_t>(n / 2)] = -nan;
      const auto [value, index] = found_extreme(put(values), extreme);
      EXPECT_EQ(index, n / 2);
      EXPECT_TRUE(std::isnan(value));
    }
  }
}

/// Segments of a range, some of them empty, and what each of them gives.
TYPED_TEST(PrimitiveReductionOps, SegmentedReduce) {
  using T = TypeParam;
  using primitives::ReduceOp;
  for (const auto n : kPrimitiveLengths) {
    for (const std::int64_t segments : {1, 3, 1000}) {
      SCOPED_TRACE(::testing::Message() << n << " elements, " << segments << " segments");
      std::mt19937_64 random(76);
      std::vector<T> values(static_cast<std::size_t>(n + 1));
      for (auto& value : values) value = static_cast<T>(static_cast<int>(random() % 9) - 4);
      std::vector<std::int64_t> offsets{0, n};
      while (std::ssize(offsets) < segments + 1)
        offsets.push_back(static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(n + 1)));
      std::sort(offsets.begin(), offsets.end());
      const auto x = put(values).slice(1, n);
      for (const auto reduction : {ReduceOp::sum, ReduceOp::min, ReduceOp::max}) {
        std::vector<T> expected(static_cast<std::size_t>(segments + 2), T(7));
        for (std::int64_t s = 0; s < segments; ++s) {
          const auto begin = offsets[static_cast<std::size_t>(s)],
                     end = offsets[static_cast<std::size_t>(s + 1)];
          T& result = expected[static_cast<std::size_t>(s + 1)];
          result = reduced_nothing<T>(reduction);
          for (auto i = begin; i < end; ++i) {
            const T value = values[static_cast<std::size_t>(i + 1)];
            result = reduction == ReduceOp::sum   ? static_cast<T>(result + value)
                     : reduction == ReduceOp::min ? std::min(result, value)
                                                  : std::max(result, value);
          }
        }
        const auto around = put(std::vector<T>(static_cast<std::size_t>(segments + 2), T(7)));
        primitives::on(device())
            .segmented_reduce(x, put(offsets), around.slice(1, segments), reduction)
            .get();
        EXPECT_EQ(device().download(around), expected);
      }
    }
  }
}

/// Offsets are cut at the ends of the elements; nothing outside of these is read.
TYPED_TEST(PrimitiveReductionOps, SegmentedReduceOfWrongOffsets) {
  using T = TypeParam;
  using primitives::ReduceOp;
  const auto whole = put(std::vector<T>{T(100), T(1), T(2), T(3), T(4), T(100)});
  constexpr std::int64_t kFar = std::int64_t{1} << 62;
  const auto offsets = put(std::vector<std::int64_t>{-1, 2, 1, 3, 9, -kFar, kFar, kFar});
  const auto result = device().template alloc<T>(7);
  primitives::on(device()).segmented_reduce(whole.slice(1, 4), offsets, result).get();
  EXPECT_EQ(device().download(result), (std::vector<T>{3, 0, 5, 4, 0, 10, 0}));
  const auto none = device().template alloc<T>(0);
  primitives::on(device()).segmented_reduce(whole, offsets.slice(0, 1), none).get();
  primitives::on(device()).segmented_reduce(none, offsets, result).get();
  EXPECT_EQ(device().download(result), std::vector<T>(7, T(0)));
}

TYPED_TEST(PrimitiveReductionOpsOfReals, SegmentedReduceOfInfinitiesAndNans) {
  using T = TypeParam;
  using primitives::ReduceOp;
  using Limits = std::numeric_limits<T>;
  constexpr T kInfinity = Limits::infinity();
  const auto x = put(std::vector<T>{T(1), Limits::quiet_NaN(), T(2), kInfinity, T(3)});
  const auto offsets = put(std::vector<std::int64_t>{0, 3, 3, 5});
  for (const auto reduction : {ReduceOp::sum, ReduceOp::min, ReduceOp::max}) {
    const auto result = device().template alloc<T>(3);
    primitives::on(device()).segmented_reduce(x, offsets, result, reduction).get();
    const auto values = device().download(result);
    EXPECT_TRUE(std::isnan(values[0]));
    EXPECT_EQ(values[1], reduced_nothing<T>(reduction));
    EXPECT_EQ(values[2], reduction == ReduceOp::min ? T(3) : kInfinity);
  }
}

TYPED_TEST(PrimitiveReductionOpsOfReals, SegmentedSumsAreCloseAndTheSameEachTime) {
  using T = TypeParam;
  constexpr std::int64_t kSegments = 50, kLength = 20'011;
  const auto values = random_values<T>(kSegments * kLength, 77);
  std::vector<std::int64_t> offsets;
  for (std::int64_t s = 0; s <= kSegments; ++s) offsets.push_back(s * kLength);
  std::vector<double> sums;
  for (std::int64_t s = 0; s < kSegments; ++s)
    sums.push_back(
        std::accumulate(values.begin() + s * kLength, values.begin() + (s + 1) * kLength, 0.0));
  const auto x = put(values), result = device().template alloc<T>(kSegments);
  const auto begins = put(offsets);
  primitives::on(device()).segmented_reduce(x, begins, result);
  const auto first = device().download(result);
  EXPECT_TRUE(close(first, sums, 200, kLength));
  for (int run = 0; run < 3; ++run) {
    primitives::on(device()).segmented_reduce(x, begins, result);
    EXPECT_EQ(device().download(result), first);
  }
}

}  // namespace
}  // namespace troupe::test
