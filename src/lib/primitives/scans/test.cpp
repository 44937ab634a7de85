#include <troupe/lib/primitives.hpp>

#include <concepts>

#include "bad_arguments.hpp"
#include "primitive_values.hpp"

namespace troupe::test {
namespace {

using primitives::ReduceOp;
using primitives::Scanning;

template <class T>
class PrimitiveScanOps : public Typed<T> {};
TYPED_TEST_SUITE(PrimitiveScanOps, PrimitiveNumbers);
template <class T>
class PrimitiveScanOpsOfIntegers : public Typed<T> {};
TYPED_TEST_SUITE(PrimitiveScanOpsOfIntegers, PrimitiveIntegers);
template <class T>
class PrimitiveScanOpsOfReals : public Typed<T> {};
TYPED_TEST_SUITE(PrimitiveScanOpsOfReals, Reals);

constexpr Scanning kScannings[] = {Scanning::inclusive, Scanning::exclusive};

template <class T>
std::vector<ReduceOp> reductions_to_scan() {
  std::vector<ReduceOp> all{ReduceOp::sum, ReduceOp::min, ReduceOp::max, ReduceOp::prod};
  if constexpr (std::integral<T>)
    all.insert(all.end(), {ReduceOp::bit_and, ReduceOp::bit_or, ReduceOp::bit_xor});
  return all;
}

/// Integers wrap around.
template <class T>
T scan_combined(ReduceOp reduction, T a, T b) {
  if constexpr (std::integral<T>) {
    const auto x = static_cast<BitsOf<T>>(a), y = static_cast<BitsOf<T>>(b);
    switch (reduction) {
      case ReduceOp::sum: return static_cast<T>(x + y);
      case ReduceOp::prod: return static_cast<T>(x * y);
      case ReduceOp::bit_and: return static_cast<T>(x & y);
      case ReduceOp::bit_or: return static_cast<T>(x | y);
      case ReduceOp::bit_xor: return static_cast<T>(x ^ y);
      default: break;
    }
  } else {
    if (reduction == ReduceOp::sum) return a + b;
    if (reduction == ReduceOp::prod) return a * b;
    if (std::isnan(a)) return a;
    if (std::isnan(b)) return b;
  }
  return reduction == ReduceOp::min ? (b < a ? b : a) : (a < b ? b : a);
}

template <class T>
std::vector<T> scanned(const std::vector<T>& x, ReduceOp reduction, Scanning scanning, T initial) {
  std::vector<T> y;
  for (const auto value : x) {
    const auto with_it = scan_combined(reduction, initial, value);
    y.push_back(scanning == Scanning::inclusive ? with_it : initial);
    initial = with_it;
  }
  return y;
}
template <class K, class V>
std::vector<V> scanned_by_key(const std::vector<K>& keys, const std::vector<V>& values,
                              ReduceOp reduction, Scanning scanning, V initial) {
  std::vector<V> results;
  for (std::size_t begin = 0, end = 0; begin < keys.size(); begin = end) {
    for (end = begin + 1; end < keys.size() && keys[end - 1] == keys[end];) ++end;
    const std::vector<V> run(values.begin() + static_cast<std::ptrdiff_t>(begin),
                             values.begin() + static_cast<std::ptrdiff_t>(end));
    const auto of_run = scanned(run, reduction, scanning, initial);
    results.insert(results.end(), of_run.begin(), of_run.end());
  }
  return results;
}

/// Numbers whose sums and products are exact: of floating type 0, 1 and -1.
template <class T>
std::vector<T> exact_to_scan(std::int64_t n, std::uint64_t seed, ReduceOp reduction) {
  if constexpr (std::integral<T>) {
    auto values = keys_of<T>(Keys::any, n, seed);
    if (reduction == ReduceOp::prod) {
      for (auto& value : values) value = static_cast<T>(value | T(1));  // an odd one stays odd
    }
    return values;
  } else {
    std::mt19937_64 random(seed);
    std::vector<T> values(static_cast<std::size_t>(n));
    for (auto& value : values) {
      const auto drawn = static_cast<int>(random() % 3) - 1;
      value = static_cast<T>(reduction == ReduceOp::prod ? (drawn == 0 ? 1 : drawn) : drawn);
    }
    return values;
  }
}

TYPED_TEST(PrimitiveScanOps, Scan) {
  using T = TypeParam;
  for (const auto n : kPrimitiveLengths) {
    for (const auto reduction : reductions_to_scan<T>()) {
      const auto values = exact_to_scan<T>(n + 1, 91, reduction);
      const std::vector<T> part(values.begin() + 1, values.end());
      const auto x = put(values).slice(1, n);
      for (const auto scanning : kScannings) {
        SCOPED_TRACE(::testing::Message() << n << ", reduction " << static_cast<int>(reduction)
                                          << ", scanning " << static_cast<int>(scanning));
        const auto around = put(std::vector<T>(static_cast<std::size_t>(n + 2), T(7)));
        primitives::on(device()).scan(x, around.slice(1, n), reduction, scanning);
        auto expected = scanned(part, reduction, scanning, primitives::neutral<T>(reduction));
        expected.insert(expected.begin(), T(7));
        expected.push_back(T(7));
        EXPECT_EQ(device().download(around), expected);
      }
      EXPECT_EQ(device().download(x), part) << "the input has changed";
    }
  }
}

TYPED_TEST(PrimitiveScanOps, ScanBeginsWithTheInitialValue) {
  using T = TypeParam;
  for (const auto n : kPrimitiveLengths) {
    for (const auto reduction : reductions_to_scan<T>()) {
      const auto values = exact_to_scan<T>(n, 92, reduction);
      const auto x = put(values);
      for (const auto scanning : kScannings) {
        const auto y = device().template alloc<T>(n);
        const auto expected = scanned(values, reduction, scanning, T(3));
        for (const auto place : kPlaces) {
          SCOPED_TRACE(::testing::Message() << n << ", reduction " << static_cast<int>(reduction)
                                            << ", scanning " << static_cast<int>(scanning));
          primitives::on(device()).scan(x, y, reduction, scanning, scalar(T(3), place));
          EXPECT_EQ(device().download(y), expected);
        }
      }
    }
  }
}

TYPED_TEST(PrimitiveScanOps, ScanInPlace) {
  using T = TypeParam;
  for (const std::int64_t n : {std::int64_t{1}, std::int64_t{1000}, kManyElements}) {
    for (const auto reduction : reductions_to_scan<T>()) {
      for (const auto scanning : kScannings) {
        const auto values = exact_to_scan<T>(n, 93, reduction);
        const auto x = put(values), y = device().template alloc<T>(n);
        primitives::on(device()).scan(x, y, reduction, scanning, T(2));
        primitives::on(device()).scan(x, x, reduction, scanning, T(2)).get();
        EXPECT_EQ(bits_of(device().download(x)), bits_of(device().download(y)));
      }
    }
  }
}

/// The call that names no reduction adds, from 0.
TYPED_TEST(PrimitiveScanOps, ScanAddsByDefault) {
  using T = TypeParam;
  const std::vector<T> values{T(1), T(2), T(4)};
  const auto x = put(values), y = device().template alloc<T>(3);
  primitives::on(device()).scan(x, y);
  EXPECT_EQ(device().download(y), (std::vector<T>{T(1), T(3), T(7)}));
  primitives::on(device()).scan(x, y, Scanning::exclusive);
  EXPECT_EQ(device().download(y), (std::vector<T>{T(0), T(1), T(3)}));
}

/// Against sums in f64; and the same bits in every run. In a scan of so many elements none goes
/// through more than 100 roundings.
TYPED_TEST(PrimitiveScanOpsOfReals, ScanRounds) {
  using T = TypeParam;
  for (const std::int64_t n : {std::int64_t{1000}, kManyElements}) {
    auto values = random_values<T>(n, 94);
    for (auto& value : values) value = std::abs(value);
    const std::vector<double> wide(values.begin(), values.end());
    const double scale = scanned(wide, ReduceOp::sum, Scanning::inclusive, 0.5).back();
    const auto x = put(values), y = device().template alloc<T>(n);
    for (const auto scanning : kScannings) {
      primitives::on(device()).scan(x, y, ReduceOp::sum, scanning, T(0.5));
      const auto sums = device().download(y);
      EXPECT_TRUE(close(sums, scanned(wide, ReduceOp::sum, scanning, 0.5), 100, scale));
      for (int again = 0; again < 3; ++again) {
        primitives::on(device()).scan(x, y, ReduceOp::sum, scanning, T(0.5));
        EXPECT_EQ(bits_of(device().download(y)), bits_of(sums));
      }
    }
  }
}

TYPED_TEST(PrimitiveScanOpsOfReals, ScanProductsRound) {
  using T = TypeParam;
  constexpr std::int64_t kCount = 50'000;
  auto values = random_values<T>(kCount, 95);
  for (auto& value : values) value = T(1) + value / T(1000);
  const std::vector<double> wide(values.begin(), values.end());
  const auto expected = scanned(wide, ReduceOp::prod, Scanning::inclusive, 1.0);
  const auto y = device().template alloc<T>(kCount);
  primitives::on(device()).scan(put(values), y, ReduceOp::prod);
  const auto products = device().download(y);
  for (std::size_t i = 0; i < products.size(); ++i) {
    const auto error = std::abs(static_cast<double>(products[i]) - expected[i]);
    ASSERT_LE(error, 2 * static_cast<double>(i + 3) *
                         static_cast<double>(std::numeric_limits<T>::epsilon()) * expected[i])
        << i;
  }
}

TYPED_TEST(PrimitiveScanOpsOfReals, ScanOfZerosInfinitiesAndNans) {
  using T = TypeParam;
  constexpr T kInfinity = std::numeric_limits<T>::infinity();
  constexpr T kNan = std::numeric_limits<T>::quiet_NaN();
  const std::vector<T> values{T(0), T(-0.0), T(2), -kInfinity, T(1), kNan, T(-3), kInfinity};
  const auto x = put(values), y = device().template alloc<T>(std::ssize(values));
  const auto check = [&](ReduceOp reduction, const std::vector<T>& expected) {
    primitives::on(device()).scan(x, y, reduction);
    const auto got = device().download(y);
    for (std::size_t i = 0; i < expected.size(); ++i) {
      SCOPED_TRACE(::testing::Message() << static_cast<int>(reduction) << " at " << i);
      if (std::isnan(expected[i])) {
        EXPECT_TRUE(std::isnan(got[i])) << got[i];
      } else {
        EXPECT_EQ(bits_of(std::vector<T>{got[i]}), bits_of(std::vector<T>{expected[i]}));
      }
    }
  };
  check(ReduceOp::min, {T(0), T(0), T(0), -kInfinity, -kInfinity, kNan, kNan, kNan});
  check(ReduceOp::max, {T(0), T(0), T(2), T(2), T(2), kNan, kNan, kNan});
  check(ReduceOp::sum, {T(0), T(0), T(2), -kInfinity, -kInfinity, kNan, kNan, kNan});
  check(ReduceOp::prod, {T(0), T(-0.0), T(-0.0), kNan, kNan, kNan, kNan, kNan});
}

/// Keys in runs of one to `longest` equal ones.
template <class K>
std::vector<K> keys_to_scan(std::int64_t n, std::uint64_t longest) {
  std::mt19937_64 random(96);
  const auto extremes = extreme_values<K>();
  std::vector<K> keys;
  while (std::ssize(keys) < n) {
    const K key = extremes[random() % extremes.size()];
    for (auto left = 1 + random() % longest; left > 0 && std::ssize(keys) < n; --left)
      keys.push_back(key);
  }
  return keys;
}

template <class K, class V>
void check_scan_by_key(std::int64_t n, std::uint64_t longest, ReduceOp reduction) {
  const auto keys = keys_to_scan<K>(n, longest);
  const auto values = exact_to_scan<V>(n, 97, reduction);
  const auto on_device = put(keys);
  const auto x = put(values);
  for (const auto scanning : kScannings) {
    SCOPED_TRACE(::testing::Message()
                 << n << ", runs of up to " << longest << ", reduction "
                 << static_cast<int>(reduction) << ", scanning " << static_cast<int>(scanning));
    const auto around = put(std::vector<V>(static_cast<std::size_t>(n + 1), V(7)));
    primitives::on(device()).scan_by_key(on_device, x, around.slice(1, n), reduction, scanning);
    auto expected =
        scanned_by_key(keys, values, reduction, scanning, primitives::neutral<V>(reduction));
    expected.insert(expected.begin(), V(7));
    EXPECT_EQ(device().download(around), expected);
  }
  EXPECT_EQ(bits_of(device().download(on_device)), bits_of(keys)) << "the keys have changed";
  EXPECT_EQ(device().download(x), values) << "the input has changed";
}

TYPED_TEST(PrimitiveScanOps, ScanByKey) {
  using V = TypeParam;
  for (const auto n : kPrimitiveLengths) {
    for (const std::uint64_t longest : {1, 5, 10'000, 3'000'000}) {
      if (static_cast<std::int64_t>(longest) > 4 * n) continue;
      check_scan_by_key<std::int32_t, V>(n, longest, ReduceOp::sum);
      check_scan_by_key<double, V>(n, longest, ReduceOp::min);
    }
  }
  for (const auto reduction : reductions_to_scan<V>()) {
    check_scan_by_key<float, V>(20'000, 50, reduction);
    check_scan_by_key<std::uint32_t, V>(20'000, 5000, reduction);
    check_scan_by_key<std::int64_t, V>(20'000, 3, reduction);
    check_scan_by_key<std::uint64_t, V>(20'000, 10'000, reduction);
  }
}

TYPED_TEST(PrimitiveScanOps, ScanByKeyInPlaceFromAnInitialValue) {
  using V = TypeParam;
  for (const std::int64_t n : {std::int64_t{1}, std::int64_t{5000}, kManyElements}) {
    const auto keys = keys_to_scan<float>(n, 300);
    const auto on_device = put(keys);
    for (const auto reduction : {ReduceOp::sum, ReduceOp::max}) {
      const auto values = exact_to_scan<V>(n, 98, reduction);
      for (const auto scanning : kScannings) {
        for (const auto place : kPlaces) {
          const auto x = put(values);
          primitives::on(device()).scan_by_key(on_device, x, x, reduction, scanning,
                                               scalar(V(5), place));
          EXPECT_EQ(device().download(x), scanned_by_key(keys, values, reduction, scanning, V(5)))
              << n << ", reduction " << static_cast<int>(reduction);
        }
      }
    }
  }
}

TYPED_TEST(PrimitiveScanOpsOfReals, ScanByKeyGivesTheSameBitsAgain) {
  using V = TypeParam;
  const auto keys = put(keys_to_scan<std::uint32_t>(kManyElements, 100'000));
  const auto values = put(random_values<V>(kManyElements, 99));
  const auto y = device().template alloc<V>(kManyElements);
  primitives::on(device()).scan_by_key(keys, values, y);
  const auto sums = device().download(y);
  for (int again = 0; again < 3; ++again) {
    primitives::on(device()).scan_by_key(keys, values, y);
    EXPECT_EQ(bits_of(device().download(y)), bits_of(sums));
  }
}

TEST_F(BadArguments, OfScans) {
  using namespace primitives;
  using primitives::ReduceOp;
  const auto other = put(std::vector<double>(16)), third = put(std::vector<double>(16));
  const auto with = [](auto op, auto change, Errc code = Errc::invalid) {
    change(op);
    expect_refused(op, code);
  };
  auto three_bytes = x;
  three_bytes.bytes = 3;

  const Scan scan{DType::i64, Scanning::inclusive, ReduceOp::bit_or, 8, x, x, {}};
  EXPECT_TRUE(scan.check().ok());
  with(scan, [](auto& op) { op.n = -1; });
  with(scan, [](auto& op) { op.n = 17; });
  with(scan, [](auto& op) { op.scanning = static_cast<Scanning>(2); });
  with(scan, [](auto& op) { op.reduction = static_cast<ReduceOp>(7); });
  with(scan, [](auto& op) { op.dtype = DType::f64; });  // has no bits
  with(scan, [&](auto& op) { op.x = absent; });
  with(scan, [&](auto& op) { op.y = absent; });
  with(scan, [&](auto& op) { op.y = three_bytes; });
  with(scan, [](auto& op) { op.y.offset += 8, op.y.bytes -= 8; });  // shifted
  with(scan, [&](auto& op) { op.initial = short_scalar; });
  with(scan, [&](auto& op) { op.initial.device = x; });  // is overwritten
  with(
      scan, [](auto& op) { op.dtype = DType::f16; }, Errc::unsupported);

  const ScanByKey by_key{
      DType::i32,      DType::f64, Scanning::exclusive, ReduceOp::sum, 16, other.operand(), x,
      third.operand(), {}};
  EXPECT_TRUE(by_key.check().ok());
  with(by_key, [](auto& op) { op.n = -1; });
  with(by_key, [](auto& op) { op.n = 17; });
  with(by_key, [](auto& op) { op.scanning = static_cast<Scanning>(2); });
  with(by_key, [](auto& op) { op.reduction = static_cast<ReduceOp>(7); });
  with(by_key, [](auto& op) { op.reduction = ReduceOp::bit_xor; });  // of f64
  with(by_key, [&](auto& op) { op.keys = absent; });
  with(by_key, [](auto& op) { op.keys.bytes = 60; });
  with(by_key, [&](auto& op) { op.values = absent; });
  with(by_key, [&](auto& op) { op.values = unaligned; });
  with(by_key, [&](auto& op) { op.results = absent; });
  with(by_key, [](auto& op) { op.results.bytes = 120; });
  with(by_key, [](auto& op) { op.results = op.keys; });
  with(by_key, [&](auto& op) { op.initial = short_scalar; });
  with(by_key, [](auto& op) { op.initial.device = op.results; });
  with(
      by_key, [](auto& op) { op.dtype = DType::u8; }, Errc::unsupported);
  with(
      by_key, [](auto& op) { op.value_dtype = DType::bf16; }, Errc::unsupported);
}

TEST_F(BadArguments, OfScansOfDifferentLengths) {
  const auto other = put(std::vector<double>(16, 1.0)), third = put(std::vector<double>(16, 1.0));
  const auto four = ref.slice(0, 4), six = other.slice(0, 6);
  auto on_device = primitives::on(device());
  const std::pair<Future<void>, std::string> answers[] = {
      {on_device.scan(four, six), "primitives.scan: y has 6 elements, not 4"},
      {on_device.scan_by_key(four, six, third.slice(0, 4)),
       "primitives.scan_by_key: values has 6 elements, not 4"},
      {on_device.scan_by_key(four, third.slice(0, 4), six),
       "primitives.scan_by_key: results has 6 elements, not 4"}};
  for (const auto& [future, words] : answers) {
    ASSERT_TRUE(future.ready()) << words << " was launched";
    ASSERT_EQ(future.wait().code(), Errc::invalid) << words;
    EXPECT_TRUE(future.wait().error().message.starts_with(words)) << future.wait().error().message;
  }
}

}  // namespace
}  // namespace troupe::test
