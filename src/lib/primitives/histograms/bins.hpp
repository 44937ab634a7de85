#pragma once

#include <cstdint>
#include <type_traits>

#ifdef __CUDACC__
#define TROUPE_HOST_DEVICE __host__ __device__
#else
#define TROUPE_HOST_DEVICE
#endif

namespace troupe::host {

/// Which of the bins that cut [lower, upper) into equal parts a sample lies in: what CUB's
/// DeviceHistogram::HistogramEven computes, in C++17 for the kernels. L is what levels are of.
template <class L>
class EvenBins {
  static constexpr bool kReal = std::is_floating_point_v<L>;
  template <class T>
  using UnsignedOf =
      typename std::conditional_t<kReal, std::enable_if<true, T>, std::make_unsigned<T>>::type;
  using Width = UnsignedOf<L>;  ///< what differences of levels are

 public:
  /// bins > 0.
  EvenBins(L lower, L upper, std::int64_t bins)
      : lower_(lower),
        upper_(upper),
        width_(static_cast<Width>(static_cast<Width>(upper) - static_cast<Width>(lower))),
        bins_(bins) {
    if constexpr (kReal) scale_ = static_cast<L>(bins) / width_;
  }

  /// Whether samples are told apart: lower < upper, and nothing overflows.
  [[nodiscard]] bool usable() const {
    if (!(lower_ < upper_)) return false;
    if constexpr (kReal) {
      return width_ - width_ == 0 && scale_ - scale_ == 0;  // both are finite
    } else {
      return static_cast<std::uint64_t>(width_) <= UINT64_MAX / static_cast<std::uint64_t>(bins_);
    }
  }

  [[nodiscard]] TROUPE_HOST_DEVICE std::int64_t bins() const { return bins_; }
  /// -1: in none.
  template <class T>
  TROUPE_HOST_DEVICE std::int64_t operator()(T sample) const {
    const auto level = static_cast<L>(sample);
    if (!(level >= lower_ && level < upper_)) return -1;
    if constexpr (kReal) {
      const auto bin = static_cast<std::int64_t>((level - lower_) * scale_);
      return bin < bins_ ? bin : bins_ - 1;
    } else {
      const auto above = static_cast<Width>(static_cast<Width>(level) - static_cast<Width>(lower_));
      return static_cast<std::int64_t>(static_cast<std::uint64_t>(above) *
                                       static_cast<std::uint64_t>(bins_) / width_);
    }
  }

 private:
  L lower_, upper_;
  Width width_;
  L scale_{};  ///< of floating-point levels: bins in a width of 1
  std::int64_t bins_;
};

/// Which of the bins between ascending levels a sample lies in.
template <class L>
class RangeBins {
 public:
  /// Of bins + 1 levels.
  RangeBins(const L* levels, std::int64_t bins) : levels_(levels), bins_(bins) {}

  [[nodiscard]] TROUPE_HOST_DEVICE std::int64_t bins() const { return bins_; }
  /// -1: in none.
  template <class T>
  TROUPE_HOST_DEVICE std::int64_t operator()(T sample) const {
    const auto level = static_cast<L>(sample);
    std::int64_t begin = 0, end = bins_ + 1;  // the first larger level is among these or at the end
    while (begin < end) {
      const auto middle = begin + (end - begin) / 2;
      if (level < levels_[middle]) {
        end = middle;
      } else {
        begin = middle + 1;
      }
    }
    return begin > bins_ ? -1 : begin - 1;
  }

 private:
  const L* levels_;
  std::int64_t bins_;
};

}  // namespace troupe::host

#undef TROUPE_HOST_DEVICE
