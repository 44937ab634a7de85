#pragma once

#include <array>
#include <cmath>
#include <cstdint>
#include <numbers>

#include "common/core/philox_block.hpp"

/// Philox4x32-10, a counter-based generator: J. K. Salmon, M. A. Moraes, R. O. Dror, D. E. Shaw,
/// "Parallel random numbers: as easy as 1, 2, 3", SC'11, doi:10.1145/2063384.2063405. Ordered and
/// converted as cuRAND's generators CURAND_RNG_PSEUDO_PHILOX4_32_10 (host and device, default
/// ordering) do it:
///
/// Numbers come in groups of four; group g is made by stream g mod 65536. The 128-bit counter is
/// (low and high word of the stream's step, stream, 0), the key is the seed. Four f32 take one step
/// of their stream, four f64 take two. The generator's offset counts numbers, but is turned into
/// steps of one per group for both types, so an f64 sequence at an offset beyond 262144 is not the
/// one at offset 0 shifted.
namespace troupe::host::cpu {

class Philox {
 public:
  /// `position` is cuRAND's generator offset.
  Philox(std::uint64_t seed, std::uint64_t position) : seed_(seed), position_(position) {}

  /// destination[i], i < n, 32 bits each; bit-identical to curandGenerate.
  void bits(std::uint32_t* destination, std::int64_t n) const {
    fill(destination, n,
         [this](std::uint64_t group) { return block(group % kStreams, group / kStreams); });
  }
  /// destination[i], i < n, uniform in (0, 1]; bit-identical to curandGenerateUniform[Double].
  template <class T>
  void uniform(T* destination, std::int64_t n) const {
    fill(destination, n, [this](std::uint64_t group) { return uniform_group<T>(group); });
  }
  /// destination[i], i < n, normal; to rounding what curandGenerateNormal[Double] gives. The
  /// position is even.
  template <class T>
  void normal(T* destination, std::int64_t n, T mean, T deviation) const {
    fill(destination, n, [&](std::uint64_t group) {
      auto four = normal_group<T>(group);
      for (T& value : four) value = mean + deviation * value;
      return four;
    });
  }

 private:
  using Block = std::array<std::uint32_t, 4>;
  static constexpr std::uint64_t kStreams = 65536;

  [[nodiscard]] Block block(std::uint64_t stream, std::uint64_t step) const {
    const auto x = rng_numbers::philox_block(seed_, stream, step);
    return {x.word[0], x.word[1], x.word[2], x.word[3]};
  }
  /// The two blocks of a group of f64.
  [[nodiscard]] std::array<Block, 2> blocks(std::uint64_t group) const {
    const std::uint64_t visits =
        (group - position_ / 4) / kStreams;  // each took one step more than groups of f32
    const std::uint64_t step = group / kStreams + visits;
    return {block(group % kStreams, step), block(group % kStreams, step + 1)};
  }

  template <class T>
  [[nodiscard]] std::array<T, 4> uniform_group(std::uint64_t group) const {
    if constexpr (sizeof(T) == 4) {
      const Block x = block(group % kStreams, group / kStreams);
      return {unit(x[0]), unit(x[1]), unit(x[2]), unit(x[3])};
    } else {
      const auto [x, y] = blocks(group);
      return {unit(x[0], x[1]), unit(x[2], x[3]), unit(y[0], y[1]), unit(y[2], y[3])};
    }
  }
  template <class T>
  [[nodiscard]] std::array<T, 4> normal_group(std::uint64_t group) const {
    if constexpr (sizeof(T) == 4) {
      const Block x = block(group % kStreams, group / kStreams);
      return box_muller(unit(x[0]), angle(x[1]), unit(x[2]), angle(x[3]));
    } else {
      const auto [x, y] = blocks(group);
      return box_muller(unit(x[0], x[1]), angle(x[2], x[3]), unit(y[0], y[1]), angle(y[2], y[3]));
    }
  }

  static constexpr float kTwoToMinus32 = 0x1p-32f;
  static float unit(std::uint32_t x) {
    return static_cast<float>(x) * kTwoToMinus32 + kTwoToMinus32 / 2;
  }
  static float angle(std::uint32_t x) {
    constexpr float kScale = kTwoToMinus32 * 2 * std::numbers::pi_v<float>;
    return static_cast<float>(x) * kScale + kScale / 2;
  }
  static double unit(std::uint32_t x, std::uint32_t y) { return rng_numbers::unit_of(x, y); }
  static double angle(std::uint32_t x, std::uint32_t y) {
    return (static_cast<double>(x ^ (static_cast<std::uint64_t>(y) << 21)) * 0x1p-52 + 0x1p-53) *
           std::numbers::pi;
  }

  /// Two pairs: sqrt(-2 ln u) times (sin v, cos v).
  template <class T>
  static std::array<T, 4> box_muller(T u0, T v0, T u1, T v1) {
    const T r0 = std::sqrt(T(-2) * std::log(u0));
    const T r1 = std::sqrt(T(-2) * std::log(u1));
    return {r0 * std::sin(v0), r0 * std::cos(v0), r1 * std::sin(v1), r1 * std::cos(v1)};
  }

  template <class T, class Group>
  void fill(T* destination, std::int64_t n, Group&& group_of) const {
    const auto count = static_cast<std::uint64_t>(n);
    for (std::uint64_t i = 0; i < count;) {
      const auto four = group_of((position_ + i) / 4);
      for (auto lane = (position_ + i) % 4; lane < 4 && i < count; ++lane, ++i)
        destination[i] = four[lane];
    }
  }

  std::uint64_t seed_;
  std::uint64_t position_;
};

}  // namespace troupe::host::cpu
