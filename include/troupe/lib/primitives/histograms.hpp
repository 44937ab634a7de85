#pragma once

#include <algorithm>

#include <troupe/lib/primitives/elements.hpp>

/// Histograms: how many elements lie between levels. See primitives.hpp.
namespace troupe::primitives {

inline constexpr DTypes kSamples = {kNumbers.bits | DTypes::of({DType::u8}).bits};

/// What is counted by histograms.
template <class T>
concept Sample = Element<T> && kSamples.has(dtype_of<T>);
/// What it is counted in.
template <class T>
concept Counter = Element<T> &&(dtype_of<T> == DType::u32 || dtype_of<T> == DType::u64);

/// The levels between which samples of T are counted: of T itself, but 256 is no std::uint8_t.
template <Sample T>
using LevelOf = std::conditional_t<std::is_same_v<T, std::uint8_t>, std::int32_t, T>;
constexpr DType level_dtype(DType of_samples) noexcept {
  return of_samples == DType::u8 ? DType::i32 : of_samples;
}

/// Which elements are counted: samples are made of `all` elements each, one after the other, such
/// as the colours of a pixel, and their first `counted` elements are counted apart.
struct Channels {
  std::uint32_t all = 1, counted = 1;  ///< 1 to 4
};

/// counts[c * bins + b] is how many of x[s * all + c], s < n, lie in bin b; c < counted. The bins
/// cut [lower, upper) into equal parts; what lies outside is not counted, nor is a NaN.
///
/// The bin of an integer v is floor((v - lower) * bins / (upper - lower)), exactly. That of an f32
/// or f64 is as CUB computes it in the same type: (v - lower) * (bins / (upper - lower)), rounded
/// after each of the operations and cut to an integer; where rounding gives `bins`, it is the last
/// bin. For integers of 64 bits (upper - lower) * bins is less than 2^64.
struct HistogramEven {
  static constexpr std::string_view kName = "primitives.histogram_even";
  static constexpr DTypes kDTypes = kSamples;
  static constexpr Traits kTraits = {.repeatable = true, .capturable = true};

  OpDType dtype;        ///< of x
  OpDType count_dtype;  ///< u32 or u64
  Channels channels;
  std::int64_t bins = 0;
  std::int64_t n = 0;
  /// Each a level in its first bytes, see LevelOf.
  std::array<std::byte, 8> lower{}, upper{};
  Operand x, counts;

  static constexpr std::array kOperands{read("x", &HistogramEven::x),
                                        write("counts", &HistogramEven::counts)};
  Result<void> check() const;
  [[nodiscard]] std::uint64_t written(const Operand&) const noexcept {
    return static_cast<std::uint64_t>(bins) * channels.counted * size_of(count_dtype);
  }
};

/// As HistogramEven, but bin b of each channel is [levels[b], levels[b + 1]). There are bins + 1
/// levels, ascending; of levels that are not, no bin is promised.
struct HistogramRange {
  static constexpr std::string_view kName = "primitives.histogram_range";
  static constexpr DTypes kDTypes = kSamples;
  static constexpr Traits kTraits = {.repeatable = true, .capturable = true};

  OpDType dtype;        ///< of x
  OpDType count_dtype;  ///< u32 or u64
  Channels channels;
  std::int64_t bins = 0;
  std::int64_t n = 0;
  Operand x, levels, counts;

  static constexpr std::array kOperands{read("x", &HistogramRange::x),
                                        read("levels", &HistogramRange::levels),
                                        write("counts", &HistogramRange::counts)};
  Result<void> check() const;
  [[nodiscard]] std::uint64_t written(const Operand&) const noexcept {
    return static_cast<std::uint64_t>(bins) * channels.counted * size_of(count_dtype);
  }
};

}  // namespace troupe::primitives

namespace troupe {

/// The histograms among the calls of Primitives.
class PrimitiveHistograms : public detail::Calls {
 public:
  using Calls::Calls;

  /// See primitives::HistogramEven; each channel that is counted has as many bins as
  /// counts.length() has room for. Errors: invalid.
  template <primitives::Sample T, primitives::Counter C>
  Future<void> histogram_even(const GpuRef<T>& x, const GpuRef<C>& counts,
                              std::type_identity_t<primitives::LevelOf<T>> lower,
                              std::type_identity_t<primitives::LevelOf<T>> upper,
                              primitives::Channels channels = {}) const {
    const auto shape = Shape::of(x.length(), counts.length(), channels);
    primitives::HistogramEven op{dtype_of<T>, dtype_of<C>,   channels,
                                 shape.bins,  shape.samples, {},
                                 {},          x.operand(),   counts.operand()};
    std::memcpy(op.lower.data(), &lower, sizeof lower);
    std::memcpy(op.upper.data(), &upper, sizeof upper);
    return detail::submit_exact(*submitter_, op,
                                {{"x", x.length(), shape.samples * shape.all},
                                 {"counts", counts.length(), shape.bins * shape.counted}});
  }
  /// See primitives::HistogramRange; there is a bin between each two levels. Errors: invalid.
  template <primitives::Sample T, primitives::Counter C>
  Future<void> histogram_range(const GpuRef<T>& x, const GpuRef<primitives::LevelOf<T>>& levels,
                               const GpuRef<C>& counts, primitives::Channels channels = {}) const {
    const auto shape = Shape::of(x.length(), counts.length(), channels);
    const auto bins = levels.length() - 1;
    return detail::submit_exact(
        *submitter_,
        primitives::HistogramRange{dtype_of<T>, dtype_of<C>, channels, bins, shape.samples,
                                   x.operand(), levels.operand(), counts.operand()},
        {{"x", x.length(), shape.samples * shape.all},
         {"counts", counts.length(), bins * shape.counted}});
  }

 private:
  /// What lengths amount to; no channels count as one until the operation refuses them.
  struct Shape {
    std::int64_t all, counted, samples, bins;

    static Shape of(std::int64_t elements, std::int64_t counts, primitives::Channels channels) {
      const std::int64_t all = std::max(channels.all, 1u), counted = std::max(channels.counted, 1u);
      return {all, counted, elements / all, counts / counted};
    }
  };
};

}  // namespace troupe
