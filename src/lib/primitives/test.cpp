#include <troupe/lib/primitives.hpp>

#include <compare>
#include <complex>
#include <concepts>
#include <numeric>

#include "bad_arguments.hpp"
#include "primitive_values.hpp"

namespace troupe::test {
namespace {

template <class T>
class PrimitiveOps : public Typed<T> {};
TYPED_TEST_SUITE(PrimitiveOps, PrimitiveNumbers);
template <class T>
class PrimitiveOpsOfReals : public Typed<T> {};
TYPED_TEST_SUITE(PrimitiveOpsOfReals, Reals);

/// The order of primitives::Sort: IEEE 754's totalOrder, but both zeros are equal.
template <class T>
bool sorts_before(T a, T b) {
  if constexpr (std::floating_point<T>) {
    return a != b && std::strong_order(a, b) < 0;
  } else {
    return a < b;
  }
}

/// Which key comes where.
template <class K>
std::vector<std::size_t> sorted_places(const std::vector<K>& keys, primitives::Order order) {
  std::vector<std::size_t> places(keys.size());
  std::iota(places.begin(), places.end(), std::size_t{0});
  std::stable_sort(places.begin(), places.end(), [&](std::size_t a, std::size_t b) {
    return order == primitives::Order::ascending ? sorts_before(keys[a], keys[b])
                                                 : sorts_before(keys[b], keys[a]);
  });
  return places;
}

template <class T>
std::vector<T> taken(const std::vector<T>& from, const std::vector<std::size_t>& places) {
  std::vector<T> values;
  for (const auto place : places) values.push_back(from[place]);
  return values;
}

/// Values of type V, each its own place, along with keys that are on the device.
template <class V, class K>
void check_values(const GpuRef<K>& keys, const std::vector<BitsOf<K>>& expected_keys,
                  const std::vector<std::size_t>& places, primitives::Order order) {
  std::vector<V> values;
  for (std::size_t i = 0; i < places.size(); ++i)
    values.push_back(V(static_cast<float>(i)));  // exact
  const auto on_device = put(values);
  const auto sorted_keys = device().alloc<K>(keys.length());
  const auto sorted_values = device().alloc<V>(keys.length());
  primitives::on(device()).sort(keys, on_device, sorted_keys, sorted_values, order).get();
  EXPECT_EQ(bits_of(device().download(sorted_keys)), expected_keys);
  EXPECT_EQ(device().download(sorted_values), taken(values, places));
  EXPECT_EQ(device().download(on_device), values);
}

template <class K>
void check_sorts(Keys kind, std::int64_t n, primitives::Order order) {
  SCOPED_TRACE(::testing::Message() << n << " keys, kind " << static_cast<int>(kind) << ", order "
                                    << static_cast<int>(order));
  const auto keys = keys_of<K>(kind, n, 61);
  const auto places = sorted_places(keys, order);
  const auto expected = bits_of(taken(keys, places));
  const auto on_device = put(keys), sorted = device().alloc<K>(n);
  primitives::on(device()).sort(on_device, sorted, order).get();
  EXPECT_EQ(bits_of(device().download(sorted)), expected);
  check_values<float>(on_device, expected, places, order);
  check_values<std::int64_t>(on_device, expected, places, order);
  EXPECT_EQ(bits_of(device().download(on_device)), bits_of(keys)) << "the input has changed";
}

TYPED_TEST(PrimitiveOps, Sort) {
  for (const auto n : kPrimitiveLengths) {
    if (n == kManyElements) continue;
    for (const auto kind : {Keys::few, Keys::any}) {
      check_sorts<TypeParam>(kind, n, primitives::Order::ascending);
      check_sorts<TypeParam>(kind, n, primitives::Order::descending);
    }
  }
}

TYPED_TEST(PrimitiveOps, SortManyKeys) {
  check_sorts<TypeParam>(Keys::few, kManyElements, primitives::Order::descending);
  check_sorts<TypeParam>(Keys::any, kManyElements, primitives::Order::ascending);
}

/// Slices that begin at any element, and what lies around them.
TYPED_TEST(PrimitiveOps, SortPartsOfBuffers) {
  using T = TypeParam;
  using C = std::complex<float>;
  const auto keys = keys_of<T>(Keys::any, 5001, 62);
  const std::vector<T> part(keys.begin() + 1, keys.end());
  const auto places = sorted_places(part, primitives::Order::ascending);
  std::vector<C> values;
  for (std::size_t i = 0; i < keys.size(); ++i) values.emplace_back(static_cast<float>(i), -1.0f);
  const auto sorted_keys = put(std::vector<T>(5003, T(7)));
  const auto sorted_values = put(std::vector<C>(5003, C(7)));
  primitives::on(device())
      .sort(put(keys).slice(1, 5000), put(values).slice(1, 5000), sorted_keys.slice(1, 5000),
            sorted_values.slice(1, 5000))
      .get();
  auto expected_keys = taken(part, places);
  auto expected_values = taken(std::vector<C>(values.begin() + 1, values.end()), places);
  for (const int around : {0, 1, 2}) {
    expected_keys.insert(around == 0 ? expected_keys.begin() : expected_keys.end(), T(7));
    expected_values.insert(around == 0 ? expected_values.begin() : expected_values.end(), C(7));
  }
  EXPECT_EQ(bits_of(device().download(sorted_keys)), bits_of(expected_keys));
  EXPECT_EQ(device().download(sorted_values), expected_values);
}

/// In each order the zeros keep their places among themselves.
TYPED_TEST(PrimitiveOpsOfReals, SortOfZerosInfinitiesAndNans) {
  using T = TypeParam;
  using Limits = std::numeric_limits<T>;
  constexpr T kInfinity = Limits::infinity(), kNan = Limits::quiet_NaN();
  const T negative_nan = std::copysign(kNan, T(-1));
  const std::vector<T> keys{T(0),         kNan,       T(-0.0), kInfinity, T(0),
                            negative_nan, -kInfinity, T(-0.0), T(1),      T(-1)};
  const std::vector<T> up{negative_nan, -kInfinity, T(-1), T(0),      T(-0.0),
                          T(0),         T(-0.0),    T(1),  kInfinity, kNan};
  const std::vector<T> down{kNan, kInfinity, T(1),  T(0),       T(-0.0),
                            T(0), T(-0.0),   T(-1), -kInfinity, negative_nan};
  const auto on_device = put(keys), sorted = device().template alloc<T>(std::ssize(keys));
  primitives::on(device()).sort(on_device, sorted);
  EXPECT_EQ(bits_of(device().download(sorted)), bits_of(up));
  primitives::on(device()).sort(on_device, sorted, primitives::Order::descending);
  EXPECT_EQ(bits_of(device().download(sorted)), bits_of(down));
}

/// A vector of which about one of `every` elements is not zero, or none if that is 0.
template <class T>
std::vector<T> sparse_vector(std::int64_t n, std::uint64_t every) {
  std::mt19937_64 random(68);
  const auto extremes = extreme_values<T>();
  std::vector<T> values;
  for (std::int64_t i = 0; i < n; ++i) {
    const auto bits = random();
    const bool nonzero = every != 0 && bits % every == 0;
    auto value = nonzero ? extremes[bits / every % extremes.size()] : T(0);
    if (nonzero && value == T(0)) value = T(1);
    if constexpr (std::floating_point<T>) value = nonzero || i % 2 == 0 ? value : -value;  // -0
    values.push_back(value);
  }
  return values;
}

template <class T>
std::vector<std::int64_t> places_of_nonzeros(const std::vector<T>& values) {
  std::vector<std::int64_t> places;
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (values[i] != T(0)) places.push_back(static_cast<std::int64_t>(i));
  }
  return places;
}

TYPED_TEST(PrimitiveOps, SelectNonzero) {
  using T = TypeParam;
  for (const auto n : kPrimitiveLengths) {
    for (const std::uint64_t every : {0, 1, 3, 1000}) {
      for (const std::int64_t spare : {0, 5, 10'000}) {
        SCOPED_TRACE(::testing::Message() << n << ", one of " << every << ", spare " << spare);
        const auto values = sparse_vector<T>(n, every);
        auto expected = places_of_nonzeros(values);
        const auto count = std::ssize(expected);
        expected.resize(expected.size() + static_cast<std::size_t>(spare), -1);
        expected.push_back(7);
        const auto x = put(values);
        const auto around = put(std::vector<std::int64_t>(expected.size(), 7));
        const auto indices = around.slice(0, count + spare);
        EXPECT_EQ(primitives::on(device()).select_nonzero(x, indices).get(), count);
        EXPECT_EQ(device().download(around), expected);
      }
    }
  }
}

TYPED_TEST(PrimitiveOps, SelectNonzeroWithoutRoomFailsOrTells) {
  using T = TypeParam;
  for (const std::int64_t missing : {1, 100, 5000}) {
    const auto values = sparse_vector<T>(20'000, 3);
    const auto all = places_of_nonzeros(values);
    const auto count = std::ssize(all), capacity = count - missing;
    ASSERT_GT(capacity, 0);
    const auto x = put(values);
    const auto around = put(std::vector<std::int64_t>(static_cast<std::size_t>(count + 1), 7));
    const auto indices = around.slice(0, capacity);
    const auto reported = primitives::on(device()).select_nonzero(x, indices, OnFailure::report);
    EXPECT_EQ(reported.get(), count);
    auto expected = all;
    std::fill(expected.begin() + capacity, expected.end(), 7);
    expected.push_back(7);
    EXPECT_EQ(device().download(around), expected);
    EXPECT_TRUE(device().take_error().ok());

    const auto failed = primitives::on(device()).select_nonzero(x, indices);
    EXPECT_EQ(failed.wait().code(), Errc::invalid);
    EXPECT_NE(failed.wait().error().message.find("overflow: " + std::to_string(count) +
                                                 " elements, room for " + std::to_string(capacity)),
              std::string::npos)
        << failed.wait().error().message;
    EXPECT_FALSE(indices.valid());
    EXPECT_TRUE(x.valid());
    EXPECT_EQ(device().take_error().code(), Errc::invalid);
  }
}

TYPED_TEST(PrimitiveOps, SelectNonzeroCountsFirst) {
  using T = TypeParam;
  const auto x = put(sparse_vector<T>(70'000, 5));
  const auto none = device().template alloc<std::int64_t>(0);
  const auto count = primitives::on(device()).select_nonzero(x, none, OnFailure::report).get();
  EXPECT_EQ(count, std::ssize(places_of_nonzeros(device().download(x))));
  const auto indices = device().template alloc<std::int64_t>(count);
  EXPECT_EQ(primitives::on(device()).select_nonzero(x, indices).get(), count);
}

/// Work that is queued without waiting in between, with memory that grows on the way.
TYPED_TEST(PrimitiveOps, FollowOneAnother) {
  using T = TypeParam;
  std::vector<GpuRef<T>> sorted, middle;
  std::vector<T> expected;
  for (std::int64_t n = 100; n < 1'000'000; n *= 5) {
    const auto keys = keys_of<T>(Keys::any, n, static_cast<std::uint64_t>(n));
    const auto x = put(keys);
    sorted.push_back(device().template alloc<T>(n));
    middle.push_back(device().template alloc<T>(1));
    primitives::on(device()).sort(x, sorted.back());
    primitives::on(device()).reduce(sorted.back().slice(n / 2, 1), middle.back(),
                                    primitives::ReduceOp::sum);
    expected.push_back(taken(
        keys, sorted_places(keys, primitives::Order::ascending))[static_cast<std::size_t>(n / 2)]);
  }
  for (std::size_t i = 0; i < expected.size(); ++i)
    EXPECT_EQ(device().download(middle[i]), std::vector<T>{expected[i]});
}

TEST_F(BadArguments, OfPrimitives) {
  using namespace primitives;
  const auto b = put(std::vector<double>(16)), c = put(std::vector<double>(16)),
             d = put(std::vector<double>(16));
  const auto with = [](auto op, auto change, Errc code = Errc::invalid) {
    change(op);
    expect_refused(op, code);
  };
  const Sort sort{DType::f64, Order::ascending, 8, 16, x, b.operand(), c.operand(), d.operand()};
  EXPECT_TRUE(sort.check().ok());
  with(sort, [](auto& op) { op.n = -1; });
  with(sort, [](auto& op) { op.n = 17; });
  with(sort, [](auto& op) { op.n = std::int64_t{1} << 62; });
  with(sort, [](auto& op) { op.order = static_cast<Order>(2); });
  with(sort, [](auto& op) { op.value_bytes = 2; });
  with(sort, [](auto& op) { op.value_bytes = 16; });
  with(sort, [](auto& op) { op.value_bytes = 0; });  // but they are there
  with(sort, [&](auto& op) { op.value_bytes = 0, op.values = absent; });
  with(sort, [&](auto& op) { op.value_bytes = 0, op.sorted_values = absent; });
  with(sort, [&](auto& op) { op.values = absent; });
  with(sort, [&](auto& op) { op.sorted_values = absent; });
  with(sort, [&](auto& op) { op.keys = absent; });
  with(sort, [&](auto& op) { op.sorted_keys = absent; });
  with(sort, [&](auto& op) { op.keys = unaligned; });
  with(sort, [&](auto& op) { op.values = unaligned; });
  with(sort, [&](auto& op) { op.sorted_keys.bytes = 120; });
  with(sort, [&](auto& op) { op.sorted_values.bytes = 120; });
  with(sort, [&](auto& op) { op.values.bytes = 120; });
  with(sort, [&](auto& op) { op.sorted_keys = x; });
  with(sort, [&](auto& op) { op.sorted_values = x; });
  with(sort, [](auto& op) { op.sorted_keys = op.values; });
  with(sort, [](auto& op) { op.sorted_values = op.values; });
  with(sort, [](auto& op) { op.sorted_values = op.sorted_keys; });
  for (const auto dtype : {DType::u8, DType::i8, DType::i16, DType::u16, DType::c64})
    with(
        sort, [&](auto& op) { op.dtype = dtype; }, Errc::unsupported);
}

TEST_F(BadArguments, OfSelections) {
  using primitives::SelectNonzero;
  const auto cell = device().submitter().result_cell(sizeof(std::int64_t)).take();
  const auto indices = put(std::vector<std::int64_t>(16));
  const SelectNonzero good{DType::f64, OnFailure::error,  0,         16, 16,
                           x,          indices.operand(), cell.where};
  EXPECT_TRUE(good.check().ok());
  const auto with = [&](auto change, Errc code = Errc::invalid) {
    auto op = good;
    change(op);
    expect_refused(op, code);
  };
  with([](auto& op) { op.n = -1; });
  with([](auto& op) { op.n = 17; });
  with([](auto& op) { op.capacity = -1; });
  with([](auto& op) { op.capacity = 17; });
  with([](auto& op) { op.on_failure = static_cast<OnFailure>(2); });
  with([&](auto& op) { op.x = absent; });
  with([&](auto& op) { op.x = unaligned; });
  with([&](auto& op) { op.indices = absent; });
  with([&](auto& op) { op.indices = x; });
  with([&](auto& op) { op.count = absent; });
  with([&](auto& op) { op.count = i; });  // not pinned
  with([](auto& op) { op.count.bytes = 4; });
  with([](auto& op) { op.dtype = DType::f8e4m3; }, Errc::unsupported);
}

TEST_F(BadArguments, OfPrimitivesOfDifferentLengths) {
  const auto other = put(std::vector<double>(16, 1.0)), third = put(std::vector<double>(16, 1.0));
  const auto four = ref.slice(0, 4), six = other.slice(0, 6);
  auto on_device = primitives::on(device());
  const std::pair<Future<void>, std::string> answers[] = {
      {on_device.sort(four, six), "primitives.sort: sorted_keys has 6 elements, not 4"},
      {on_device.sort(four, six, third.slice(0, 4), third.slice(4, 4)), "primitives.sort: values"},
      {on_device.sort(four, other.slice(0, 4), third.slice(0, 6), third.slice(6, 4)),
       "primitives.sort: sorted_keys"},
      {on_device.sort(four, other.slice(0, 4), third.slice(0, 4), third.slice(6, 6)),
       "primitives.sort: sorted_values"}};
  for (const auto& [future, words] : answers) {
    ASSERT_TRUE(future.ready()) << words << " was launched";
    ASSERT_EQ(future.wait().code(), Errc::invalid) << words;
    EXPECT_TRUE(future.wait().error().message.starts_with(words)) << future.wait().error().message;
  }
}

}  // namespace
}  // namespace troupe::test
