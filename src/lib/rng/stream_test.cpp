#include <troupe/lib/rng.hpp>

#include <algorithm>
#include <tuple>

#include "conformance.hpp"

namespace troupe::test {
namespace {

/// The generator's sequence is dealt out to 65536 streams in groups of four.
constexpr std::uint64_t kStreams = 65536, kRow = 4 * kStreams;

/// Words of the generator: of the streams from `first` to before `end`, those that step makes.
struct Words {
  std::uint64_t step, first, end;
  bool operator<(const Words& other) const {
    return std::tie(step, first) < std::tie(other.step, other.first);
  }
};

enum class Kind { f32, u64, f64 };
constexpr Kind kKinds[] = {Kind::f32, Kind::u64, Kind::f64};

/// Adds to `all` the words that a call uses, in the way rng/kernels.cu deals out the sequence: each
/// time a call for f64 comes to a group, it takes two steps of the group's stream.
void add_words(const RandomOptions& options, Kind kind, std::uint64_t n, std::vector<Words>& all) {
  if (n == 0) return;
  const auto position = options.subsequence * rng::kSubsequenceStride + options.offset;
  const auto begin = position / 4, end = (position + (kind == Kind::u64 ? 2 * n : n) + 3) / 4;
  for (auto group = begin; group < end;) {
    // As far as the row goes on, and the number of visits stays the same.
    const auto in_row = kStreams - group % kStreams,
               in_visit = kStreams - (group - begin) % kStreams;
    const auto length = std::min({in_row, in_visit, end - group});
    const auto first = group % kStreams, visits = (group - begin) / kStreams;
    const auto step = group / kStreams + (kind == Kind::f64 ? visits : 0);
    all.push_back({step, first, first + length});
    if (kind == Kind::f64) all.push_back({step + 1, first, first + length});
    group += length;
  }
}

RandomOptions take(RandomStream& stream, Kind kind, std::uint64_t n) {
  const auto count = static_cast<std::int64_t>(n);
  switch (kind) {
    case Kind::f32: return stream.take<float>(count);
    case Kind::u64: return stream.take<std::uint64_t>(count);
    default: return stream.take<double>(count);
  }
}

bool any_twice(std::vector<Words>& words) {
  std::sort(words.begin(), words.end());
  for (std::size_t i = 1; i < words.size(); ++i) {
    if (words[i].step == words[i - 1].step && words[i].first < words[i - 1].end) return true;
  }
  return false;
}

/// Lengths that end on the last place of a row, or close to it, and short ones.
std::vector<std::uint64_t> lengths() {
  std::vector<std::uint64_t> all;
  for (std::uint64_t n = 0; n <= 9; ++n) all.push_back(n);
  for (const auto rows : {kRow / 2, kRow, 3 * kRow / 2, 2 * kRow, 4 * kRow}) {
    for (std::uint64_t n = rows - 9; n <= rows + 9; ++n) all.push_back(n);
  }
  return all;
}

TEST(RngStreams, NeverGiveAWordTwiceAtTheEndsOfRows) {
  const auto all = lengths();
  std::vector<Words> words;
  for (const auto first : kKinds) {
    for (const auto second : kKinds) {
      for (const auto n : all) {
        for (const auto m : all) {
          RandomStream stream({.seed = 1});
          words.clear();
          add_words(take(stream, first, n), first, n, words);
          add_words(take(stream, second, m), second, m, words);
          add_words(take(stream, first, 3), first, 3, words);
          ASSERT_FALSE(any_twice(words)) << n << " of kind " << static_cast<int>(first) << ", then "
                                         << m << " of kind " << static_cast<int>(second);
        }
      }
    }
  }
}

TEST(RngStreams, NeverGiveAWordTwiceWhateverIsTaken) {
  const auto all = lengths();
  std::mt19937_64 random(5);
  for (int run = 0; run < 200; ++run) {
    RandomStream streams[] = {RandomStream({.seed = 1, .rank = 0, .ranks = 2}),
                              RandomStream({.seed = 1, .rank = 1, .ranks = 2})};
    std::vector<Words> words;
    for (int i = 0; i < 60; ++i) {
      const auto kind = kKinds[random() % 3];
      auto n = random() % 3 == 0 ? all[random() % all.size()] : random() % 9000;
      // Take the rest of a row now and then, so that calls end at or near a row's end.
      if (random() % 4 == 0 && n < kRow) n = kRow - n;
      add_words(take(streams[random() % 2], kind, n), kind, n, words);
    }
    ASSERT_FALSE(any_twice(words)) << "run " << run;
  }
}

/// The model of words above and the engines agree: the numbers themselves differ.
TEST(RngStreams, CallsThatEndWithARowShareNoNumbers) {
  RandomStream stream({.seed = 7});
  std::vector<double> all;
  for (const std::int64_t n : {512 * 512, 262141, 512 * 512, 100}) {
    const auto x = device().alloc<double>(n);
    device().rng().uniform(x, stream.take<double>(n));
    const auto values = device().download(x);
    all.insert(all.end(), values.begin(), values.end());
  }
  std::sort(all.begin(), all.end());
  EXPECT_EQ(std::adjacent_find(all.begin(), all.end()), all.end());
}

TEST(RngStreams, GoOnInSubsequencesOfTheirOwnAndEndWithAnError) {
  constexpr std::int64_t kMost = std::int64_t{1} << 40;
  RandomStream stream({.seed = 1, .rank = 3, .ranks = 1 << 23});
  EXPECT_EQ(stream.take<float>(kMost).subsequence, 3u);
  const auto next = stream.take<double>(8);
  EXPECT_EQ(next.subsequence, 3u + (1 << 23));
  EXPECT_EQ(next.offset, 0u);
  const auto behind = stream.take<std::uint32_t>(kMost);
  EXPECT_EQ(device().rng().uniform(device().alloc<float>(8), behind).wait().code(), Errc::invalid);
}

/// A subsequence that is used up to its last place: no call is told a place behind that.
TEST(RngStreams, GoOnWhereASubsequenceEndsExactly) {
  for (const std::int64_t rest : {0, 1, 4}) {
    RandomStream stream({.seed = 1});
    (void)stream.take<float>((std::int64_t{1} << 40) - rest);
    for (const std::int64_t n : {0, 2}) {
      const auto next = stream.take<float>(n);
      EXPECT_LT(next.offset, rng::kSubsequenceStride) << rest << ' ' << n;
      EXPECT_TRUE(device().rng().uniform(device().alloc<float>(n), next).wait().ok());
    }
  }
  RandomStream stream({.seed = 1});
  (void)stream.take<double>((std::int64_t{1} << 39) - 8);
  const auto last = stream.take<double>(0);
  EXPECT_LT(last.offset, rng::kSubsequenceStride);
}

}  // namespace
}  // namespace troupe::test
