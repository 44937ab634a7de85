#include <troupe/lib/primitives.hpp>

#include <algorithm>
#include <concepts>
#include <cstring>

#include "bad_arguments.hpp"
#include "primitive_values.hpp"

namespace troupe::test {
namespace {

using primitives::Channels;
using primitives::LevelOf;

using PrimitiveSamples = ::testing::Types<std::uint8_t, std::int32_t, std::uint32_t, std::int64_t,
                                          std::uint64_t, float, double>;
template <class T>
class PrimitiveHistogramOps : public Typed<T> {};
TYPED_TEST_SUITE(PrimitiveHistogramOps, PrimitiveSamples);
template <class T>
class PrimitiveHistogramOpsOfReals : public Typed<T> {};
TYPED_TEST_SUITE(PrimitiveHistogramOpsOfReals, Reals);

/// Whole numbers from -20 to 235 where T has negative ones, else from 0 to 255.
template <class T>
std::vector<T> samples_of_histograms(std::int64_t n, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<T> samples(static_cast<std::size_t>(n));
  for (auto& sample : samples) {
    const auto drawn = static_cast<int>(random() % 256);
    sample = static_cast<T>(std::is_signed_v<T> ? drawn - 20 : drawn);
  }
  return samples;
}

/// What `bin_of` says of each sample, -1 for none; one channel after the other.
template <class C, class T, class BinOf>
std::vector<C> counts_of(const std::vector<T>& samples, std::int64_t bins, Channels channels,
                         BinOf bin_of) {
  std::vector<C> counts(static_cast<std::size_t>(bins * channels.counted), C(0));
  for (std::size_t i = 0; i < samples.size(); ++i) {
    const auto channel = i % channels.all;
    const std::int64_t bin = channel < channels.counted ? bin_of(samples[i]) : -1;
    if (bin >= 0)
      ++counts[channel * static_cast<std::size_t>(bins) + static_cast<std::size_t>(bin)];
  }
  return counts;
}

/// The room for counts holds what must be overwritten.
template <class C>
GpuRef<C> room_for_counts(std::int64_t count) {
  return put(std::vector<C>(static_cast<std::size_t>(count), C(99)));
}

/// Few bins and many, with counters of both widths.
TYPED_TEST(PrimitiveHistogramOps, HistogramEven) {
  using T = TypeParam;
  const LevelOf<T> lower = 3, upper = 203;
  for (const auto n : kPrimitiveLengths) {
    for (const std::int64_t bins : {1, 7, 200, 5000}) {
      SCOPED_TRACE(::testing::Message() << n << " samples, " << bins << " bins");
      const auto samples = samples_of_histograms<T>(n, 111);
      // Of whole numbers, which the bin that is computed in floating point has, too, for these.
      const auto bin_of = [&](T sample) -> std::int64_t {
        const auto level = static_cast<std::int64_t>(sample);
        return level < 3 || level >= 203 ? -1 : (level - 3) * bins / 200;
      };
      const auto x = put(samples);
      if (std::integral<T> || bins != 7) {
        const auto narrow = room_for_counts<std::uint32_t>(bins);
        primitives::on(device()).histogram_even(x, narrow, lower, upper);
        EXPECT_EQ(device().download(narrow), counts_of<std::uint32_t>(samples, bins, {}, bin_of));
        const auto wide = room_for_counts<std::uint64_t>(bins);
        primitives::on(device()).histogram_even(x, wide, lower, upper);
        EXPECT_EQ(device().download(wide), counts_of<std::uint64_t>(samples, bins, {}, bin_of));
      }
      EXPECT_EQ(device().download(x), samples) << "the input has changed";
    }
  }
}

TYPED_TEST(PrimitiveHistogramOps, HistogramRange) {
  using T = TypeParam;
  using L = LevelOf<T>;
  for (const auto n : kPrimitiveLengths) {
    for (const std::int64_t bins : {1, 2, 13, 300, 6000}) {
      SCOPED_TRACE(::testing::Message() << n << " samples, " << bins << " bins");
      const auto samples = samples_of_histograms<T>(n, 112);
      std::vector<L> levels;  // some of them are equal
      std::mt19937_64 random(113);
      for (std::int64_t i = 0; i <= bins; ++i) levels.push_back(static_cast<L>(random() % 240));
      std::sort(levels.begin(), levels.end());
      const auto bin_of = [&](T sample) -> std::int64_t {
        const auto larger = std::upper_bound(levels.begin(), levels.end(), static_cast<L>(sample));
        return larger == levels.end() ? -1 : larger - levels.begin() - 1;
      };
      const auto x = put(samples);
      const auto on_device = put(levels);
      const auto narrow = room_for_counts<std::uint32_t>(bins);
      primitives::on(device()).histogram_range(x, on_device, narrow);
      EXPECT_EQ(device().download(narrow), counts_of<std::uint32_t>(samples, bins, {}, bin_of));
      const auto wide = room_for_counts<std::uint64_t>(bins);
      primitives::on(device()).histogram_range(x, on_device, wide);
      EXPECT_EQ(device().download(wide), counts_of<std::uint64_t>(samples, bins, {}, bin_of));
    }
  }
}

TYPED_TEST(PrimitiveHistogramOps, HistogramsOfChannels) {
  using T = TypeParam;
  using L = LevelOf<T>;
  for (const std::int64_t n : {0, 1, 1000, 65'537}) {
    for (std::uint32_t all = 1; all <= 4; ++all) {
      for (std::uint32_t counted = 1; counted <= all; ++counted) {
        SCOPED_TRACE(::testing::Message() << n << ", " << counted << " of " << all);
        const Channels channels{all, counted};
        const auto samples = samples_of_histograms<T>(n * all, 114);
        const auto x = put(samples);
        const auto bin_of = [](T sample) -> std::int64_t {
          return sample < T(200) && sample >= T(0) ? static_cast<std::int64_t>(sample) / 50 : -1;
        };
        const auto expected = counts_of<std::uint32_t>(samples, 4, channels, bin_of);
        const auto counts = room_for_counts<std::uint32_t>(4 * counted);
        primitives::on(device()).histogram_even(x, counts, L(0), L(200), channels);
        EXPECT_EQ(device().download(counts), expected);
        const auto levels = put(std::vector<L>{L(0), L(50), L(100), L(150), L(200)});
        const auto again = room_for_counts<std::uint32_t>(4 * counted);
        primitives::on(device()).histogram_range(x, levels, again, channels);
        EXPECT_EQ(device().download(again), expected);
      }
    }
  }
}

/// Bins of floating-point samples are computed in their type, as CUB has them; samples just below
/// the upper level count for the last bin. NaNs and infinities count nowhere.
TYPED_TEST(PrimitiveHistogramOpsOfReals, HistogramEvenRounds) {
  using T = TypeParam;
  auto samples = random_values<T>(50'000, 115);
  constexpr T kLower = T(-0.7), kUpper = T(0.9);
  for (int i = 0; i < 64; ++i) {
    samples.push_back(i == 0 ? kUpper : std::nextafter(samples.back(), T(-1)));
  }
  for (const T value : {kLower, std::nextafter(kLower, T(-1)), T(0), T(-0.0)})
    samples.push_back(value);
  for (const T sign : {T(1), T(-1)}) {
    samples.push_back(sign * std::numeric_limits<T>::infinity());
    samples.push_back(sign * std::numeric_limits<T>::quiet_NaN());
  }
  const auto x = put(samples);
  for (const std::int64_t bins : {1, 3, 7, 100, 1023, 70'001}) {
    SCOPED_TRACE(bins);
    const T scale = static_cast<T>(bins) / (kUpper - kLower);
    const auto bin_of = [&](T sample) -> std::int64_t {
      if (!(sample >= kLower && sample < kUpper)) return -1;
      const T above = sample - kLower;
      return std::min(static_cast<std::int64_t>(above * scale), bins - 1);
    };
    const auto counts = room_for_counts<std::uint64_t>(bins);
    primitives::on(device()).histogram_even(x, counts, kLower, kUpper);
    EXPECT_EQ(device().download(counts), counts_of<std::uint64_t>(samples, bins, {}, bin_of));
  }
}

/// Levels at both ends of the type.
TEST(PrimitiveHistogramOpsOfIntegers, HistogramEvenOfTheWholeRange) {
  using Limits = std::numeric_limits<std::int32_t>;
  const auto samples = keys_of<std::int32_t>(Keys::any, 10'000, 116);
  const auto counts = room_for_counts<std::uint32_t>(1000);
  primitives::on(device()).histogram_even(put(samples), counts, Limits::min(), Limits::max());
  EXPECT_EQ(device().download(counts),
            counts_of<std::uint32_t>(samples, 1000, {}, [](std::int32_t sample) -> std::int64_t {
              if (sample == Limits::max()) return -1;
              const auto above = static_cast<std::int64_t>(sample) - Limits::min();
              return above * 1000 / (std::int64_t{Limits::max()} - Limits::min());
            }));
  const std::vector<std::uint64_t> wide{0, 1, std::uint64_t{1} << 63, ~std::uint64_t{0} - 1,
                                        ~std::uint64_t{0}};
  const auto one = room_for_counts<std::uint32_t>(1);
  primitives::on(device()).histogram_even(put(wide), one, std::uint64_t{0}, ~std::uint64_t{0});
  EXPECT_EQ(device().download(one), std::vector<std::uint32_t>{4});
}

template <class T>
std::array<std::byte, 8> level_bytes(T value) {
  std::array<std::byte, 8> bytes{};
  std::memcpy(bytes.data(), &value, sizeof value);
  return bytes;
}

TEST_F(BadArguments, OfHistograms) {
  using namespace primitives;
  const auto b = put(std::vector<double>(16)), c = put(std::vector<double>(16));
  const auto with = [](auto op, auto change, Errc code = Errc::invalid) {
    change(op);
    expect_refused(op, code);
  };
  const auto check_common = [&](const auto& op) {
    EXPECT_TRUE(op.check().ok());
    with(op, [](auto& changed) { changed.n = -1; });
    with(op, [](auto& changed) { changed.n = 9; });
    with(op, [](auto& changed) { changed.bins = 0; });
    with(op, [](auto& changed) { changed.bins = 9; });
    with(op, [](auto& changed) { changed.bins = std::int64_t{1} << 31; });
    with(op, [](auto& changed) { changed.channels = {0, 0}; });
    with(op, [](auto& changed) { changed.channels = {5, 1}; });
    with(op, [](auto& changed) { changed.channels = {1, 2}; });
    with(op, [](auto& changed) { changed.channels = {2, 0}; });
    with(op, [](auto& changed) { changed.count_dtype = DType::i32; });
    with(op, [&](auto& changed) { changed.x = absent; });
    with(op, [&](auto& changed) { changed.x = unaligned; });
    with(op, [&](auto& changed) { changed.counts = absent; });
    with(op, [&](auto& changed) { changed.counts = unaligned; });
    with(op, [&](auto& changed) { changed.counts = x; });
    with(
        op, [](auto& changed) { changed.dtype = DType::f16; }, Errc::unsupported);
  };
  const HistogramEven even{DType::f64,        DType::u64,         {2, 2}, 8,          8,
                           level_bytes(-1.0), level_bytes(100.0), x,      b.operand()};
  check_common(even);
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  constexpr double kMost = std::numeric_limits<double>::max();
  constexpr double kLeast = std::numeric_limits<double>::denorm_min();
  for (const auto& [lower, upper] : {std::pair{1.0, 1.0},
                                     {2.0, 1.0},
                                     {0.0, kInfinity},
                                     {-kInfinity, 0.0},
                                     {0.0, std::nan("")},
                                     {-kMost, kMost},
                                     {0.0, kLeast}}) {
    with(even, [&, from = lower, to = upper](auto& op) {
      op.lower = level_bytes(from);
      op.upper = level_bytes(to);
    });
  }
  with(even, [](auto& op) {  // no 64 bits hold 2^62 * 8
    op.dtype = DType::i64;
    op.lower = level_bytes(std::int64_t{0});
    op.upper = level_bytes(std::int64_t{1} << 62);
  });

  const HistogramRange range{DType::f64, DType::u64, {2, 2}, 8, 8, x, c.operand(), b.operand()};
  check_common(range);
  with(range, [&](auto& op) { op.levels = absent; });
  with(range, [](auto& op) { op.levels.bytes = 64; });
  with(range, [](auto& op) { op.counts = op.levels; });
}

TEST_F(BadArguments, OfHistogramsOfDifferentLengths) {
  const auto counts = put(std::vector<std::uint32_t>(16));
  const auto other = put(std::vector<double>(16));
  const auto four = ref.slice(0, 4);
  auto library = primitives::on(device());
  const std::pair<Future<void>, std::string> answers[] = {
      {library.histogram_even(ref.slice(0, 5), counts, 0.0, 1.0, {2, 2}),
       "primitives.histogram_even: x has 5 elements, not 4"},
      {library.histogram_even(four, counts.slice(0, 5), 0.0, 1.0, {2, 2}),
       "primitives.histogram_even: counts has 5 elements, not 4"},
      {library.histogram_even(four, counts, 0.0, 1.0, {0, 0}),
       "primitives.histogram_even: there are 1 to 4 channels"},
      {library.histogram_range(ref.slice(0, 5), other.slice(0, 9), counts, {2, 2}),
       "primitives.histogram_range: x has 5 elements, not 4"},
      {library.histogram_range(four, other.slice(0, 6), counts),
       "primitives.histogram_range: counts has 16 elements, not 5"},
      {library.histogram_range(four, other.slice(0, 0), counts), "primitives.histogram_range: "}};
  for (const auto& [future, words] : answers) {
    ASSERT_TRUE(future.ready()) << words << " was launched";
    ASSERT_EQ(future.wait().code(), Errc::invalid) << words;
    EXPECT_TRUE(future.wait().error().message.starts_with(words)) << future.wait().error().message;
  }
}

}  // namespace
}  // namespace troupe::test
