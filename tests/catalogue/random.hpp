#pragma once

#include <cstdint>

namespace troupe::catalogue {

/// SplitMix64 (Steele, Lea, Flood, OOPSLA'14): one 64-bit state, the same numbers everywhere. The
/// standard library's distributions differ between implementations, and a seed must replay.
class Random {
 public:
  explicit Random(std::uint64_t seed) noexcept : state_(seed) {}

  std::uint64_t next() noexcept {
    state_ += 0x9e3779b97f4a7c15u;
    auto z = state_;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
  }
  /// 0 … bound - 1; `bound` is at least 1.
  std::int64_t below(std::int64_t bound) noexcept {
    return static_cast<std::int64_t>(next() % static_cast<std::uint64_t>(bound));
  }
  /// first … last
  std::int64_t between(std::int64_t first, std::int64_t last) noexcept {
    return first + below(last - first + 1);
  }
  bool one_in(std::int64_t n) noexcept { return below(n) == 0; }
  template <class List>
  const auto& of(const List& list) noexcept {
    return list[static_cast<std::size_t>(below(static_cast<std::int64_t>(list.size())))];
  }

 private:
  std::uint64_t state_;
};

/// A seed of its own for part `part` of what `seed` makes.
inline std::uint64_t derive(std::uint64_t seed, std::uint64_t part) noexcept {
  return Random(seed ^ Random(part).next()).next();
}

}  // namespace troupe::catalogue
