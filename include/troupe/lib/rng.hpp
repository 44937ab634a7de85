#pragma once

#include <troupe/lib/submit.hpp>

/// Random numbers: Philox4x32-10 (Salmon et al., SC'11, doi:10.1145/2063384.2063405) as cuRAND
/// orders it.
namespace troupe::rng {

/// destination[i] uniform in (0, 1]
struct Uniform {
  static constexpr std::string_view kName = "rng.uniform";
  static constexpr DTypes kDTypes = DTypes::reals();
  static constexpr Traits kTraits = kComputesRecorded;

  OpDType dtype;
  std::int64_t n = 0;
  std::uint64_t seed = 0, subsequence = 0, offset = 0;
  Operand destination;

  static constexpr auto kOperands = std::tuple{write("destination", &Uniform::destination)};
  static constexpr auto kPlaces =
      std::tuple{&Uniform::seed, &Uniform::subsequence, &Uniform::offset};
  Result<void> check() const;
  [[nodiscard]] std::uint64_t written(const Operand&) const noexcept {
    return static_cast<std::uint64_t>(n) * size_of(dtype);
  }
};

/// destination[i] normal with the given mean and standard deviation; n must be even (Box-Muller
/// pairs)
struct Normal {
  static constexpr std::string_view kName = "rng.normal";
  static constexpr DTypes kDTypes = DTypes::reals();
  static constexpr Traits kTraits = kComputesRecorded;

  OpDType dtype;
  std::int64_t n = 0;
  std::uint64_t seed = 0, subsequence = 0, offset = 0;
  double mean = 0, deviation = 1;
  Operand destination;

  static constexpr auto kOperands = std::tuple{write("destination", &Normal::destination)};
  static constexpr auto kPlaces = std::tuple{&Normal::seed, &Normal::subsequence, &Normal::offset};
  Result<void> check() const;
  [[nodiscard]] std::uint64_t written(const Operand&) const noexcept {
    return static_cast<std::uint64_t>(n) * size_of(dtype);
  }
};

/// Subsequences are so far apart in the generator's sequence. An f32 number takes one place, an f64
/// number two: f64 subsequences overlap after 2^39 numbers.
inline constexpr std::uint64_t kSubsequenceStride = std::uint64_t{1} << 40;

inline const Library kLibrary{&info_of<Uniform>, &info_of<Normal>};

}  // namespace troupe::rng

namespace troupe {

/// Which numbers: the same options give the same numbers on every engine (normal: to rounding).
struct RandomOptions {
  std::uint64_t seed = 0;
  std::uint64_t subsequence = 0;  ///< below 2^24; give each rank its own
  /// Where to start in the subsequence, below 2^40; even for `normal`. As cuRAND's generator
  /// offset: for f32 and fewer than 2^18 numbers it skips that many numbers; elsewhere it gives
  /// other numbers, not the same ones shifted.
  std::uint64_t offset = 0;
};

/// Random numbers of one device; from `device.rng()`.
template <class Refs>
class BasicRng {
 public:
  template <Element T>
  using Ref = typename Refs::template To<T>;
  explicit BasicRng(detail::Submitter& submitter) : submitter_(&submitter) {}

  /// Uniform in (0, 1].
  template <Real T>
  Future<void> uniform(const Ref<T>& destination, const RandomOptions& options) {
    return detail::submit(*submitter_,
                          rng::Uniform{dtype_of<T>, destination.length(), options.seed,
                                       options.subsequence, options.offset, destination.operand()});
  }
  /// Normal; the length must be even.
  template <Real T>
  Future<void> normal(const Ref<T>& destination, const RandomOptions& options, T mean = 0,
                      T deviation = 1) {
    return detail::submit(
        *submitter_, rng::Normal{dtype_of<T>, destination.length(), options.seed,
                                 options.subsequence, options.offset, static_cast<double>(mean),
                                 static_cast<double>(deviation), destination.operand()});
  }

 private:
  detail::Submitter* submitter_;
};

using Rng = BasicRng<LocalRefs>;

namespace rng {
/// Of a Device, of what Device::prepare() gives, or of a RemoteDevice.
template <class D>
BasicRng<RefsOf<D>> on(D&& device) {
  return BasicRng<RefsOf<D>>(device.submitter());
}
}  // namespace rng

}  // namespace troupe
