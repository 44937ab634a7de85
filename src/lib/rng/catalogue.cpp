#include <cmath>
#include <numbers>
#include <numeric>

#include <troupe/lib/rng.hpp>

#include "catalogue/catalogue.hpp"

// Random numbers by their places: bits and what is made of them by arithmetic bit for bit, whatever
// the engine; of the other laws the same number at the same place, whichever call asks for it.

namespace troupe::catalogue {
namespace {

constexpr std::int64_t kNumbers = 40;

/// Philox4x32-10, written from its description: doi:10.1145/2063384.2063405.
std::array<std::uint32_t, 4> philox(std::uint64_t seed, std::uint64_t stream, std::uint64_t step) {
  const auto low = [](std::uint64_t x) { return static_cast<std::uint32_t>(x); };
  const auto high = [](std::uint64_t x) { return static_cast<std::uint32_t>(x >> 32); };
  std::array<std::uint32_t, 4> x{low(step), high(step), low(stream), high(stream)};
  auto key = low(seed), other_key = high(seed);
  for (int round = 0; round < 10; ++round) {
    const auto first = std::uint64_t{0xd2511f53} * x[0], second = std::uint64_t{0xcd9e8d57} * x[2];
    x = {high(second) ^ x[1] ^ key, low(second), high(first) ^ x[3] ^ other_key, low(first)};
    key += 0x9e3779b9u, other_key += 0xbb67ae85u;
  }
  return x;
}
/// The word at a place of cuRAND's sequence: groups of four go round 65536 streams.
std::uint32_t word_at(std::uint64_t seed, std::uint64_t place) {
  const auto group = place / 4;
  return philox(seed, group % 65536, group / 65536)[place % 4];
}
/// The first two uniform numbers of a law's number, whose stream is that of its place.
std::array<double, 2> pair_at(std::uint64_t seed, std::uint64_t place) {
  const auto x = philox(seed, place, std::uint64_t{1} << 61);
  const auto unit = [](std::uint64_t a, std::uint64_t b) {
    return static_cast<double>(a ^ (b << 21)) * 0x1p-53 + 0x1p-54;
  };
  return {unit(x[0], x[1]), unit(x[2], x[3])};
}

RandomOptions draw_options(Trial& t) {
  return {.seed = t.random.next(),
          .subsequence = static_cast<std::uint64_t>(t.random.below(1 << 20)),
          .offset = static_cast<std::uint64_t>(2 * t.random.below(1 << 30))};
}
std::uint64_t place_of(const RandomOptions& options) {
  return options.subsequence * rng::kSubsequenceStride + options.offset;
}

template <class T>
void expect_same(Trial& t, const GpuRef<T>& x, const GpuRef<T>& y) {
  t.check([&t, x, y]() -> std::string {
    const auto a = t.device().download(x), b = t.device().download(y);
    for (std::size_t i = 0; i < a.size(); ++i) {
      if (std::memcmp(&a[i], &b[i], sizeof a[i]) != 0) return fmt::format("number {} differs", i);
    }
    return {};
  });
}
/// Draws all at once, and in two parts, which must be the same. The parts begin a place further on
/// for each number; `multiple` is what the first has to be a multiple of.
template <class T, class Draw>
GpuRef<T> draw_in_parts(Trial& t, const RandomOptions& options, std::int64_t multiple, Draw draw) {
  const auto x = t.room<T>(kNumbers), parts = t.room<T>(kNumbers);
  const auto first = multiple * t.random.below(kNumbers / multiple);
  t.call(draw(x, options));
  auto behind = options;
  behind.offset += static_cast<std::uint64_t>(first);
  t.call(draw(parts.slice(first, kNumbers - first), behind));
  if (first > 0) t.call(draw(parts.slice(0, first), options));
  expect_same(t, x, parts);
  return x;
}
/// Number i is what `of` says of its place, to within rounding of a function's value.
template <class T, class Of>
void expect_law(Trial& t, const GpuRef<T>& x, const RandomOptions& options, Of of) {
  t.demand(
      "the error of a law's number",
      [&t, x, options, of] {
        const auto values = t.device().download(x);
        double most = 0;
        for (std::size_t i = 0; i < values.size(); ++i) {
          const double wanted = of(pair_at(options.seed, place_of(options) + i));
          const double is = static_cast<double>(values[i]);
          most = std::max(most, std::abs(is - wanted) / (1 + std::abs(wanted)));
        }
        return most;
      },
      std::is_same_v<T, float> ? 0x1p-22 : 0x1p-43);
}

void add_bits(Catalogue& catalogue) {
  catalogue.add<std::uint32_t>("bits", [](Trial& t) {
    // Numbers that no other rank's stream has, in part behind others of the same stream.
    RandomStream stream({.seed = t.random.next(), .rank = 1, .ranks = 3});
    if (t.flip()) (void)stream.take<double>(t.random.between(1, 5));
    const auto options = t.flip() ? draw_options(t) : stream.take<std::uint32_t>(kNumbers);
    const auto x = t.room<std::uint32_t>(kNumbers);
    t.call(t.device().rng().bits(x, options));
    std::vector<Wide> expected;
    for (std::uint64_t i = 0; i < kNumbers; ++i)
      expected.emplace_back(word_at(options.seed, place_of(options) + i));
    t.expect(x, expected);
  });
  catalogue.add<std::uint64_t>("bits", [](Trial& t) {
    const auto options = draw_options(t);
    const auto x = t.room<std::uint64_t>(kNumbers);
    t.call(t.device().rng().bits(x, options));
    t.check([&t, x, options]() -> std::string {
      const auto values = t.device().download(x);
      for (std::size_t i = 0; i < values.size(); ++i) {
        const auto place = place_of(options) + 2 * i;
        const auto wanted = word_at(options.seed, place) |
                            static_cast<std::uint64_t>(word_at(options.seed, place + 1)) << 32;
        if (values[i] != wanted)
          return fmt::format("number {} is {}, not {}", i, values[i], wanted);
      }
      return {};
    });
  });
}

template <class T>
void add_laws(Catalogue& catalogue) {
  catalogue.add<T>("uniform", [](Trial& t) {
    const auto options = draw_options(t);
    if constexpr (std::is_same_v<T, float>) {
      const auto x = draw_in_parts<T>(t, options, 1, [&t](const auto& to, const auto& where) {
        return t.device().rng().uniform(to, where);
      });
      std::vector<Wide> expected;
      for (std::uint64_t i = 0; i < kNumbers; ++i)
        expected.emplace_back(
            static_cast<float>(word_at(options.seed, place_of(options) + i)) * 0x1p-32f + 0x1p-33f);
      t.expect(x, expected);
    } else {
      const auto x = t.room<T>(kNumbers), again = t.room<T>(kNumbers);
      t.call(t.device().rng().uniform(x, options)),
          t.call(t.device().rng().uniform(again, options));
      expect_same(t, x, again);
      t.demand(
          "a number outside of (0, 1]",
          [&t, x] {
            double outside = 0;
            for (const auto value : t.device().download(x))
              outside = value > 0 && value <= 1 ? outside : 1;
            return outside;
          },
          0);
    }
  });
  // The same by the law and by its logarithm.
  catalogue.add<T>({"normal", "normal log_normal"}, [](Trial& t) {
    const auto options = draw_options(t);
    const auto x = t.room<T>(kNumbers), exponential = t.room<T>(kNumbers);
    t.call(t.device().rng().normal(x, options, T(1), T(0.5)));
    t.call(t.device().rng().log_normal(exponential, options, T(1), T(0.5)));
    t.demand(
        "the logarithm of a log-normal number less the normal one",
        [&t, x, exponential] {
          const auto a = t.device().download(x), b = t.device().download(exponential);
          double most = 0;
          for (std::size_t i = 0; i < a.size(); ++i)
            most = std::max(
                most, std::abs(std::log(static_cast<double>(b[i])) - static_cast<double>(a[i])));
          return most;
        },
        64 * Trial::epsilon<T>());
  });
  catalogue.add<T>("exponential", [](Trial& t) {
    const auto options = draw_options(t);
    const auto x = draw_in_parts<T>(t, options, 1, [&t](const auto& to, const auto& where) {
      return t.device().rng().template exponential<T>(to, where, 2.5);
    });
    expect_law(t, x, options, [](const auto& u) { return -std::log(u[0]) / 2.5; });
  });
  catalogue.add<T>("cauchy", [](Trial& t) {
    const auto options = draw_options(t);
    const auto x = draw_in_parts<T>(t, options, 1, [&t](const auto& to, const auto& where) {
      return t.device().rng().template cauchy<T>(to, where, 1, 2);
    });
    // Far out the tangent amplifies the rounding of its argument by its own size.
    expect_law(t, x, options,
               [](const auto& u) { return 1 + 2 * std::tan(std::numbers::pi * (u[0] - 0.5)); });
  });
  catalogue.add<T>("gamma", [](Trial& t) {
    const double shape = t.flip() ? 0.5 : 3;
    draw_in_parts<T>(t, draw_options(t), 1, [&t, shape](const auto& to, const auto& where) {
      return t.device().rng().template gamma<T>(to, where, shape, 2);
    });
  });
  catalogue.add<T>("beta", [](Trial& t) {
    draw_in_parts<T>(t, draw_options(t), 1, [&t](const auto& to, const auto& where) {
      return t.device().rng().template beta<T>(to, where, 0.5, 2);
    });
  });
}

void add_counts(Catalogue& catalogue) {
  using U32 = std::uint32_t;
  catalogue.add<U32>("poisson", [](Trial& t) {
    const double mean = t.flip() ? 3.5 : 40;
    draw_in_parts<U32>(t, draw_options(t), 1, [&t, mean](const auto& to, const auto& where) {
      return t.device().rng().poisson(to, where, mean);
    });
  });
  catalogue.add<U32>("binomial", [](Trial& t) {
    const double probability = t.flip() ? 0.01 : 0.4;
    draw_in_parts<U32>(t, draw_options(t), 1, [&t, probability](const auto& to, const auto& where) {
      return t.device().rng().binomial(to, where, 100, probability);
    });
  });
  catalogue.add<U32>("discrete", [](Trial& t) {
    const std::vector<double> weights{0.5, 0, 2, 1, 0.25};
    const auto table = rng::alias_table(weights).take();
    const auto threshold = t.put_values(table.threshold);
    const auto alias = t.put_values(table.alias);
    const auto options = draw_options(t);
    const auto x = draw_in_parts<U32>(
        t, options, 1, [&t, threshold, alias](const auto& to, const auto& where) {
          return t.device().rng().discrete(to, where, threshold, alias);
        });
    std::vector<Wide> expected;
    for (std::uint64_t i = 0; i < kNumbers; ++i) {
      const auto u = pair_at(options.seed, place_of(options) + i);
      const auto c = std::min<std::size_t>(static_cast<std::size_t>(u[0] * 5), 4);
      expected.emplace_back(u[1] <= table.threshold[c] ? static_cast<double>(c) : table.alias[c]);
    }
    t.expect(x, expected);
  });
}

/// One of cuRAND's sequences, in two calls and in one.
template <class T>
void add_sequence(Catalogue& catalogue) {
  catalogue.add<T>({"sequence", "sequence", Missing::itself}, [](Trial& t) {
    using rng::Distribution;
    using rng::Generator;
    constexpr bool kBits = std::is_same_v<T, std::uint32_t>,
                   kWide = std::is_same_v<T, std::uint64_t>;
    const auto generator =
        kWide ? (t.flip() ? Generator::sobol64 : Generator::scrambled_sobol64)
              : t.random.of(std::array{Generator::xorwow, Generator::mtgp32, Generator::philox,
                                       Generator::sobol32, Generator::scrambled_sobol32});
    const bool quasi = rng::is_quasi(generator);
    auto distribution = kWide ? Distribution::bits
                        : kBits
                            ? (t.flip() ? Distribution::bits : Distribution::poisson)
                            : t.random.of(std::array{Distribution::uniform, Distribution::normal,
                                                     Distribution::log_normal});
    const RandomSequence::Options options{
        .generator = generator,
        .distribution = distribution,
        .dimensions = quasi ? 4u : 1u,
        .seed = quasi ? 0 : t.random.next() % 1000 + 1,
        .mean = distribution == Distribution::poisson ? 5.0 : 0.0};
    RandomSequence whole(options), parts(options);
    const auto x = t.room<T>(kNumbers), y = t.room<T>(kNumbers);
    // A part of quasi-random points has all their dimensions, each on its own.
    const auto first = quasi ? kNumbers : 2 * t.random.between(1, kNumbers / 2 - 1);
    auto rng = t.device().rng();
    t.call(rng.next(whole, x));
    t.call(rng.next(parts, y.slice(0, first)));
    if (first < kNumbers) t.call(rng.next(parts, y.slice(first, kNumbers - first)));
    expect_same(t, x, y);
  });
}

void add_calls_of_random(Catalogue& catalogue) {
  add_bits(catalogue), add_counts(catalogue);
  for_types<float, double>([&catalogue]<class T>(T) { add_laws<T>(catalogue); });
  for_types<float, double, std::uint32_t, std::uint64_t>(
      [&catalogue]<class T>(T) { add_sequence<T>(catalogue); });
}

const Subject kRandom("rng", add_calls_of_random);

}  // namespace

}  // namespace troupe::catalogue
