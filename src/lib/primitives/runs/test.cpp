#include <troupe/lib/primitives.hpp>

#include "bad_arguments.hpp"
#include "primitive_values.hpp"

namespace troupe::test {
namespace {

using PlacesOfRuns = std::vector<std::int64_t>;

template <class T>
class PrimitiveRunOps : public Typed<T> {};
TYPED_TEST_SUITE(PrimitiveRunOps, PrimitiveNumbers);

/// Runs of one to `longest` equal extreme numbers; where they stand side by side, equal ones join.
template <class T>
std::vector<T> elements_in_runs(std::int64_t n, std::uint64_t longest) {
  std::mt19937_64 random(101);
  const auto extremes = extreme_values<T>();
  std::vector<T> values;
  while (std::ssize(values) < n) {
    const T value = extremes[random() % extremes.size()];
    for (auto left = 1 + random() % longest; left > 0 && std::ssize(values) < n; --left)
      values.push_back(value);
  }
  return values;
}

/// Where runs begin, and n.
template <class T>
PlacesOfRuns begins_of_runs(const std::vector<T>& values) {
  PlacesOfRuns begins;
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (i == 0 || !(values[i - 1] == values[i])) begins.push_back(static_cast<std::int64_t>(i));
  }
  begins.push_back(std::ssize(values));
  return begins;
}

/// Of runs of at least two elements, where each begins and how long it is.
template <class T>
std::pair<PlacesOfRuns, PlacesOfRuns> long_runs(const std::vector<T>& values) {
  std::pair<PlacesOfRuns, PlacesOfRuns> runs;
  const auto begins = begins_of_runs(values);
  for (std::size_t run = 0; run + 1 < begins.size(); ++run) {
    const auto length = begins[run + 1] - begins[run];
    if (length < 2) continue;
    runs.first.push_back(begins[run]);
    runs.second.push_back(length);
  }
  return runs;
}

/// Room for `count` elements, all 7, with one more that nothing may change.
template <class T>
struct RoomOfSevens {
  GpuRef<T> whole, room;
  explicit RoomOfSevens(std::int64_t count)
      : whole(put(std::vector<T>(static_cast<std::size_t>(count + 1), T(7)))),
        room(whole.slice(0, count)) {}
  /// It holds the first of these, as many as there is room for, and sevens behind them.
  void expect(std::vector<T> elements) const {
    elements.resize(std::min(elements.size(), static_cast<std::size_t>(room.length())));
    elements.resize(static_cast<std::size_t>(room.length() + 1), T(7));
    EXPECT_EQ(bits_of(device().download(whole)), bits_of(elements));
  }
};

template <class T>
void expect_overflow(const Future<T>& failed, const std::string& words) {
  EXPECT_EQ(failed.wait().code(), Errc::invalid);
  if (!failed.wait().ok()) {
    EXPECT_EQ(failed.wait().error().message.find(words), 0u) << failed.wait().error().message;
  }
  EXPECT_EQ(device().take_error().code(), Errc::invalid);
}

TYPED_TEST(PrimitiveRunOps, NonTrivialRuns) {
  using T = TypeParam;
  for (const auto n : kPrimitiveLengths) {
    for (const std::uint64_t longest : {1, 2, 5, 10'000}) {
      SCOPED_TRACE(::testing::Message() << n << ", runs of up to " << longest);
      const auto values = elements_in_runs<T>(n, longest);
      const auto [begins, sizes] = long_runs(values);
      const auto count = std::ssize(begins);
      const auto x = put(values);
      const RoomOfSevens<std::int64_t> offsets(count + 3), lengths(count + 3);
      EXPECT_EQ(primitives::on(device()).non_trivial_runs(x, offsets.room, lengths.room).get(),
                count);
      offsets.expect(begins);
      lengths.expect(sizes);
      EXPECT_EQ(bits_of(device().download(x)), bits_of(values)) << "the input has changed";
    }
  }
}

template <class V, class K>
void check_unique_by_key(const std::vector<K>& keys) {
  std::vector<V> values, first_values;
  std::vector<K> unique_keys;
  for (std::size_t i = 0; i < keys.size(); ++i) values.push_back(static_cast<V>(i));
  auto begins = begins_of_runs(keys);
  begins.pop_back();
  for (const auto begin : begins) {
    unique_keys.push_back(keys[static_cast<std::size_t>(begin)]);
    first_values.push_back(values[static_cast<std::size_t>(begin)]);
  }
  const auto count = std::ssize(begins);
  const RoomOfSevens<K> to_keys(count + 3);
  const RoomOfSevens<V> to_values(count + 3);
  EXPECT_EQ(primitives::on(device())
                .unique_by_key(put(keys), put(values), to_keys.room, to_values.room)
                .get(),
            count);
  to_keys.expect(unique_keys);
  to_values.expect(first_values);
}

TYPED_TEST(PrimitiveRunOps, UniqueByKey) {
  for (const auto n : kPrimitiveLengths) {
    for (const std::uint64_t longest : {1, 5, 10'000}) {
      SCOPED_TRACE(::testing::Message() << n << ", runs of up to " << longest);
      const auto keys = elements_in_runs<TypeParam>(n, longest);
      check_unique_by_key<float>(keys);
      check_unique_by_key<std::int64_t>(keys);
    }
  }
}

TYPED_TEST(PrimitiveRunOps, WithoutRoomFailOrTell) {
  using T = TypeParam;
  const auto values = elements_in_runs<T>(20'000, 5);
  const auto x = put(values);
  const auto [begins, sizes] = long_runs(values);
  const auto runs = std::ssize(begins), keys = std::ssize(begins_of_runs(values)) - 1;
  auto library = primitives::on(device());
  for (const std::int64_t capacity : {std::int64_t{0}, std::int64_t{1}, runs - 1}) {
    SCOPED_TRACE(capacity);
    const RoomOfSevens<std::int64_t> offsets(capacity), lengths(capacity);
    EXPECT_EQ(library.non_trivial_runs(x, offsets.room, lengths.room, OnFailure::report).get(),
              runs);
    offsets.expect(begins);
    lengths.expect(sizes);
    expect_overflow(library.non_trivial_runs(x, offsets.room, lengths.room),
                    "primitives.non_trivial_runs: overflow: " + std::to_string(runs) +
                        " elements, room for " + std::to_string(capacity));
    const RoomOfSevens<T> to_keys(capacity), to_values(capacity);
    EXPECT_EQ(library.unique_by_key(x, x, to_keys.room, to_values.room, OnFailure::report).get(),
              keys);
    std::vector<T> firsts;
    for (const auto begin : begins_of_runs(values)) {
      if (begin < std::ssize(values)) firsts.push_back(values[static_cast<std::size_t>(begin)]);
    }
    to_keys.expect(firsts);
    to_values.expect(firsts);
    expect_overflow(library.unique_by_key(x, x, to_keys.room, to_values.room),
                    "primitives.unique_by_key: overflow: " + std::to_string(keys) +
                        " elements, room for " + std::to_string(capacity));
  }
}

/// Flags of all values of a byte, of which about one of `every` is not zero; 0: none.
std::vector<std::uint8_t> flags_of_ways(std::int64_t n, std::uint64_t every, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<std::uint8_t> flags(static_cast<std::size_t>(n));
  for (auto& flag : flags) {
    const auto bits = random();
    if (every != 0 && bits % every == 0) flag = static_cast<std::uint8_t>(1 + bits / every % 255);
  }
  return flags;
}

/// An input with two arrays of flags, and what each range must hold.
template <class T>
struct ThreeWaysOf {
  GpuRef<T> x;
  GpuRef<std::uint8_t> first_flags, second_flags;
  std::vector<T> ways[3];

  ThreeWaysOf(std::int64_t n, std::uint64_t every_first, std::uint64_t every_second) {
    const auto values = keys_of<T>(Keys::any, n, 102);
    const auto first = flags_of_ways(n, every_first, 103);
    const auto second = flags_of_ways(n, every_second, 104);
    for (std::size_t i = 0; i < values.size(); ++i)
      ways[first[i] != 0 ? 0 : second[i] != 0 ? 1 : 2].push_back(values[i]);
    x = put(values);
    first_flags = put(first);
    second_flags = put(second);
  }
  Future<primitives::ThreeWayCounts> part(const RoomOfSevens<T> (&rooms)[3],
                                          OnFailure on_failure = OnFailure::error) const {
    return primitives::on(device()).partition_three_way(x, first_flags, second_flags, rooms[0].room,
                                                        rooms[1].room, rooms[2].room, on_failure);
  }
};

TYPED_TEST(PrimitiveRunOps, PartitionThreeWay) {
  using T = TypeParam;
  for (const auto n : kPrimitiveLengths) {
    for (const auto& [first, second] :
         {std::pair<std::uint64_t, std::uint64_t>{3, 2}, {0, 0}, {1, 1}, {0, 1}, {1000, 1000}}) {
      SCOPED_TRACE(::testing::Message() << n << ", one of " << first << " and of " << second);
      const ThreeWaysOf<T> input(n, first, second);
      const auto& ways = input.ways;
      const RoomOfSevens<T> rooms[]{RoomOfSevens<T>(std::ssize(ways[0])),
                                    RoomOfSevens<T>(std::ssize(ways[1]) + 5),
                                    RoomOfSevens<T>(std::ssize(ways[2]))};
      const auto counts = input.part(rooms).get();
      EXPECT_EQ(counts.first, std::ssize(ways[0]));
      EXPECT_EQ(counts.second, std::ssize(ways[1]));
      for (int way = 0; way < 3; ++way) rooms[way].expect(ways[way]);
    }
  }
}

TYPED_TEST(PrimitiveRunOps, PartitionThreeWayWithoutRoomFailsOrTells) {
  using T = TypeParam;
  const ThreeWaysOf<T> input(20'000, 3, 2);
  for (int lacking = 0; lacking < 3; ++lacking) {
    SCOPED_TRACE(lacking);
    const auto room = [&](int way) {
      return RoomOfSevens<T>(std::ssize(input.ways[way]) - (way == lacking ? 100 : 0));
    };
    const RoomOfSevens<T> rooms[]{room(0), room(1), room(2)};
    const auto counts = input.part(rooms, OnFailure::report).get();
    EXPECT_EQ(counts.first, std::ssize(input.ways[0]));
    EXPECT_EQ(counts.second, std::ssize(input.ways[1]));
    for (int way = 0; way < 3; ++way) rooms[way].expect(input.ways[way]);
    const auto found = std::ssize(input.ways[lacking]);
    expect_overflow(input.part(rooms),
                    "primitives.partition_three_way: overflow: " + std::to_string(found) +
                        " elements, room for " + std::to_string(found - 100));
  }
}

/// Refuses operations of 16 elements, of f64.
class BadArgumentsOfRuns : public BadArguments {
 protected:
  detail::ResultCell cell = device().submitter().result_cell(16).take();
  std::vector<GpuRef<double>> others = [] {
    std::vector<GpuRef<double>> all;
    for (int made = 0; made < 5; ++made) all.push_back(put(std::vector<double>(16)));
    return all;
  }();
  Operand other(std::size_t which) const { return others[which].operand(); }

  template <class Op, class Change>
  void with(Op op, Change change, Errc code = Errc::invalid) {
    change(op);
    expect_refused(op, code);
  }
  /// What all of them refuse. `cell_of`: the member.
  template <class Op>
  void check_common(const Op& op, Operand Op::*cell_of) {
    EXPECT_TRUE(op.check().ok());
    with(op, [](auto& changed) { changed.n = -1; });
    with(op, [](auto& changed) { changed.n = 17; });
    with(op, [](auto& changed) { changed.on_failure = static_cast<OnFailure>(2); });
    with(op, [&](auto& changed) { changed.*cell_of = absent; });
    with(op, [&](auto& changed) { changed.*cell_of = i; });  // not pinned
    with(op, [&](auto& changed) { (changed.*cell_of).bytes = 4; });
    with(
        op, [](auto& changed) { changed.dtype = DType::i8; }, Errc::unsupported);
  }
};

TEST_F(BadArgumentsOfRuns, OfOperations) {
  using namespace primitives;
  const NonTrivialRuns runs{DType::f64, OnFailure::error, 0,        16,        16,
                            x,          other(0),         other(1), cell.where};
  check_common(runs, &NonTrivialRuns::count);
  with(runs, [](auto& op) { op.capacity = -1; });
  with(runs, [](auto& op) { op.capacity = 17; });
  with(runs, [&](auto& op) { op.x = absent; });
  with(runs, [&](auto& op) { op.offsets = absent; });
  with(runs, [&](auto& op) { op.lengths = absent; });
  with(runs, [&](auto& op) { op.offsets = unaligned; });
  with(runs, [&](auto& op) { op.offsets = x; });
  with(runs, [](auto& op) { op.lengths = op.offsets; });

  const UniqueByKey unique{DType::f64, OnFailure::error, 8,        16,       16,
                           x,          other(0),         other(1), other(2), cell.where};
  check_common(unique, &UniqueByKey::count);
  with(unique, [](auto& op) { op.capacity = -1; });
  with(unique, [](auto& op) { op.capacity = 17; });
  with(unique, [](auto& op) { op.value_bytes = 0; });
  with(unique, [](auto& op) { op.value_bytes = 16; });
  with(unique, [&](auto& op) { op.keys = absent; });
  with(unique, [&](auto& op) { op.values = absent; });
  with(unique, [](auto& op) { op.values.bytes = 120; });
  with(unique, [&](auto& op) { op.unique_keys = absent; });
  with(unique, [&](auto& op) { op.first_values = absent; });
  with(unique, [&](auto& op) { op.unique_keys = x; });
  with(unique, [](auto& op) { op.first_values = op.values; });
  with(unique, [](auto& op) { op.first_values = op.unique_keys; });

  const PartitionThreeWay part{
      DType::f64, OnFailure::error, 0,        16,       16,       16,       16,
      x,          other(0),         other(1), other(2), other(3), other(4), cell.where};
  check_common(part, &PartitionThreeWay::counts);
  with(part, [](auto& op) { op.counts.bytes = 8; });
  with(part, [](auto& op) { op.first_capacity = -1; });
  with(part, [](auto& op) { op.first_capacity = 17; });
  with(part, [](auto& op) { op.second_capacity = 17; });
  with(part, [](auto& op) { op.rest_capacity = 17; });
  with(part, [&](auto& op) { op.x = absent; });
  with(part, [&](auto& op) { op.first_flags = absent; });
  with(part, [](auto& op) { op.first_flags.bytes = 15; });
  with(part, [&](auto& op) { op.second_flags = absent; });
  with(part, [](auto& op) { op.second_flags.bytes = 15; });
  with(part, [&](auto& op) { op.first = x; });
  with(part, [](auto& op) { op.second = op.first; });
  with(part, [](auto& op) { op.rest = op.second_flags; });
  with(part, [](auto& op) { op.rest = op.second; });
}

TEST_F(BadArgumentsOfRuns, OfDifferentLengths) {
  const auto flags = put(std::vector<std::uint8_t>(16));
  const auto integers = put(std::vector<std::int64_t>(16));
  const auto four = ref.slice(0, 4), six = others[0].slice(0, 6), free = others[1].slice(0, 4);
  auto library = primitives::on(device());
  const std::pair<Future<void>, std::string> answers[] = {
      {library.non_trivial_runs(four, integers.slice(0, 6), integers.slice(6, 4))
           .then([](std::int64_t) {}),
       "primitives.non_trivial_runs: offsets has 6 elements, not 4"},
      {library.unique_by_key(four, six, free, others[2].slice(0, 4)).then([](std::int64_t) {}),
       "primitives.unique_by_key: values has 6 elements, not 4"},
      {library.unique_by_key(four, free, six, others[2].slice(0, 4)).then([](std::int64_t) {}),
       "primitives.unique_by_key: unique_keys has 6 elements, not 4"},
      {library
           .partition_three_way(four, flags.slice(0, 6), flags.slice(6, 4), free, others[2],
                                others[3])
           .then([](primitives::ThreeWayCounts) {}),
       "primitives.partition_three_way: first_flags has 6 elements, not 4"},
      {library
           .partition_three_way(four, flags.slice(0, 4), flags.slice(4, 6), free, others[2],
                                others[3])
           .then([](primitives::ThreeWayCounts) {}),
       "primitives.partition_three_way: second_flags has 6 elements, not 4"}};
  for (const auto& [future, words] : answers) {
    ASSERT_TRUE(future.ready()) << words << " was launched";
    ASSERT_EQ(future.wait().code(), Errc::invalid) << words;
    EXPECT_TRUE(future.wait().error().message.starts_with(words)) << future.wait().error().message;
  }
}

}  // namespace
}  // namespace troupe::test
