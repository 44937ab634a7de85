#include "call.hpp"

namespace troupe::judge {
namespace {

RandomOptions random_options(const Call& c) {
  return {.seed = c.get<std::uint64_t>("seed"),
          .subsequence = c.get<std::uint64_t>("subsequence"),
          .offset = c.get<std::uint64_t>("offset")};
}

template <class T>
void add_real_laws(Runs& runs) {
  const auto add = calls_of<T>(runs, [](Device& device) { return device.rng(); });
  static constexpr auto a = [](const Call& c) { return c.factor<double>("p"); };
  static constexpr auto b = [](const Call& c) { return c.factor<double>("q"); };
  add("uniform", [](Call& c, auto rng) { rng.uniform(c.buffer<T>("x"), random_options(c)).get(); });
  add("normal", [](Call& c, auto rng) {
    rng.normal(c.buffer<T>("x"), random_options(c), static_cast<T>(a(c)), static_cast<T>(b(c)))
        .get();
  });
  add("log_normal", [](Call& c, auto rng) {
    rng.log_normal(c.buffer<T>("x"), random_options(c), static_cast<T>(a(c)), static_cast<T>(b(c)))
        .get();
  });
  add("exponential", [](Call& c, auto rng) {
    rng.template exponential<T>(c.buffer<T>("x"), random_options(c), a(c)).get();
  });
  add("cauchy", [](Call& c, auto rng) {
    rng.template cauchy<T>(c.buffer<T>("x"), random_options(c), a(c), b(c)).get();
  });
  add("gamma", [](Call& c, auto rng) {
    rng.template gamma<T>(c.buffer<T>("x"), random_options(c), a(c), b(c)).get();
  });
  add("beta", [](Call& c, auto rng) {
    rng.template beta<T>(c.buffer<T>("x"), random_options(c), a(c), b(c)).get();
  });
}

void add_counts(Runs& runs) {
  using U32 = std::uint32_t;
  const auto add = calls_of<U32>(runs, [](Device& device) { return device.rng(); });
  add("poisson", [](Call& c, auto rng) {
    rng.poisson(c.buffer<U32>("x"), random_options(c), c.factor<double>("p")).get();
  });
  add("binomial", [](Call& c, auto rng) {
    rng.binomial(c.buffer<U32>("x"), random_options(c), static_cast<U32>(c.factor<double>("p")),
                 c.factor<double>("q"))
        .get();
  });
  add("discrete", [](Call& c, auto rng) {
    const auto weights = c.get<std::vector<double>>("weights");
    const auto table = troupe::rng::alias_table(weights).take();
    const auto threshold = c.device().alloc<double>(std::ssize(weights));
    const auto alias = c.device().alloc<U32>(std::ssize(weights));
    c.device().upload<double>(table.threshold, threshold);
    c.device().upload<U32>(table.alias, alias);
    rng.discrete(c.buffer<U32>("x"), random_options(c), threshold, alias).get();
  });
  add("bits", [](Call& c, auto rng) { rng.bits(c.buffer<U32>("x"), random_options(c)).get(); });
}

/// "sequence": in several pieces, one behind another.
template <class T>
void add_sequence(Runs& runs) {
  const auto add = calls_of<T>(runs, [](Device& device) { return device.rng(); });
  add("sequence", [](Call& c, auto rng) {
    RandomSequence sequence(
        {.generator = c.choice<troupe::rng::Generator>(
             "generator", {"xorwow", "mrg32k3a", "mtgp32", "mt19937", "philox", "sobol32",
                           "scrambled_sobol32", "sobol64", "scrambled_sobol64"}),
         .distribution = c.choice<troupe::rng::Distribution>(
             "distribution", {"bits", "uniform", "normal", "log_normal", "poisson"}),
         .dimensions = c.get<std::uint32_t>("dimensions"),
         .seed = c.get<std::uint64_t>("seed"),
         .mean = c.factor<double>("p"),
         .deviation = c.factor<double>("q")});
    const auto x = c.buffer<T>("x");
    const auto length = x.length() / c.integer("pieces");
    for (std::int64_t first = 0; first < x.length(); first += length)
      rng.next(sequence, x.slice(first, length)).get();
  });
}

}  // namespace

void add_random(Runs& runs) {
  for_types<float, double>([&runs]<class T>(T) { add_real_laws<T>(runs); });
  add_counts(runs);
  for_types<float, double, std::uint32_t, std::uint64_t>(
      [&runs]<class T>(T) { add_sequence<T>(runs); });
  const auto add = calls_of<std::uint64_t>(runs, [](Device& device) { return device.rng(); });
  add("bits",
      [](Call& c, auto rng) { rng.bits(c.buffer<std::uint64_t>("x"), random_options(c)).get(); });
}

}  // namespace troupe::judge
