#include <troupe/lib/rng.hpp>

#include "bad_arguments.hpp"
#include "lib/rng/sequences/curand_library.hpp"

namespace troupe::test {
namespace {

using host::rng_numbers::Curand;
using host::rng_numbers::curand;
using rng::Distribution;
using rng::Generator;
using rng::Ordering;

/// What one call of cuRAND's own host generator gives.
template <class T>
std::vector<T> sequence_by_curand(const RandomSequence::Options& options, std::size_t n) {
  constexpr int kTypes[] = {101, 121, 141, 142, 161, 201, 202, 203, 204};
  const auto& library = curand();
  Curand::Handle handle = nullptr;
  std::vector<T> values(n);
  auto ok = library.create_host(&handle, kTypes[static_cast<std::size_t>(options.generator)]) == 0;
  if (options.ordering == Ordering::legacy) ok = ok && library.set_ordering(handle, 103) == 0;
  ok = ok && (rng::is_quasi(options.generator) ? library.set_dimensions(handle, options.dimensions)
                                               : library.set_seed(handle, options.seed)) == 0;
  if (options.offset != 0) ok = ok && library.set_offset(handle, options.offset) == 0;
  const auto made = [&]() -> int {
    auto* const to = values.data();
    if constexpr (std::is_same_v<T, std::uint32_t>) {
      return options.distribution == Distribution::bits
                 ? library.bits(handle, to, n)
                 : library.poisson(handle, to, n, options.mean);
    } else if constexpr (std::is_same_v<T, std::uint64_t>) {
      return library.wide_bits(handle, reinterpret_cast<unsigned long long*>(to), n);
    } else {
      const auto mean = static_cast<T>(options.mean), deviation = static_cast<T>(options.deviation);
      const auto pick = [](auto f32, auto f64) {
        if constexpr (std::is_same_v<T, float>) {
          return f32;
        } else {
          return f64;
        }
      };
      if (options.distribution == Distribution::uniform)
        return pick(library.uniform_f32, library.uniform_f64)(handle, to, n);
      return options.distribution == Distribution::normal
                 ? pick(library.normal_f32, library.normal_f64)(handle, to, n, mean, deviation)
                 : pick(library.log_normal_f32, library.log_normal_f64)(handle, to, n, mean,
                                                                        deviation);
    }
  };
  EXPECT_TRUE(ok && made() == 0) << "cuRAND's host generator fails";
  library.destroy(handle);
  return values;
}

/// Exact but for what logarithm, sine and exponential do, and counts at the edge of a class.
template <class T>
void expect_same_numbers(const RandomSequence::Options& options, const std::vector<T>& actual,
                         const std::vector<T>& expected) {
  if (options.distribution <= Distribution::uniform) {
    EXPECT_EQ(actual, expected);
    return;
  }
  std::size_t apart = 0;
  for (std::size_t i = 0; i < actual.size(); ++i) {
    const auto a = static_cast<double>(actual[i]), b = static_cast<double>(expected[i]);
    if constexpr (std::is_integral_v<T>) {
      EXPECT_LE(std::abs(a - b), 1) << i;
      apart += a != b;
    } else {
      // MTGP32's f64 come from words of 32 bits, and are normal to as many.
      const auto eps = options.generator == rng::Generator::mtgp32
                           ? static_cast<double>(std::numeric_limits<float>::epsilon())
                           : static_cast<double>(std::numeric_limits<T>::epsilon());
      apart += std::abs(a - b) > 32 * eps * (1 + std::abs(b));
    }
  }
  EXPECT_LE(apart, std::is_integral_v<T> ? actual.size() / 500 : 0);
}

/// The part of a sequence that a call gives, where `whole` has `points` numbers of each dimension.
template <class T>
std::vector<T> sequence_part(const std::vector<T>& whole, std::uint32_t dimensions,
                             std::size_t first, std::size_t count) {
  const auto points = whole.size() / dimensions;
  std::vector<T> part;
  for (std::uint32_t d = 0; d < dimensions; ++d) {
    const auto begin = whole.begin() + static_cast<std::ptrdiff_t>(d * points + first);
    part.insert(part.end(), begin, begin + static_cast<std::ptrdiff_t>(count));
  }
  return part;
}

/// In calls of unequal lengths, then from a place that has been left behind.
template <class T>
void check_sequence(const RandomSequence::Options& options) {
  SCOPED_TRACE(::testing::Message()
               << "generator " << static_cast<int>(options.generator) << ", distribution "
               << static_cast<int>(options.distribution) << ", ordering "
               << static_cast<int>(options.ordering) << ", offset " << options.offset);
  const auto dimensions = options.dimensions;
  const std::size_t lengths[] = {600, 14, 50'002};  // points
  const auto whole = sequence_by_curand<T>(options, dimensions * (600 + 14 + 50'002));
  RandomSequence sequence(options), behind(options);
  std::size_t first = 0;
  for (const auto length : lengths) {
    const auto x = device().alloc<T>(static_cast<std::int64_t>(dimensions * length));
    const auto before = sequence;
    device().rng().next(sequence, x);
    expect_same_numbers(options, device().download(x),
                        sequence_part(whole, dimensions, first, length));
    first += length;
    EXPECT_EQ(sequence.position(), static_cast<std::int64_t>(dimensions * first));
    if (length == 14) behind = before;
  }
  const auto x = device().alloc<T>(14 * dimensions);
  device().rng().next(behind, x);
  expect_same_numbers(options, device().download(x), sequence_part(whole, dimensions, 600, 14));
}

bool has_sequences() {
  RandomSequence sequence({});
  const auto x = device().alloc<float>(2);
  return curand().loaded && device().rng().next(sequence, x).wait().code() != Errc::unsupported;
}

constexpr Generator kQuick[] = {Generator::xorwow, Generator::mrg32k3a, Generator::mtgp32,
                                Generator::philox};

TEST(RandomSequences, OfPseudoRandomNumbersAreThoseOfCurand) {
  if (!has_sequences()) GTEST_SKIP() << "no cuRAND on this machine";
  for (const auto generator : kQuick) {
    check_sequence<float>({.generator = generator, .seed = 77});
    // In the default order MRG32k3a takes half a second to begin on the host.
    const auto ordering =
        generator == Generator::mrg32k3a ? Ordering::legacy : Ordering::by_default;
    check_sequence<double>({.generator = generator, .ordering = ordering, .seed = 78});
    check_sequence<std::uint32_t>({.generator = generator,
                                   .distribution = Distribution::bits,
                                   .ordering = Ordering::legacy,
                                   .seed = 79});
    check_sequence<float>({.generator = generator,
                           .distribution = Distribution::normal,
                           .ordering = ordering,
                           .mean = 3,
                           .deviation = 2});
    check_sequence<double>({.generator = generator,
                            .distribution = Distribution::log_normal,
                            .ordering = ordering,
                            .seed = 80,
                            .mean = 0.5,
                            .deviation = 0.25});
    check_sequence<std::uint32_t>({.generator = generator,
                                   .distribution = Distribution::poisson,
                                   .ordering = ordering,
                                   .seed = 81,
                                   .mean = 6.5});
    if (generator == Generator::mtgp32) continue;
    check_sequence<float>(
        {.generator = generator, .ordering = ordering, .seed = 5, .offset = (1ull << 41) + 4096});
  }
}

/// The host takes 4 s to begin with one.
TEST(RandomSequences, OfMt19937AreThoseOfCurand) {
  if (!has_sequences()) GTEST_SKIP() << "no cuRAND on this machine";
  const RandomSequence::Options options{.generator = Generator::mt19937, .seed = 79};
  RandomSequence sequence(options);
  const auto x = device().alloc<float>(50'000);
  device().rng().next(sequence, x.slice(0, 614));
  device().rng().next(sequence, x.slice(614, 49'386));
  EXPECT_EQ(device().download(x), sequence_by_curand<float>(options, 50'000));
}

TEST(RandomSequences, OfSobolNumbersAreThoseOfCurand) {
  if (!has_sequences()) GTEST_SKIP() << "no cuRAND on this machine";
  for (const auto generator : {Generator::sobol32, Generator::scrambled_sobol32, Generator::sobol64,
                               Generator::scrambled_sobol64}) {
    for (const std::uint32_t dimensions : {1u, 7u}) {
      RandomSequence::Options options{.generator = generator, .dimensions = dimensions};
      check_sequence<float>(options);
      check_sequence<double>(options);
      options.offset = 1001;
      options.distribution = Distribution::bits;
      if (generator < Generator::sobol64) {
        check_sequence<std::uint32_t>(options);
      } else {
        check_sequence<std::uint64_t>(options);
      }
      options.distribution = Distribution::normal;
      check_sequence<float>(options);
      check_sequence<double>(options);
    }
  }
}

/// cuRAND's host generator ends the process where normal f64 go to such an address.
TEST(RandomSequences, GoToAddressesThatCurandDoesNotLike) {
  if (!has_sequences()) GTEST_SKIP() << "no cuRAND on this machine";
  for (const auto generator : {Generator::xorwow, Generator::mtgp32, Generator::sobol64}) {
    const RandomSequence::Options options{.generator = generator,
                                          .distribution = Distribution::normal};
    const auto x = device().alloc<double>(1001), y = device().alloc<double>(1001);
    RandomSequence sequence(options), again(options);
    device().rng().next(sequence, x.slice(1, 1000));
    expect_same_numbers(options, device().download(x.slice(1, 1000)),
                        sequence_by_curand<double>(options, 1000));
    device().rng().next(again, y.slice(1, 500));  // goes on from one to another
    device().rng().next(again, y.slice(501, 500));
    EXPECT_EQ(device().download(x.slice(1, 1000)), device().download(y.slice(1, 1000)));
  }
}

/// More than the engine keeps generators for, in turns.
TEST(RandomSequences, OfManySeedsGoOnEach) {
  if (!has_sequences()) GTEST_SKIP() << "no cuRAND on this machine";
  std::vector<RandomSequence> sequences;
  std::vector<GpuRef<double>> all;
  for (std::uint64_t seed = 0; seed < 12; ++seed) {
    sequences.emplace_back(
        RandomSequence::Options{.distribution = Distribution::normal, .seed = seed});
    all.push_back(device().alloc<double>(600));
  }
  for (int turn = 0; turn < 3; ++turn) {
    for (std::size_t i = 0; i < sequences.size(); ++i)
      device().rng().next(sequences[i], all[i].slice(200 * turn, 200));
  }
  for (std::size_t i = 0; i < sequences.size(); ++i) {
    expect_same_numbers(sequences[i].options(), device().download(all[i]),
                        sequence_by_curand<double>(sequences[i].options(), 600));
  }
}

TEST_F(BadArguments, OfSequencesOfRandomNumbers) {
  const rng::Sequence good{
      .dtype = DType::f64, .n = 16, .distribution = Distribution::uniform, .destination = x};
  const auto with = [&](auto change, Errc code = Errc::invalid) {
    auto op = good;
    change(op);
    expect_refused(op, code);
  };
  for (const auto ordering : {Ordering::best, Ordering::seeded, Ordering::dynamic})
    with([&](auto& op) { op.ordering = ordering; }, Errc::unsupported);
  with([](auto& op) { op.ordering = static_cast<Ordering>(5); });
  with([](auto& op) { op.generator = static_cast<Generator>(9); });
  with([](auto& op) { op.distribution = static_cast<Distribution>(5); });
  with([](auto& op) { op.distribution = Distribution::bits; });
  with([](auto& op) { op.distribution = Distribution::poisson; });
  with([](auto& op) { op.dtype = DType::u32; });
  with([](auto& op) { op.dimensions = 2; });
  with([](auto& op) { op.generator = Generator::mt19937, op.offset = 1; });
  with([](auto& op) { op.generator = Generator::mtgp32, op.offset = 1; });
  with([](auto& op) { op.n = 17; });
  with([](auto& op) { op.n = -1; });
  with([](auto& op) { op.first = -1; });
  with([](auto& op) { op.first = rng::Sequence::kFarthest + 2; });  // f64 uniform is made again
  with([](auto& op) { op.distribution = Distribution::normal, op.n = 15; });
  with([](auto& op) { op.distribution = Distribution::normal, op.first = 1; });
  with([](auto& op) { op.distribution = Distribution::normal, op.deviation = -1; });
  with([&](auto& op) { op.destination = absent; });
  const auto quasi = [&](auto change) {
    with([&](auto& op) {
      op.generator = Generator::sobol64;
      op.dimensions = 4;
      change(op);
    });
  };
  quasi([](auto& op) { op.n = 15; });
  quasi([](auto& op) { op.first = 2; });
  quasi([](auto& op) { op.dimensions = 0; });
  quasi([](auto& op) { op.dimensions = 20'001; });
  quasi([](auto& op) { op.seed = 1; });
  quasi([](auto& op) { op.ordering = Ordering::legacy; });
  RandomSequence counts({.distribution = Distribution::poisson, .mean = 0});
  const auto to = device().alloc<std::uint32_t>(4);
  EXPECT_EQ(device().rng().next(counts, to).wait().code(), Errc::invalid);
  EXPECT_EQ(counts.position(), 0);
}

}  // namespace
}  // namespace troupe::test
