#pragma once

#include <troupe/lib/submit.hpp>

/// The sequences of cuRAND's generators
/// (https://docs.nvidia.com/cuda/curand/host-api-overview.html), bit for bit where no function but
/// rounding to f32 or f64 is applied, else to rounding, on both engines. The cpu engine has
/// cuRAND's host generator where libcurand is installed, without a GPU; elsewhere these operations
/// are `unsupported`.
namespace troupe::rng {

/// The last four are quasi-random: n is a multiple of the dimensions, and the numbers of one
/// dimension stand together, n / dimensions of each.
enum class Generator : std::uint32_t {
  xorwow,
  mrg32k3a,
  mtgp32,
  mt19937,
  philox,
  sobol32,
  scrambled_sobol32,
  sobol64,
  scrambled_sobol64
};
constexpr bool is_quasi(Generator generator) noexcept {
  return generator >= Generator::sobol32;
}

/// bits:       u32; of the Sobol sequences of 64 bits u64
/// uniform:    f32 or f64 in (0, 1]
/// normal:     f32 or f64, of `mean` and `deviation`
/// log_normal: f32 or f64, whose logarithm is normal
/// poisson:    u32, of `mean`, above 0 and at most 400,000
/// Pseudo-random normal and log_normal numbers come in pairs: n is even.
enum class Distribution : std::uint32_t { bits, uniform, normal, log_normal, poisson };

/// How a pseudo-random generator's streams are put together. The last three depend on the device,
/// so that the host cannot repeat them: they are `unsupported`.
enum class Ordering : std::uint32_t { by_default, legacy, best, seeded, dynamic };

/// destination[i] = number `first` + i of a sequence, which is what one call of cuRAND gives for
/// `distribution` from a new generator. Of quasi-random ones `first` is a multiple of the
/// dimensions, and the points from first / dimensions on are given.
///
/// A device host keeps the generators that were used last, and one that stands at `first` goes on
/// from there. Otherwise one is made, and set to its place: in one step for quasi-random numbers,
/// and for bits and uniform f32 of Philox, XORWOW and MRG32k3a; in all other cases by making all
/// numbers before `first` again.
struct Sequence {
  static constexpr std::string_view kName = "rng.sequence";
  static constexpr DTypes kDTypes = DTypes::of({DType::u32, DType::u64, DType::f32, DType::f64});
  static constexpr Traits kTraits = {.repeatable = true, .blocking = true};
  /// The farthest place that is reached by making again what lies before it.
  static constexpr std::int64_t kFarthest = std::int64_t{1} << 36;

  OpDType dtype;
  std::int64_t n = 0;
  std::int64_t first = 0;
  std::uint64_t seed = 0;    ///< 0 of quasi-random ones, which have none
  std::uint64_t offset = 0;  ///< where the sequence begins, as in curandSetGeneratorOffset(); 0 of
                             ///< MTGP32 and MT19937, which know no offset
  Generator generator{};
  Distribution distribution{};
  Ordering ordering{};
  std::uint32_t dimensions = 1;  ///< 1 to 20,000; 1 of pseudo-random ones
  double mean = 0, deviation = 1;
  Operand destination;

  static constexpr std::array kOperands{write("destination", &Sequence::destination)};
  Result<void> check() const;
  [[nodiscard]] std::uint64_t written(const Operand&) const noexcept {
    return static_cast<std::uint64_t>(n) * size_of(dtype);
  }
  /// Whether a generator gets to `first` in one step.
  [[nodiscard]] bool seeks() const noexcept {
    if (is_quasi(generator)) return true;
    if (generator == Generator::mtgp32 || generator == Generator::mt19937) return false;
    return distribution == Distribution::bits ||
           (distribution == Distribution::uniform && dtype == DType::f32);
  }
};

}  // namespace troupe::rng

namespace troupe {

/// One of cuRAND's sequences and how much of it has been used. It is a value and lives on the rank:
/// the death of a device host takes nothing from it, and a copy goes on from the same place, so
/// that a checkpoint may keep one. Ranks differ by the offset (of XORWOW, MRG32k3a and Philox
/// multiples of 2^40 or more) or by the seed. One thread at a time.
class RandomSequence {
 public:
  /// What tells one sequence from another.
  struct Options {
    rng::Generator generator = rng::Generator::xorwow;
    rng::Distribution distribution = rng::Distribution::uniform;
    rng::Ordering ordering = rng::Ordering::by_default;
    std::uint32_t dimensions = 1;
    std::uint64_t seed = 0;
    std::uint64_t offset = 0;
    double mean = 0, deviation = 1;
  };
  explicit RandomSequence(const Options& options) noexcept : options_(options) {}

  [[nodiscard]] const Options& options() const noexcept { return options_; }
  /// How many numbers have been taken.
  [[nodiscard]] std::int64_t position() const noexcept { return position_; }
  /// The next n numbers, which are taken by this if the operation checks out.
  rng::Sequence take(DType dtype, std::int64_t n, const Operand& destination) {
    const rng::Sequence op{dtype,
                           n,
                           position_,
                           options_.seed,
                           options_.offset,
                           options_.generator,
                           options_.distribution,
                           options_.ordering,
                           options_.dimensions,
                           options_.mean,
                           options_.deviation,
                           destination};
    if (op.check().ok()) position_ += n;
    return op;
  }

 private:
  Options options_;
  std::int64_t position_ = 0;
};

}  // namespace troupe
