#pragma once

#include <troupe/lib/rng/laws.hpp>
#include <troupe/lib/rng/sequence.hpp>
#include <troupe/lib/rng/stream.hpp>
#include <troupe/lib/submit.hpp>

/// Random numbers: Philox4x32-10 (Salmon et al., SC'11, doi:10.1145/2063384.2063405) as cuRAND
/// orders it.
namespace troupe::rng {

/// destination[i] of 32 random bits, or of 64: two u32 of the same sequence, the lower half first.
/// Either is bit for bit what curandGenerate() gives for CURAND_RNG_PSEUDO_PHILOX4_32_10.
struct Bits {
  static constexpr std::string_view kName = "rng.bits";
  static constexpr DTypes kDTypes = DTypes::of({DType::u32, DType::u64});
  static constexpr Traits kTraits = kComputesRecorded;

  OpDType dtype;
  std::int64_t n = 0;
  std::uint64_t seed = 0, subsequence = 0, offset = 0;  ///< the offset counts u32
  Operand destination;

  static constexpr std::array kOperands{write("destination", &Bits::destination)};
  static constexpr auto kPlaces = std::tuple{&Bits::seed, &Bits::subsequence, &Bits::offset};
  Result<void> check() const;
  [[nodiscard]] std::uint64_t written(const Operand&) const noexcept {
    return static_cast<std::uint64_t>(n) * size_of(dtype);
  }
};

/// destination[i] uniform in (0, 1]
struct Uniform {
  static constexpr std::string_view kName = "rng.uniform";
  static constexpr DTypes kDTypes = DTypes::reals();
  static constexpr Traits kTraits = kComputesRecorded;

  OpDType dtype;
  std::int64_t n = 0;
  std::uint64_t seed = 0, subsequence = 0, offset = 0;
  Operand destination;

  static constexpr std::array kOperands{write("destination", &Uniform::destination)};
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

  static constexpr std::array kOperands{write("destination", &Normal::destination)};
  static constexpr auto kPlaces = std::tuple{&Normal::seed, &Normal::subsequence, &Normal::offset};
  Result<void> check() const;
  [[nodiscard]] std::uint64_t written(const Operand&) const noexcept {
    return static_cast<std::uint64_t>(n) * size_of(dtype);
  }
};

/// destination[i] = exp(x) of a normal x with the given mean and standard deviation; n must be even
struct LogNormal {
  static constexpr std::string_view kName = "rng.log_normal";
  static constexpr DTypes kDTypes = DTypes::reals();
  static constexpr Traits kTraits = kComputesRecorded;

  OpDType dtype;
  std::int64_t n = 0;
  std::uint64_t seed = 0, subsequence = 0, offset = 0;
  double mean = 0, deviation = 1;  ///< of the logarithm
  Operand destination;

  static constexpr std::array kOperands{write("destination", &LogNormal::destination)};
  static constexpr auto kPlaces =
      std::tuple{&LogNormal::seed, &LogNormal::subsequence, &LogNormal::offset};
  Result<void> check() const;
  [[nodiscard]] std::uint64_t written(const Operand&) const noexcept {
    return static_cast<std::uint64_t>(n) * size_of(dtype);
  }
};

/// All of them; whoever includes this header knows them.
using Operations = List<Bits, Uniform, Normal, LogNormal, Exponential, Cauchy, Gamma, Beta, Poisson,
                        Binomial, Discrete, Sequence>;
std::span<const OperationInfo* const> operations() noexcept;
inline const Library kLibrary{operations()};

}  // namespace troupe::rng

namespace troupe {

/// Random numbers of one device; from `device.rng()`.
template <class Refs>
class BasicRng {
 public:
  template <Element T>
  using Ref = typename Refs::template To<T>;
  explicit BasicRng(detail::Submitter& submitter) : submitter_(&submitter) {}

