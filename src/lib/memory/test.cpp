#include <algorithm>
#include <complex>
#include <random>
#include <set>

#include "bad_arguments.hpp"

namespace troupe::test {
namespace {

template <class T>
class Memory : public ::testing::Test {};
template <class... T>
struct ListOf {
  using Types = ::testing::Types<T...>;
  static constexpr std::size_t kCount = sizeof...(T);
};
using AllElements = ListOf<Half, BFloat16, float, double, Float8E4M3, Float8E5M2, std::int8_t,
                           std::uint8_t, std::int32_t, std::uint32_t, std::int64_t, std::uint64_t,
                           std::complex<float>, std::complex<double>, std::int16_t, std::uint16_t,
                           Float4E2M1Pair, Int4Pair, FactorUE4M3, FactorUE8M0>;
using Elements = AllElements::Types;
static_assert(AllElements::kCount == kDTypeCount);
TYPED_TEST_SUITE(Memory, Elements);

/// An element whose bytes all differ, so that a misplaced one shows.
template <class T>
T element(int seed) {
  T value;
  unsigned char bytes[sizeof(T)];
  for (std::size_t i = 0; i < sizeof bytes; ++i)
    bytes[i] = static_cast<unsigned char>(static_cast<int>(17 * i) + seed);
  std::memcpy(&value, bytes, sizeof value);
  return value;
}

template <class T>
bool same(const T& a, const T& b) {
  return std::memcmp(&a, &b, sizeof a) == 0;
}

TYPED_TEST(Memory, FillSetsEveryElementAndNoOther) {
  using T = TypeParam;
  for (const std::int64_t length : {1, 2, 3, 255, 4096, 1'000'003}) {
    SCOPED_TRACE(length);
    const auto whole = device().alloc<T>(length + 2);
    device().fill(whole, element<T>(1));
    device().fill(whole.slice(1, length), element<T>(2));
    const auto values = device().download(whole);
    EXPECT_TRUE(same(values.front(), element<T>(1)));
    EXPECT_TRUE(same(values.back(), element<T>(1)));
    std::int64_t wrong = 0;
    for (std::size_t i = 1; i + 1 < values.size(); ++i) wrong += !same(values[i], element<T>(2));
    EXPECT_EQ(wrong, 0);
  }
}

TYPED_TEST(Memory, CopiesKeepEveryByte) {
  using T = TypeParam;
  for (const std::int64_t length : {1, 7, 4097, 300'001}) {
    SCOPED_TRACE(length);
    const auto bytes = random_bytes(static_cast<std::size_t>(length) * sizeof(T), 3);
    const auto there = device().pinned<T>(static_cast<std::size_t>(length));
    const auto back = device().pinned<T>(static_cast<std::size_t>(length));
    std::memcpy(there.data(), bytes.data(), bytes.size());
    std::memset(static_cast<void*>(back.data()), 0, bytes.size());
    const auto a = device().alloc<T>(length), b = device().alloc<T>(length);
    device().copy(there, a);
    device().copy(a, b);
    device().copy(b, back).get();
    EXPECT_EQ(std::memcmp(back.data(), bytes.data(), bytes.size()), 0);
  }
}

TEST(Copies, OfPartsLandWhereTheyShould) {
  std::vector<std::int32_t> values(1000);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<std::int32_t>(i);
  const auto a = put(values), b = put(std::vector<std::int32_t>(1000, -1));
  device().copy(a.slice(100, 50), b.slice(900, 50));
  device().copy(a.slice(0, 1), b.slice(0, 1));
  const auto result = device().download(b);
  for (std::size_t i = 0; i < result.size(); ++i) {
    const auto expected = i == 0                ? 0
                          : i >= 900 && i < 950 ? static_cast<std::int32_t>(i) - 800
                                                : -1;
    ASSERT_EQ(result[i], expected) << i;
  }
}

TYPED_TEST(Memory, CopiesOfRowsLeaveTheGapsAlone) {
  using T = TypeParam;
  struct Shape {
    std::int64_t rows, length, from, to;
  };
  for (const auto& [rows, length, from, to] : {Shape{1, 9, 9, 20},
                                               {40, 7, 11, 9},
                                               {40, 7, 7, 9},
                                               {40, 7, 11, 7},
                                               {40, 7, 7, 7},
                                               {0, 3, 3, 3},
                                               {5, 0, 2, 2},
                                               {300, 1000, 1003, 1001}}) {
    SCOPED_TRACE(rows);
    const auto extent = [rows = rows, length = length](std::int64_t leading) {
      return rows == 0 ? 0 : (rows - 1) * leading + length;
    };
    std::vector<T> values;
    for (std::int64_t i = 0; i < extent(from); ++i)
      values.push_back(element<T>(static_cast<int>(i % 97)));
    const auto source = put(values);
    const auto whole = device().alloc<T>(extent(to) + 2);
    device().fill(whole, element<T>(101));
    device().copy_rows(
        source, whole.slice(1, extent(to)),
        {.rows = rows, .length = length, .source_leading = from, .destination_leading = to});
    std::vector<T> wanted(static_cast<std::size_t>(extent(to)) + 2, element<T>(101));
    for (std::int64_t i = 0; i < rows; ++i) {
      for (std::int64_t j = 0; j < length; ++j)
        wanted[static_cast<std::size_t>(1 + i * to + j)] =
            values[static_cast<std::size_t>(i * from + j)];
    }
    const auto got = device().download(whole);
    EXPECT_TRUE(std::equal(got.begin(), got.end(), wanted.begin(), wanted.end(), same<T>));
  }
}

TEST(Copies, ThroughStagingAreWhole) {
  // Several times the staging pieces, and not a multiple of them.
  const auto bytes = random_bytes((20u << 20) + 12'345, 5);
  const auto buffer = device().alloc<std::uint8_t>(std::ssize(bytes));
  auto source = bytes;
  const auto uploaded = device().upload<std::uint8_t>(source, buffer);
  std::fill(source.begin(), source.end(), std::uint8_t{0});  // the caller may reuse it at once
  EXPECT_TRUE(device().download(buffer) == bytes);
  EXPECT_TRUE(uploaded.wait().ok());
}

TEST(Copies, OfNothingAreFine) {
  const auto empty = device().alloc<double>(0);
  EXPECT_TRUE(device().upload<double>({}, empty).wait().ok());
  EXPECT_TRUE(device().download(empty).empty());
  EXPECT_TRUE(device().fill(empty, 1.0).wait().ok());
}

/// The digest as memory::Digest defines it.
std::uint64_t digest_of(std::span<const std::uint8_t> bytes) {
  auto sum = memory::Digest::mix(bytes.size());
  for (std::size_t i = 0; 8 * i < bytes.size(); ++i) {
    std::uint64_t word = 0;
    for (std::size_t k = 8 * i; k < std::min(8 * i + 8, bytes.size()); ++k)
      word |= std::uint64_t{bytes[k]} << 8 * (k % 8);
    sum += memory::Digest::mix(word + (i + 1) * memory::Digest::kPlace);
  }
  return sum;
}
std::uint64_t digest_there(const GpuRef<std::uint8_t>& bytes) {
  const auto result = device().alloc<std::uint64_t>(1);
  device().digest(bytes, result);
  return device().download(result)[0];
}

TEST(Digests, AreTheSumOfTheirWords) {
  const auto bytes = random_bytes(1'000'100, 11);
  const auto whole = device().alloc<std::uint8_t>(std::ssize(bytes));
  device().upload<std::uint8_t>(bytes, whole);
  for (const std::int64_t first : {0, 1, 8, 24}) {
    for (const std::int64_t length : {0, 1, 7, 8, 9, 16, 17, 255, 4096, 1'000'003}) {
      const std::span part(bytes.data() + first, static_cast<std::size_t>(length));
      EXPECT_EQ(digest_there(whole.slice(first, length)), digest_of(part))
          << length << " bytes from " << first << " on";
    }
  }
}

TEST(Digests, OfOtherContentsAreOthers) {
  const auto bytes = random_bytes(4099, 12);
  const auto buffer = device().alloc<std::uint8_t>(std::ssize(bytes));
  std::set<std::uint64_t> seen;
  const auto look = [&](std::span<const std::uint8_t> contents) {
    device().upload<std::uint8_t>(contents, buffer);
    EXPECT_TRUE(seen.insert(digest_there(buffer)).second);
  };
  look(bytes);
  std::mt19937 random(13);
  for (int round = 0; round < 200; ++round) {
    auto other = bytes;
    other[random() % other.size()] ^= static_cast<std::uint8_t>(1u << random() % 8);
    device().upload<std::uint8_t>(other, buffer);
    seen.insert(digest_there(buffer));
    EXPECT_NE(digest_there(buffer), *seen.find(digest_of(bytes)));
  }
  auto signs = bytes;  // of two doubles
  signs[7] ^= 0x80, signs[15] ^= 0x80;
  look(signs);
  auto swapped = bytes;
  std::swap_ranges(swapped.begin(), swapped.begin() + 8, swapped.begin() + 8);
  look(swapped);
}

TEST(Digests, OfAllElementsComeFromTheirBytes) {
  const std::vector<double> values(1000, 0.1);
  const auto x = put(values);
  const auto result = device().alloc<std::uint64_t>(1);
  device().digest(x, result);
  EXPECT_EQ(device().download(result)[0],
            digest_of({reinterpret_cast<const std::uint8_t*>(values.data()), 8 * values.size()}));
}

TEST(Flips, ChangeOneBit) {
  const auto bytes = random_bytes(1001, 14);
  const auto buffer = device().alloc<std::uint8_t>(std::ssize(bytes));
  device().upload<std::uint8_t>(bytes, buffer);
  for (const std::uint64_t bit : {0u, 13u, 4000u, 8007u}) {
    device().flip(buffer, bit);
    auto expected = bytes;
    expected[bit / 8] ^= static_cast<std::uint8_t>(1u << bit % 8);
    EXPECT_TRUE(device().download(buffer) == expected) << bit;
    device().flip(buffer, bit);
  }
  EXPECT_TRUE(device().download(buffer) == bytes);
}

TEST(Allocation, RangesDoNotOverlapAndAreReused) {
  const auto held = device().bytes_held();
  for (int round = 0; round < 20; ++round) {
    std::vector<GpuRef<std::int32_t>> buffers;
    for (int i = 0; i < 100; ++i) {
      buffers.push_back(device().alloc<std::int32_t>(1 + 977 * i % 10'000));
      device().fill(buffers.back(), i);
    }
    for (int i = 0; i < 100; ++i) {
      const auto values = device().download(buffers[static_cast<std::size_t>(i)]);
      ASSERT_EQ(std::count(values.begin(), values.end(), i), std::ssize(values))
          << "round " << round << ", buffer " << i;
    }
  }
  EXPECT_LE(device().bytes_held(), held + (128u << 20)) << "freed ranges are not used again";
}

TEST(Allocation, AFreedBufferIsReusedOnlyAfterTheWorkThatNamesIt) {
  // Each buffer is dropped while a copy out of it is under way; the next one takes its place and is
  // overwritten.
  constexpr std::int64_t kElements = 1 << 20;
  std::vector<PinnedBuffer<std::int32_t>> out;
  std::vector<Future<void>> futures;
  for (int i = 0; i < 10; ++i) {
    const auto buffer = device().alloc<std::int32_t>(kElements);
    out.push_back(device().pinned<std::int32_t>(static_cast<std::size_t>(kElements)));
    device().fill(buffer, i);
    futures.push_back(device().copy(buffer, out.back()));
  }
  ASSERT_TRUE(all_resolved(futures));
  for (int i = 0; i < 10; ++i) {
    const auto values = out[static_cast<std::size_t>(i)].span();
    EXPECT_EQ(std::count(values.begin(), values.end(), i), kElements) << i;
  }
}

TEST(Allocation, TooMuchIsAnAnswer) {
  DeviceRig small({"--standby", "off", "--memory-limit", "64MiB"});
  const auto fits = small.device().alloc<std::uint8_t>(10 << 20);
  EXPECT_EQ(small.device().try_alloc<std::uint8_t>(100 << 20).code(), Errc::out_of_memory);
  EXPECT_EQ(small.device().try_alloc<double>(std::int64_t{1} << 60).code(), Errc::out_of_memory);
  EXPECT_TRUE(small.device().fill(fits, std::uint8_t{1}).wait().ok());
}

TEST_F(BadArguments, OfMemory) {
  using namespace memory;
  expect_refused(Fill{DType::f64, 17, {}, x});
  expect_refused(Fill{DType::f64, 1, {}, absent});
  expect_refused(Fill{DType::f64, 1, {}, unaligned});
  expect_refused(Fill{DType::f64, std::uint64_t{1} << 63, {}, x});
  expect_refused(Fill{static_cast<DType>(200), 1, {}, x}, Errc::unsupported);
  auto shorter = x;
  shorter.bytes -= 8;
  expect_refused(Copy{DType::f64, x, shorter});
  expect_refused(Copy{DType::f64, x, absent});
  const auto a = device().pinned<double>(16), b = device().pinned<double>(16);
  expect_refused(Copy{DType::f64, a.operand(), b.operand()});
  const auto more = put(std::vector<double>(16, 1.0));
  const auto y = more.operand();
  expect_refused(CopyRows{DType::f64, 4, 2, 4, 4, x, absent});
  expect_refused(CopyRows{DType::f64, 4, 2, 4, 4, absent, y});
  expect_refused(CopyRows{DType::f64, 4, 2, 3, 4, x, y});  // rows that overlap
  expect_refused(CopyRows{DType::f64, 4, 4, 5, 4, x, y});  // 19 elements of 16
  expect_refused(CopyRows{DType::f64, 4, 4, 4, 5, x, y});
  expect_refused(CopyRows{DType::f64, 4, -1, 4, 4, x, y});
  expect_refused(CopyRows{DType::f64, 2, std::int64_t{1} << 62, 4, 4, x, y});
  expect_refused(CopyRows{DType::f64, 4, 2, 4, 4, x, x});
  expect_refused(CopyRows{DType::f64, 4, 2, 4, 4, a.operand(), x});
  expect_refused(Digest{DType::f64, x, absent});
  expect_refused(Digest{DType::f64, absent, x});
  expect_refused(Digest{DType::f64, a.operand(), x});
  auto narrow = x;
  narrow.bytes = 4;
  expect_refused(Digest{DType::f64, x, narrow});
  expect_refused(Flip{DType::f64, 8 * x.bytes, x});
  expect_refused(Flip{DType::f64, 0, absent});
  expect_refused(Fault{{}, static_cast<FaultKind>(99), 0});
}

}  // namespace
}  // namespace troupe::test
