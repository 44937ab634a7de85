#include <troupe/lib/primitives.hpp>

#include <algorithm>
#include <numeric>

#include "bad_arguments.hpp"
#include "primitive_values.hpp"

namespace troupe::test {
namespace {

template <class T>
class PrimitiveSelectionOps : public Typed<T> {};
TYPED_TEST_SUITE(PrimitiveSelectionOps, PrimitiveNumbers);
template <class T>
class PrimitiveSelectionOpsOfIntegers : public Typed<T> {};
TYPED_TEST_SUITE(PrimitiveSelectionOpsOfIntegers, PrimitiveIntegers);
template <class T>
class PrimitiveSelectionOpsOfReals : public Typed<T> {};
TYPED_TEST_SUITE(PrimitiveSelectionOpsOfReals, Reals);

/// About one of `every` is not zero, or none if that is 0; the flags have all values of a byte.
std::vector<std::uint8_t> flags_of_selections(std::int64_t n, std::uint64_t every) {
  std::mt19937_64 random(81);
  std::vector<std::uint8_t> flags(static_cast<std::size_t>(n));
  for (auto& flag : flags) {
    const auto bits = random();
    if (every != 0 && bits % every == 0) flag = static_cast<std::uint8_t>(1 + bits / every % 255);
  }
  return flags;
}

template <class T>
std::vector<T> flagged_of(const std::vector<T>& values, const std::vector<std::uint8_t>& flags,
                          bool wanted) {
  std::vector<T> taken;
  for (std::size_t i = 0; i < values.size(); ++i) {
    if ((flags[i] != 0) == wanted) taken.push_back(values[i]);
  }
  return taken;
}

/// What is expected, with elements around and behind it that nothing may change.
template <class T>
std::vector<BitsOf<T>> between_sevens(const std::vector<T>& expected, std::int64_t behind) {
  std::vector<T> whole{T(7)};
  whole.insert(whole.end(), expected.begin(), expected.end());
  whole.resize(whole.size() + static_cast<std::size_t>(behind), T(7));
  return bits_of(whole);
}
template <class T>
GpuRef<T> sevens(std::int64_t n) {
  return put(std::vector<T>(static_cast<std::size_t>(n), T(7)));
}

TYPED_TEST(PrimitiveSelectionOps, SelectFlagged) {
  using T = TypeParam;
  for (const auto n : kPrimitiveLengths) {
    for (const std::uint64_t every : {0, 1, 3, 1000}) {
      SCOPED_TRACE(::testing::Message() << n << ", one of " << every);
      const auto values = keys_of<T>(Keys::any, n, 82);
      const auto flags = flags_of_selections(n, every);
      const auto expected = flagged_of(values, flags, true);
      const auto count = std::ssize(expected);
      const auto around = sevens<T>(count + 7);
      const auto x = put(values);
      EXPECT_EQ(
          primitives::on(device()).select_flagged(x, put(flags), around.slice(1, count + 5)).get(),
          count);
      EXPECT_EQ(bits_of(device().download(around)), between_sevens(expected, 6));
      EXPECT_EQ(bits_of(device().download(x)), bits_of(values)) << "the input has changed";
    }
  }
}

TYPED_TEST(PrimitiveSelectionOps, PartitionFlagged) {
  using T = TypeParam;
  for (const auto n : kPrimitiveLengths) {
    for (const std::uint64_t every : {0, 1, 2, 1000}) {
      SCOPED_TRACE(::testing::Message() << n << ", one of " << every);
      const auto values = keys_of<T>(Keys::any, n, 83);
      const auto flags = flags_of_selections(n, every);
      auto expected = flagged_of(values, flags, true);
      const auto count = std::ssize(expected);
      const auto others = flagged_of(values, flags, false);
      expected.insert(expected.end(), others.rbegin(), others.rend());
      const auto around = sevens<T>(n + 2);
      EXPECT_EQ(primitives::on(device())
                    .partition_flagged(put(values), put(flags), around.slice(1, n))
                    .get(),
                count);
      EXPECT_EQ(bits_of(device().download(around)), between_sevens(expected, 1));
    }
  }
}

/// Runs of one to `longest` copies of an extreme number.
template <class T>
std::vector<T> values_in_runs(std::int64_t n, std::uint64_t longest) {
  std::mt19937_64 random(84);
  const auto extremes = extreme_values<T>();
  std::vector<T> values;
  while (std::ssize(values) < n) {
    const T value = extremes[random() % extremes.size()];
    for (auto left = 1 + random() % longest; left > 0 && std::ssize(values) < n; --left)
      values.push_back(value);
  }
  return values;
}

/// Where runs of equal elements begin, and n.
template <class T>
std::vector<std::size_t> runs_of(const std::vector<T>& values) {
  std::vector<std::size_t> begins;
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (i == 0 || !(values[i - 1] == values[i])) begins.push_back(i);
  }
  begins.push_back(values.size());
  return begins;
}

TYPED_TEST(PrimitiveSelectionOps, Unique) {
  using T = TypeParam;
  for (const auto n : kPrimitiveLengths) {
    for (const std::uint64_t longest : {1, 5, 10'000}) {
      SCOPED_TRACE(::testing::Message() << n << ", runs of up to " << longest);
      const auto values = values_in_runs<T>(n, longest);
      auto begins = runs_of(values);
      begins.pop_back();
      std::vector<T> expected;
      for (const auto begin : begins) expected.push_back(values[begin]);
      const auto count = std::ssize(expected);
      const auto around = sevens<T>(count + 7);
      EXPECT_EQ(primitives::on(device()).unique(put(values), around.slice(1, count + 5)).get(),
                count);
      EXPECT_EQ(bits_of(device().download(around)), between_sevens(expected, 6));
    }
  }
}

TYPED_TEST(PrimitiveSelectionOps, RunLengthEncode) {
  using T = TypeParam;
  for (const auto n : kPrimitiveLengths) {
    for (const std::uint64_t longest : {1, 5, 10'000, 1'000'000'000}) {
      SCOPED_TRACE(::testing::Message() << n << ", runs of up to " << longest);
      const auto values = values_in_runs<T>(n, longest);
      const auto begins = runs_of(values);
      std::vector<T> expected;
      std::vector<std::int64_t> lengths;
      for (std::size_t run = 0; run + 1 < begins.size(); ++run) {
        expected.push_back(values[begins[run + 1] - 1]);
        lengths.push_back(static_cast<std::int64_t>(begins[run + 1] - begins[run]));
      }
      const auto count = std::ssize(expected);
      const auto around = sevens<T>(count + 7);
      const auto around_lengths = sevens<std::int64_t>(count + 7);
      EXPECT_EQ(primitives::on(device())
                    .run_length_encode(put(values), around.slice(1, count + 5),
                                       around_lengths.slice(1, count + 5))
                    .get(),
                count);
      EXPECT_EQ(bits_of(device().download(around)), between_sevens(expected, 6));
      EXPECT_EQ(bits_of(device().download(around_lengths)), between_sevens(lengths, 6));
    }
  }
}

/// The reductions of integers, by loops over the bits.
template <class V>
V combined_by_hand(primitives::ReduceOp reduction, V a, V b) {
  using primitives::ReduceOp;
  const auto x = static_cast<BitsOf<V>>(a), y = static_cast<BitsOf<V>>(b);
  switch (reduction) {
    case ReduceOp::sum: return static_cast<V>(x + y);
    case ReduceOp::prod: return static_cast<V>(x * y);
    case ReduceOp::min: return std::min(a, b);
    case ReduceOp::max: return std::max(a, b);
    case ReduceOp::bit_and: return static_cast<V>(x & y);
    case ReduceOp::bit_or: return static_cast<V>(x | y);
    default: return static_cast<V>(x ^ y);
  }
}

template <class K, class V>
void check_reduce_by_key(std::int64_t n, std::uint64_t longest, primitives::ReduceOp reduction) {
  SCOPED_TRACE(::testing::Message() << n << ", runs of up to " << longest << ", reduction "
                                    << static_cast<int>(reduction));
  const auto keys = values_in_runs<K>(n, longest);
  const auto values = keys_of<V>(Keys::any, n, 85);
  const auto begins = runs_of(keys);
  std::vector<K> expected_keys;
  std::vector<V> expected;
  for (std::size_t run = 0; run + 1 < begins.size(); ++run) {
    expected_keys.push_back(keys[begins[run + 1] - 1]);
    V result = values[begins[run]];
    for (auto i = begins[run] + 1; i < begins[run + 1]; ++i)
      result = combined_by_hand(reduction, result, values[i]);
    expected.push_back(result);
  }
  const auto count = std::ssize(expected);
  const auto around_keys = sevens<K>(count + 7);
  const auto around = sevens<V>(count + 7);
  EXPECT_EQ(primitives::on(device())
                .reduce_by_key(put(keys), put(values), around_keys.slice(1, count + 5),
                               around.slice(1, count + 5), reduction)
                .get(),
            count);
  EXPECT_EQ(bits_of(device().download(around_keys)), between_sevens(expected_keys, 6));
  EXPECT_EQ(bits_of(device().download(around)), between_sevens(expected, 6));
}

TYPED_TEST(PrimitiveSelectionOps, ReduceByKey) {
  using primitives::ReduceOp;
  for (const auto n : kPrimitiveLengths) {
    check_reduce_by_key<TypeParam, std::int32_t>(n, 5, ReduceOp::sum);
    check_reduce_by_key<TypeParam, std::uint64_t>(n, 10'000, ReduceOp::sum);
  }
}

TYPED_TEST(PrimitiveSelectionOpsOfIntegers, ReduceByKeyWithEachReduction) {
  using primitives::ReduceOp;
  for (const auto reduction : {ReduceOp::sum, ReduceOp::min, ReduceOp::max, ReduceOp::prod,
                               ReduceOp::bit_and, ReduceOp::bit_or, ReduceOp::bit_xor}) {
    check_reduce_by_key<std::int32_t, TypeParam>(1000, 9, reduction);
    check_reduce_by_key<double, TypeParam>(65'537, 9, reduction);
  }
}

TYPED_TEST(PrimitiveSelectionOpsOfReals, RunsOfZerosAndNans) {
  using T = TypeParam;
  const T nan = std::numeric_limits<T>::quiet_NaN();
  const std::vector<T> values{T(-0.0), T(0), T(0), nan, nan, T(1), T(0), T(-0.0)};
  const auto x = put(values);
  const auto selected = device().template alloc<T>(5);
  EXPECT_EQ(primitives::on(device()).unique(x, selected).get(), 5);
  EXPECT_EQ(bits_of(device().download(selected)),
            bits_of(std::vector<T>{T(-0.0), nan, nan, T(1), T(0)}));
  const auto lengths = device().template alloc<std::int64_t>(5);
  EXPECT_EQ(primitives::on(device()).run_length_encode(x, selected, lengths).get(), 5);
  EXPECT_EQ(bits_of(device().download(selected)),
            bits_of(std::vector<T>{T(0), nan, nan, T(1), T(-0.0)}));
  EXPECT_EQ(device().download(lengths), (std::vector<std::int64_t>{3, 1, 1, 1, 2}));
}

/// A selection without enough room: reported, it writes what there is room for; as an error, it
/// names the room that it needs.
template <class T, class Select>
void check_too_little_room(const std::vector<T>& all, std::string_view operation, Select select) {
  const auto count = std::ssize(all);
  for (const std::int64_t capacity : {std::int64_t{0}, std::int64_t{1}, count - 1}) {
    SCOPED_TRACE(::testing::Message() << operation << ", room for " << capacity);
    const auto around = sevens<T>(count + 1);
    const auto room = around.slice(0, capacity);
    const auto reported = select(room, OnFailure::report);
    EXPECT_EQ(reported.get(), count);
    auto expected = all;
    std::fill(expected.begin() + capacity, expected.end(), T(7));
    expected.push_back(T(7));
    EXPECT_EQ(bits_of(device().download(around)), bits_of(expected));
    EXPECT_TRUE(device().take_error().ok());

    const auto failed = select(room, OnFailure::error);
    EXPECT_EQ(failed.wait().code(), Errc::invalid);
    EXPECT_EQ(failed.wait().error().message.find(std::string(operation) +
                                                 ": overflow: " + std::to_string(count) +
                                                 " elements, room for " + std::to_string(capacity)),
              0u)
        << failed.wait().error().message;
    EXPECT_EQ(device().take_error().code(), Errc::invalid);
  }
}

TYPED_TEST(PrimitiveSelectionOps, WithoutRoomFailOrTell) {
  using T = TypeParam;
  constexpr std::int64_t kCount = 20'000;
  const auto values = keys_of<T>(Keys::any, kCount, 86);
  const auto flags = flags_of_selections(kCount, 3);
  const auto x = put(values);
  const auto on_device = put(flags);
  check_too_little_room(flagged_of(values, flags, true), "primitives.select_flagged",
                        [&](const auto& room, OnFailure on_failure) {
                          return primitives::on(device()).select_flagged(x, on_device, room,
                                                                         on_failure);
                        });
  const auto in_runs = values_in_runs<T>(kCount, 5);
  const auto runs = put(in_runs);
  const auto begins = runs_of(in_runs);
  std::vector<T> firsts;
  std::vector<std::int64_t> lengths;
  for (std::size_t run = 0; run + 1 < begins.size(); ++run) {
    firsts.push_back(in_runs[begins[run]]);
    lengths.push_back(static_cast<std::int64_t>(begins[run + 1] - begins[run]));
  }
  check_too_little_room(firsts, "primitives.unique", [&](const auto& room, OnFailure on_failure) {
    return primitives::on(device()).unique(runs, room, on_failure);
  });
  check_too_little_room(
      lengths, "primitives.run_length_encode", [&](const auto& room, OnFailure on_failure) {
        const auto keys = device().template alloc<T>(room.length());
        return primitives::on(device()).run_length_encode(runs, keys, room, on_failure);
      });
  const auto ones = put(std::vector<std::int64_t>(kCount, 1));
  check_too_little_room(lengths, "primitives.reduce_by_key",
                        [&](const auto& room, OnFailure on_failure) {
                          const auto keys = device().template alloc<T>(room.length());
                          return primitives::on(device()).reduce_by_key(
                              runs, ones, keys, room, primitives::ReduceOp::sum, on_failure);
                        });
}

}  // namespace
}  // namespace troupe::test