  /// All 32 bits of each, or all 64.
  template <Element T>
  requires std::same_as<T, std::uint32_t> || std::same_as<T, std::uint64_t> Future<void> bits(
      const Ref<T>& destination, const RandomOptions& options)
  const {
    return detail::submit(
        *submitter_, rng::Bits{dtype_of<T>, destination.length(), options.seed, options.subsequence,
                               options.offset, destination.operand()});
  }
  /// Uniform in (0, 1].
  template <RealElement T>
  Future<void> uniform(const Ref<T>& destination, const RandomOptions& options) const {
    return detail::submit(*submitter_,
                          rng::Uniform{dtype_of<T>, destination.length(), options.seed,
                                       options.subsequence, options.offset, destination.operand()});
  }
  /// Normal; the length must be even.
  template <RealElement T>
  Future<void> normal(const Ref<T>& destination, const RandomOptions& options, T mean = 0,
                      T deviation = 1) const {
    return detail::submit(
        *submitter_, rng::Normal{dtype_of<T>, destination.length(), options.seed,
                                 options.subsequence, options.offset, static_cast<double>(mean),
                                 static_cast<double>(deviation), destination.operand()});
  }

  /// The logarithm is normal with this mean and deviation; the length must be even.
  template <RealElement T>
  Future<void> log_normal(const Ref<T>& destination, const RandomOptions& options, T mean = 0,
                          T deviation = 1) const {
    return detail::submit(
        *submitter_, rng::LogNormal{dtype_of<T>, destination.length(), options.seed,
                                    options.subsequence, options.offset, static_cast<double>(mean),
                                    static_cast<double>(deviation), destination.operand()});
  }

  /// With this rate, whose inverse is the mean: above 0.
  template <RealElement T>
  Future<void> exponential(const Ref<T>& destination, const RandomOptions& options,
                           double rate = 1) const {
    return draw<rng::Law::exponential>(destination, options, rate, 0);
  }
  /// The scale is above 0.
  template <RealElement T>
  Future<void> cauchy(const Ref<T>& destination, const RandomOptions& options, double location = 0,
                      double scale = 1) const {
    return draw<rng::Law::cauchy>(destination, options, location, scale);
  }
  /// Its mean is shape * scale; both are above 0.
  template <RealElement T>
  Future<void> gamma(const Ref<T>& destination, const RandomOptions& options, double shape,
                     double scale = 1) const {
    return draw<rng::Law::gamma>(destination, options, shape, scale);
  }
  /// Its mean is a / (a + b); both are above 0.
  template <RealElement T>
  Future<void> beta(const Ref<T>& destination, const RandomOptions& options, double a,
                    double b) const {
    return draw<rng::Law::beta>(destination, options, a, b);
  }
  /// The mean is above 0 and at most 2^30.
  Future<void> poisson(const Ref<std::uint32_t>& destination, const RandomOptions& options,
                       double mean) const {
    return draw<rng::Law::poisson>(destination, options, mean, 0);
  }
  /// How many of so many trials succeed, of which each does with this probability, 0 to 1.
  Future<void> binomial(const Ref<std::uint32_t>& destination, const RandomOptions& options,
                        std::uint32_t trials, double probability) const {
    return draw<rng::Law::binomial>(destination, options, trials, probability);
  }
  /// Numbers of categories, by what rng::alias_table() has made of their weights.
  Future<void> discrete(const Ref<std::uint32_t>& destination, const RandomOptions& options,
                        const Ref<double>& threshold, const Ref<std::uint32_t>& alias) const {
    return detail::submit_exact(
        *submitter_,
        rng::Discrete{DType::u32, destination.length(), options.seed, options.subsequence,
                      options.offset, threshold.length(), threshold.operand(), alias.operand(),
                      destination.operand()},
        {{"alias", alias.length(), threshold.length()}});
  }

  /// The next numbers of one of cuRAND's sequences; see rng::Distribution for what T may be. All
  /// calls with one sequence have the same T.
  template <Element T>
  Future<void> next(RandomSequence& sequence, const Ref<T>& destination) const {
    return detail::submit(*submitter_,
                          sequence.take(dtype_of<T>, destination.length(), destination.operand()));
  }

 private:
  template <rng::Law kLaw, Element T>
  Future<void> draw(const Ref<T>& destination, const RandomOptions& options, double a,
                    double b) const {
    return detail::submit(
        *submitter_,
        rng::Distributed<kLaw>{dtype_of<T>, destination.length(), options.seed, options.subsequence,
                               options.offset, a, b, destination.operand()});
  }

  detail::Submitter* submitter_;
};

using Rng = BasicRng<LocalRefs>;

namespace rng {
/// The library's operations on a Device, on what Device::prepare() gives, or on a RemoteDevice.
template <class D>
BasicRng<RefsOf<D>> on(D&& device) {
  return BasicRng<RefsOf<D>>(device.submitter());
}
}  // namespace rng

}  // namespace troupe
