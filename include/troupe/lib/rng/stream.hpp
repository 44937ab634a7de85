#pragma once

#include <algorithm>
#include <cstdint>
#include <type_traits>

/// Which random numbers a call makes, and how ranks get numbers that no other rank has.
namespace troupe {

namespace rng {
/// Subsequences are so far apart in the generator's sequence. An f32 number takes one place, an f64
/// number two: f64 subsequences overlap after 2^39 numbers.
inline constexpr std::uint64_t kSubsequenceStride = std::uint64_t{1} << 40;
inline constexpr std::uint64_t kSubsequences = std::uint64_t{1} << 24;
}  // namespace rng

/// Which numbers: the same options give the same numbers on every engine (normal: to rounding).
struct RandomOptions {
  std::uint64_t seed = 0;
  std::uint64_t subsequence = 0;  ///< below 2^24; give each rank its own
  /// Where to start in the subsequence, below 2^40; even for `normal` and `log_normal`. As cuRAND's
  /// generator offset: for f32 and fewer than 2^18 numbers it skips that many numbers; elsewhere
  /// it gives other numbers, not the same ones shifted. The laws of rng/laws.hpp take one place for
  /// a number of any dtype.
  std::uint64_t offset = 0;
};

/// The part of a seed's sequence that is one rank's own. Each call of take() gives places that
/// neither an earlier call nor another rank has, in whichever order dtypes and lengths come:
///
///     RandomStream stream({.seed = 7, .rank = world.rank(), .ranks = world.size()});
///     device.rng().uniform(x, stream.take<float>(x.length()));
///
/// It is a value: a copy goes on from the same place, so a checkpoint may keep one. One thread at a
/// time.
class RandomStream {
 public:
  /// Which of the job's streams this one is.
  struct Options {
    std::uint64_t seed = 0;
    int rank = 0;   ///< 0 to ranks - 1
    int ranks = 1;  ///< of all streams of this seed
  };
  explicit RandomStream(const Options& options) noexcept
      : seed_(options.seed),
        subsequence_(static_cast<std::uint64_t>(options.rank)),
        ranks_(static_cast<std::uint64_t>(options.ranks)) {}

  /// Places for `count` numbers of type T. When the stream is used up, after 2^64 / ranks places,
  /// the operation that gets them fails with `invalid`.
  template <class T>
  RandomOptions take(std::int64_t count) noexcept {
    const auto n = static_cast<std::uint64_t>(count < 0 ? 0 : count);
    static_assert(sizeof(T) == 4 || sizeof(T) == 8);
    if constexpr (std::is_same_v<T, double>) {
      return take_rows(n);
    } else {
      return take_places(n * (sizeof(T) / 4));
    }
  }

 private:
  /// The generator deals its sequence out to 65536 streams in groups of four. That many places take
  /// one step of each stream.
  static constexpr std::uint64_t kRow = std::uint64_t{4} << 16;

  static constexpr std::uint64_t round_up(std::uint64_t place, std::uint64_t step) noexcept {
    return (place + step - 1) / step * step;
  }
  /// u32 and f32: one place each. A u64 is two u32.
  RandomOptions take_places(std::uint64_t n) noexcept {
    if (rows_) next_ = free_;
    rows_ = false;
    const auto begin = begin_at(round_up(next_, 4), n);
    next_ = begin + n;
    free_ = round_up(next_, kRow);
    return {seed_, subsequence_, begin};
  }
  /// f64: a group takes two steps of its stream. Calls share a pair of rows until one reaches its
  /// end: a place behind that would be in the second row, which the pair has taken already.
  RandomOptions take_rows(std::uint64_t n) noexcept {
    auto begin = round_up(next_, 4);
    if (!rows_ || begin % kRow + n > kRow) begin = free_;
    const auto rows = std::max<std::uint64_t>(2, 2 * (round_up(begin % kRow + n, kRow) / kRow));
    begin = begin_at(begin, rows * kRow - begin % kRow);
    free_ = begin / kRow * kRow + rows * kRow;
    rows_ = round_up(begin % kRow + n, 4) < kRow;
    next_ = rows_ ? begin + n : free_;
    return {seed_, subsequence_, begin};
  }
  /// `begin`, or the begin of the stream's next subsequence where n places do not fit any more.
  std::uint64_t begin_at(std::uint64_t begin, std::uint64_t n) noexcept {
    if (begin < rng::kSubsequenceStride && begin + n <= rng::kSubsequenceStride) return begin;
    subsequence_ += ranks_;
    return 0;
  }

  std::uint64_t seed_, subsequence_, ranks_;
  std::uint64_t next_ = 0;  ///< the first place that has not been taken
  std::uint64_t free_ = 0;  ///< the begin of the first row of which nothing has been taken
  bool rows_ = false;       ///< the last call took rows
};

}  // namespace troupe
