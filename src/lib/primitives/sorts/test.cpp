#include <troupe/lib/primitives.hpp>

#include <algorithm>
#include <complex>
#include <numeric>

#include "bad_arguments.hpp"
#include "primitive_values.hpp"

/// Sorts by some bits, sorts of segments, and merges.
namespace troupe::test {
namespace {

using primitives::Order;

template <class T>
class PrimitiveSorts : public Typed<T> {};
TYPED_TEST_SUITE(PrimitiveSorts, PrimitiveNumbers);
template <class T>
class PrimitiveSortsOfIntegers : public Typed<T> {};
TYPED_TEST_SUITE(PrimitiveSortsOfIntegers, PrimitiveIntegers);

constexpr Order kBothOrders[] = {Order::ascending, Order::descending};

/// As primitives::Sort has it: IEEE 754's totalOrder, but both zeros are equal.
template <class T>
bool key_before(T a, T b, Order order) {
  if (order == Order::descending) std::swap(a, b);
  if constexpr (std::floating_point<T>) {
    return a != b && std::strong_order(a, b) < 0;
  } else {
    return a < b;
  }
}

/// Where the keys of each segment come from; those outside of segments stay.
template <class K>
std::vector<std::size_t> places_in_segments(const std::vector<K>& keys,
                                            const std::vector<std::int64_t>& offsets, Order order) {
  std::vector<std::size_t> places(keys.size());
  std::iota(places.begin(), places.end(), std::size_t{0});
  const auto n = std::ssize(keys);
  for (std::size_t s = 0; s + 1 < offsets.size(); ++s) {
    const auto begin = std::clamp<std::int64_t>(offsets[s], 0, n);
    const auto end = std::clamp<std::int64_t>(offsets[s + 1], begin, n);
    std::stable_sort(
        places.begin() + begin, places.begin() + end,
        [&](std::size_t a, std::size_t b) { return key_before(keys[a], keys[b], order); });
  }
  return places;
}

template <class T>
std::vector<T> from_places(const std::vector<T>& values, const std::vector<std::size_t>& places) {
  std::vector<T> taken;
  for (const auto place : places) taken.push_back(values[place]);
  return taken;
}

template <class V>
std::vector<V> numbered(std::int64_t n) {
  std::vector<V> values;
  for (std::int64_t i = 0; i < n; ++i) values.push_back(V(static_cast<float>(i)));  // exact
  return values;
}

template <class V, class K>
void check_segments_with_values(const GpuRef<K>& keys, const std::vector<std::int64_t>& offsets,
                                const std::vector<std::size_t>& places, Order order) {
  const auto values = numbered<V>(keys.length());
  const auto sorted_keys = device().alloc<K>(keys.length());
  const auto sorted_values = device().alloc<V>(keys.length());
  primitives::on(device())
      .segmented_sort(keys, put(values), put(offsets), sorted_keys, sorted_values, order)
      .get();
  EXPECT_EQ(bits_of(device().download(sorted_keys)),
            bits_of(from_places(device().download(keys), places)));
  EXPECT_EQ(device().download(sorted_values), from_places(values, places));
}

template <class K>
void check_segments(Keys kind, std::int64_t n, const std::vector<std::int64_t>& offsets) {
  for (const auto order : kBothOrders) {
    SCOPED_TRACE(::testing::Message() << n << " keys, " << offsets.size() - 1 << " segments, order "
                                      << static_cast<int>(order));
    const auto keys = keys_of<K>(kind, n, 91);
    const auto places = places_in_segments(keys, offsets, order);
    const auto on_device = put(keys), sorted = device().alloc<K>(n);
    primitives::on(device()).segmented_sort(on_device, put(offsets), sorted, order).get();
    EXPECT_EQ(bits_of(device().download(sorted)), bits_of(from_places(keys, places)));
    check_segments_with_values<float>(on_device, offsets, places, order);
    check_segments_with_values<std::int64_t>(on_device, offsets, places, order);
    EXPECT_EQ(bits_of(device().download(on_device)), bits_of(keys)) << "the input has changed";
  }
}

/// Segments of 0 to `longest` elements, all of n elements.
std::vector<std::int64_t> random_segments(std::int64_t n, std::uint64_t longest) {
  std::mt19937_64 random(92);
  std::vector<std::int64_t> offsets{0};
  while (offsets.back() < n) {
    const auto length = static_cast<std::int64_t>(random() % (longest + 1));
    offsets.push_back(std::min(n, offsets.back() + length));
  }
  return offsets;
}

TYPED_TEST(PrimitiveSorts, Segments) {
  for (const std::int64_t n : {1, 2, 1000, 65'537}) {
    for (const auto kind : {Keys::few, Keys::any}) {
      check_segments<TypeParam>(kind, n, {0, n});
      check_segments<TypeParam>(kind, n, random_segments(n, 3));
      check_segments<TypeParam>(kind, n, random_segments(n, 700));
    }
  }
}

TYPED_TEST(PrimitiveSorts, ManySegments) {
  check_segments<TypeParam>(Keys::few, kManyElements, random_segments(kManyElements, 40));
  check_segments<TypeParam>(Keys::any, kManyElements, {0, 5, 900'000, kManyElements});
}

TYPED_TEST(PrimitiveSorts, SegmentsThatLeaveSomethingOut) {
  check_segments<TypeParam>(Keys::any, 1000, {100, 100, 400, 900});
  check_segments<TypeParam>(Keys::any, 1000, {-7, 500, 2000, 3000});
  check_segments<TypeParam>(Keys::any, 1000, {2000, 3000});
  check_segments<TypeParam>(Keys::any, 1000, {-20, -10});
  check_segments<TypeParam>(Keys::any, 1000, {500});  // none
  check_segments<TypeParam>(Keys::any, 0, {0, 0, 0});
}

/// Slices that begin at any element, and what lies around them.
TYPED_TEST(PrimitiveSorts, SegmentsOfPartsOfBuffers) {
  using T = TypeParam;
  using C = std::complex<float>;
  const auto keys = keys_of<T>(Keys::any, 5001, 93);
  const std::vector<T> part(keys.begin() + 1, keys.end());
  const std::vector<std::int64_t> offsets{0, 10, 3000, 5000};
  const auto places = places_in_segments(part, offsets, Order::ascending);
  std::vector<C> values;
  for (std::size_t i = 0; i < part.size(); ++i) values.emplace_back(static_cast<float>(i), -1.0f);
  const auto sorted_keys = put(std::vector<T>(5003, T(7)));
  const auto sorted_values = put(std::vector<C>(5002, C(7)));
  primitives::on(device())
      .segmented_sort(put(keys).slice(1, 5000), put(values), put(offsets),
                      sorted_keys.slice(1, 5000), sorted_values.slice(1, 5000))
      .get();
  auto expected_keys = from_places(part, places);
  auto expected_values = from_places(values, places);
  expected_keys.insert(expected_keys.begin(), T(7));
  expected_keys.insert(expected_keys.end(), 2, T(7));
  expected_values.insert(expected_values.begin(), C(7));
  expected_values.push_back(C(7));
  EXPECT_EQ(bits_of(device().download(sorted_keys)), bits_of(expected_keys));
  EXPECT_EQ(device().download(sorted_values), expected_values);
}

TYPED_TEST(PrimitiveSortsOfIntegers, SomeBits) {
  using T = TypeParam;
  using U = BitsOf<T>;
  constexpr std::uint32_t kBits = 8 * sizeof(T);
  constexpr U kSign = std::is_signed_v<T> ? U{1} << (kBits - 1) : U{0};
  const auto keys = keys_of<T>(Keys::any, 70'001, 94);
  const auto values = numbered<std::int32_t>(std::ssize(keys));
  const std::pair<std::uint32_t, std::uint32_t> ranges[] = {
      {0, 1}, {3, 11}, {kBits - 1, kBits}, {kBits / 2, 0}, {0, kBits}};
  for (const auto& [begin, end] : ranges) {
    for (const auto order : kBothOrders) {
      SCOPED_TRACE(::testing::Message()
                   << begin << " to " << end << ", order " << static_cast<int>(order));
      const auto width = (end == 0 ? kBits : end) - begin;
      const auto part = [&, from = begin](T key) {
        return ((static_cast<U>(key) ^ kSign) >> from) &
               (width == kBits ? ~U{0} : (U{1} << width) - 1);
      };
      std::vector<std::size_t> places(keys.size());
      std::iota(places.begin(), places.end(), std::size_t{0});
      std::stable_sort(places.begin(), places.end(), [&](std::size_t a, std::size_t b) {
        return key_before(part(keys[a]), part(keys[b]), order);
      });
      const auto on_device = put(keys);
      const auto sorted = device().template alloc<T>(std::ssize(keys));
      const auto sorted_values = device().template alloc<std::int32_t>(std::ssize(keys));
      const primitives::KeyBits bits{begin, end};
      primitives::on(device()).sort(on_device, sorted, order, bits);
      EXPECT_EQ(device().download(sorted), from_places(keys, places));
      primitives::on(device()).sort(on_device, put(values), sorted, sorted_values, order, bits);
      EXPECT_EQ(device().download(sorted), from_places(keys, places));
      EXPECT_EQ(device().download(sorted_values), from_places(values, places));
    }
  }
}

template <class K>
std::vector<K> sorted_keys_of(Keys kind, std::int64_t n, std::uint64_t seed, Order order) {
  auto keys = keys_of<K>(kind, n, seed);
  std::stable_sort(keys.begin(), keys.end(), [order](K a, K b) { return key_before(a, b, order); });
  return keys;
}

/// Values of b are numbered behind those of a.
template <class V, class K>
void check_merge_with_values(const GpuRef<K>& a, const GpuRef<K>& b,
                             const std::vector<BitsOf<K>>& expected,
                             const std::vector<std::size_t>& places, Order order) {
  const auto values = put(numbered<V>(a.length() + b.length()));
  const auto merged = device().alloc<K>(values.length());
  const auto merged_values = device().alloc<V>(values.length());
  primitives::on(device())
      .merge(a, values.slice(0, a.length()), b, values.slice(a.length(), b.length()), merged,
             merged_values, order)
      .get();
  EXPECT_EQ(bits_of(device().download(merged)), expected);
  EXPECT_EQ(device().download(merged_values), from_places(device().download(values), places));
}

template <class K>
void check_merge(Keys kind, std::int64_t n_a, std::int64_t n_b) {
  for (const auto order : kBothOrders) {
    SCOPED_TRACE(::testing::Message()
                 << n_a << " and " << n_b << " keys, order " << static_cast<int>(order));
    const auto a = sorted_keys_of<K>(kind, n_a, 95, order);
    const auto b = sorted_keys_of<K>(kind, n_b, 96, order);
    auto both = a;
    both.insert(both.end(), b.begin(), b.end());
    std::vector<std::size_t> places(both.size());
    std::iota(places.begin(), places.end(), std::size_t{0});
    std::stable_sort(places.begin(), places.end(), [&](std::size_t i, std::size_t j) {
      return key_before(both[i], both[j], order);
    });
    const auto expected = bits_of(from_places(both, places));
    const auto x = put(a), y = put(b);
    const auto around = put(std::vector<K>(both.size() + 2, K(7)));
    const auto merged = around.slice(1, n_a + n_b);
    primitives::on(device()).merge(x, y, merged, order).get();
    EXPECT_EQ(bits_of(device().download(merged)), expected);
    EXPECT_EQ(device().download(around.slice(0, 1)), std::vector<K>{7});
    EXPECT_EQ(device().download(around.slice(n_a + n_b + 1, 1)), std::vector<K>{7});
    check_merge_with_values<float>(x, y, expected, places, order);
    check_merge_with_values<std::int64_t>(x, y, expected, places, order);
  }
}

TYPED_TEST(PrimitiveSorts, Merge) {
  const std::pair<std::int64_t, std::int64_t> lengths[] = {
      {0, 0}, {0, 1}, {1, 0}, {1, 1}, {1000, 3}, {3, 2045}, {2047, 2049}, {65'537, 30'000}};
  for (const auto& [n_a, n_b] : lengths) {
    check_merge<TypeParam>(Keys::few, n_a, n_b);
    check_merge<TypeParam>(Keys::any, n_a, n_b);
  }
}

TYPED_TEST(PrimitiveSorts, MergeOfMany) {
  check_merge<TypeParam>(Keys::few, kManyElements, 400'000);
  check_merge<TypeParam>(Keys::any, 17, kManyElements);
}

/// What comes of it is not specified; that nothing else is touched is.
TYPED_TEST(PrimitiveSorts, MergeOfUnsortedKeysStaysInItsBounds) {
  using T = TypeParam;
  const auto a = keys_of<T>(Keys::any, 20'001, 97), b = keys_of<T>(Keys::any, 7000, 98);
  const auto x = put(a), y = put(b), around = put(std::vector<T>(27'003, T(7)));
  primitives::on(device()).merge(x, y, around.slice(1, 27'001)).get();
  EXPECT_EQ(device().download(around.slice(0, 1)), std::vector<T>{7});
  EXPECT_EQ(device().download(around.slice(27'002, 1)), std::vector<T>{7});
  EXPECT_EQ(bits_of(device().download(x)), bits_of(a));
  EXPECT_EQ(bits_of(device().download(y)), bits_of(b));
}

TEST_F(BadArguments, OfSortsOfSomeBitsAndSegments) {
  using namespace primitives;
  const auto b = put(std::vector<double>(16)), c = put(std::vector<double>(16)),
             d = put(std::vector<double>(16)), e = put(std::vector<double>(16));
  const auto with = [](auto op, auto change, Errc code = Errc::invalid) {
    change(op);
    expect_refused(op, code);
  };
  const Sort bits{DType::i64, Order::ascending, 0, 16, x, {}, c.operand(), {}, 3, 64};
  EXPECT_TRUE(bits.check().ok());
  with(bits, [](auto& op) { op.end_bit = 65; });
  with(bits, [](auto& op) { op.end_bit = 3; });
  with(bits, [](auto& op) { op.begin_bit = 64, op.end_bit = 0; });
  with(bits, [](auto& op) { op.dtype = DType::f64; });

  const SegmentedSort sort{DType::f64, Order::ascending, 8,           16,          3,
                           x,          b.operand(),      c.operand(), d.operand(), e.operand()};
  EXPECT_TRUE(sort.check().ok());
  with(sort, [](auto& op) { op.n = -1; });
  with(sort, [](auto& op) { op.n = 17; });
  with(sort, [](auto& op) { op.segments = -1; });
  with(sort, [](auto& op) { op.segments = 16; });
  with(sort, [](auto& op) { op.segments = std::int64_t{1} << 62; });
  with(sort, [](auto& op) { op.order = static_cast<Order>(2); });
  with(sort, [](auto& op) { op.value_bytes = 2; });
  with(sort, [](auto& op) { op.value_bytes = 0; });  // but they are there
  with(sort, [&](auto& op) { op.keys = absent; });
  with(sort, [&](auto& op) { op.values = absent; });
  with(sort, [&](auto& op) { op.offsets = absent; });
  with(sort, [&](auto& op) { op.offsets.bytes = 24; });
  with(sort, [&](auto& op) { op.sorted_keys = absent; });
  with(sort, [&](auto& op) { op.sorted_values.bytes = 120; });
  with(sort, [](auto& op) { op.sorted_keys = op.keys; });
  with(sort, [](auto& op) { op.sorted_keys = op.offsets; });
  with(sort, [](auto& op) { op.sorted_values = op.sorted_keys; });
  with(
      sort, [](auto& op) { op.dtype = DType::i16; }, Errc::unsupported);
}

TEST_F(BadArguments, OfMerges) {
  using namespace primitives;
  const auto b = put(std::vector<double>(16)), values = put(std::vector<double>(16)),
             merged = put(std::vector<double>(16)), merged_values = put(std::vector<double>(16));
  const auto with = [](auto op, auto change, Errc code = Errc::invalid) {
    change(op);
    expect_refused(op, code);
  };
  const Merge merge{DType::f64,
                    Order::ascending,
                    8,
                    10,
                    6,
                    x,
                    b.operand(),
                    values.slice(0, 10).operand(),
                    values.slice(10, 6).operand(),
                    merged.operand(),
                    merged_values.operand()};
  EXPECT_TRUE(merge.check().ok());
  with(merge, [](auto& op) { op.n_a = -1; });
  with(merge, [](auto& op) { op.n_b = -1; });
  with(merge, [](auto& op) { op.n_a = 11; });
  with(merge, [](auto& op) { op.n_b = 7; });
  with(merge, [](auto& op) { op.n_a = op.n_b = INT64_MAX; });
  with(merge, [](auto& op) { op.order = static_cast<Order>(2); });
  with(merge, [](auto& op) { op.value_bytes = 16; });
  with(merge, [](auto& op) { op.value_bytes = 0; });
  with(merge, [&](auto& op) { op.a = absent; });
  with(merge, [&](auto& op) { op.b = unaligned; });
  with(merge, [&](auto& op) { op.values_b = absent; });
  with(merge, [&](auto& op) { op.merged.bytes = 120; });
  with(merge, [&](auto& op) { op.merged = op.a; });
  with(merge, [&](auto& op) { op.merged_values = op.values_a; });
  with(
      merge, [](auto& op) { op.dtype = DType::u8; }, Errc::unsupported);
}

TEST_F(BadArguments, OfSortsAndMergesOfDifferentLengths) {
  const auto other = put(std::vector<double>(16, 1.0)), third = put(std::vector<double>(16, 1.0));
  const auto offsets = put(std::vector<std::int64_t>{0, 4}), none = offsets.slice(0, 0);
  const auto four = ref.slice(0, 4), six = other.slice(0, 6);
  auto on_device = primitives::on(device());
  const std::pair<Future<void>, std::string> answers[] = {
      {on_device.segmented_sort(four, offsets, six),
       "primitives.segmented_sort: sorted_keys has 6 elements, not 4"},
      {on_device.segmented_sort(four, none, other.slice(0, 4)),
       "primitives.segmented_sort: the number of segments"},
      {on_device.segmented_sort(four, six, offsets, third.slice(0, 4), third.slice(4, 4)),
       "primitives.segmented_sort: values"},
      {on_device.merge(four, six, third), "primitives.merge: merged has 16 elements, not 10"},
      {on_device.merge(four, six, third.slice(0, 4), six, other, third),
       "primitives.merge: values_a"}};
  for (const auto& [future, words] : answers) {
    ASSERT_TRUE(future.ready()) << words << " was launched";
    ASSERT_EQ(future.wait().code(), Errc::invalid) << words;
    EXPECT_TRUE(future.wait().error().message.starts_with(words)) << future.wait().error().message;
  }
}

}  // namespace
}  // namespace troupe::test
