#include <algorithm>
#include <numeric>

#include <troupe/lib/primitives.hpp>

#include "trial.hpp"

// Reductions, selections and runs of small integers: exact whatever the type and the order.

namespace troupe::torture {
namespace {

using primitives::Extreme;
using primitives::Reduction;

/// Up to `most` numbers from 0 to `largest`: many are equal.
template <class T>
std::vector<T> draw(Trial& t, std::int64_t most, int largest) {
  std::vector<T> values(static_cast<std::size_t>(t.random.between(1, most)));
  for (auto& value : values) value = static_cast<T>(t.random.below(largest + 1));
  return values;
}
template <class T>
std::vector<Wide> wide(const std::vector<T>& values) {
  std::vector<Wide> all;
  for (const auto value : values) all.emplace_back(static_cast<double>(value));
  return all;
}
/// What is in room for as many as there are `places`: what lies behind them stays, see Trial::room.
template <class T>
std::vector<Wide> with_rest(std::vector<T> values, std::size_t places) {
  values.resize(places, T(1));
  return wide(values);
}
void expect_count(Trial& t, const Future<std::int64_t>& count, std::size_t expected) {
  t.call(count);
  t.check([count, expected]() -> std::string {
    const auto is = count.get();
    return is == static_cast<std::int64_t>(expected)
               ? ""
               : fmt::format("counts {}, not {}", is, expected);
  });
}

template <class T>
void add_reductions(Calls& calls) {
  calls.add<T>("product", [](Trial& t) {
    auto x = draw<T>(t, 20, 1);
    for (auto& value : x) value = value + T(1);  // at most 2^20
    const auto result = t.room<T>(1);
    t.call(primitives::on(t.device()).reduce(t.put_values(x), result, Reduction::product));
    t.expect(result,
             wide(std::vector<T>{std::accumulate(x.begin(), x.end(), T(1), std::multiplies<>{})}));
  });
  calls.add<T>("arg_reduce", [](Trial& t) {
    const auto x = draw<T>(t, 300, 50);
    const auto extreme = t.flip() ? Extreme::min : Extreme::max;
    const auto value = t.room<T>(1);
    const auto index = t.room<std::int64_t>(1);
    t.call(primitives::on(t.device()).arg_reduce(t.put_values(x), value, index, extreme));
    const auto place = extreme == Extreme::min ? std::min_element(x.begin(), x.end())
                                               : std::max_element(x.begin(), x.end());
    t.expect(value, wide(std::vector<T>{*place}));
    t.expect(index, wide(std::vector<std::int64_t>{place - x.begin()}));
  });
  calls.add<T>("segmented_reduce", [](Trial& t) {
    const auto x = draw<T>(t, 300, 50);
    std::vector<std::int64_t> offsets(static_cast<std::size_t>(t.random.between(2, 9)));
    for (auto& offset : offsets) offset = t.random.between(0, std::ssize(x));
    std::sort(offsets.begin(), offsets.end());
    std::vector<T> sums;
    for (std::size_t s = 0; s + 1 < offsets.size(); ++s)
      sums.push_back(std::accumulate(x.begin() + offsets[s], x.begin() + offsets[s + 1], T(0)));
    const auto result = t.room<T>(std::ssize(sums));
    t.call(primitives::on(t.device())
               .segmented_reduce(t.put_values(x), t.put_values(offsets), result));
    t.expect(result, wide(sums));
  });
}

template <class T>
void add_selections(Calls& calls) {
  calls.add<T>("select_flagged", [](Trial& t) {
    const auto x = draw<T>(t, 300, 50);
    std::vector<std::uint8_t> flags(x.size());
    std::vector<T> selected, others;
    for (std::size_t i = 0; i < x.size(); ++i) {
      flags[i] = t.flip() ? 1 : 0;
      (flags[i] != 0 ? selected : others).push_back(x[i]);
    }
    const auto dx = t.put_values(x);
    const auto dflags = t.put_values(flags);
    const auto some = t.room<T>(std::ssize(x)), all = t.room<T>(std::ssize(x));
    auto library = primitives::on(t.device());
    expect_count(t, library.select_flagged(dx, dflags, some), selected.size());
    expect_count(t, library.partition_flagged(dx, dflags, all), selected.size());
    t.expect(some, with_rest(selected, x.size()));
    auto parted = selected;
    parted.insert(parted.end(), others.rbegin(), others.rend());
    t.expect(all, wide(parted));
  });
  calls.add<T>("runs", [](Trial& t) {
    const auto x = draw<T>(t, 300, 2);
    std::vector<std::uint32_t> values(x.size());
    for (auto& value : values) value = static_cast<std::uint32_t>(t.random.below(100));
    std::vector<T> runs;
    std::vector<std::int64_t> lengths;
    std::vector<std::uint32_t> sums;
    for (std::size_t i = 0; i < x.size(); ++i) {
      if (i == 0 || x[i] != x[i - 1]) runs.push_back(x[i]), lengths.push_back(0), sums.push_back(0);
      lengths.back() += 1, sums.back() += values[i];
    }
    const auto n = std::ssize(x);
    const auto dx = t.put_values(x);
    const auto firsts = t.room<T>(n), keys = t.room<T>(n), of_lengths = t.room<T>(n);
    const auto dlengths = t.room<std::int64_t>(n);
    const auto dsums = t.room<std::uint32_t>(n);
    auto library = primitives::on(t.device());
    expect_count(t, library.unique(dx, firsts), runs.size());
    expect_count(t, library.run_length_encode(dx, of_lengths, dlengths), runs.size());
    expect_count(t, library.reduce_by_key(dx, t.put_values(values), keys, dsums), runs.size());
    for (const auto& of : {firsts, keys, of_lengths}) t.expect(of, with_rest(runs, x.size()));
    t.expect(dlengths, with_rest(lengths, x.size()));
    t.expect(dsums, with_rest(sums, x.size()));
  });
}

template <class... T>
void add_all(Calls& calls) {
  (add_reductions<T>(calls), ...);
  (add_selections<T>(calls), ...);
}

}  // namespace

void add_primitives(Calls& calls) {
  add_all<std::int32_t, std::uint32_t, std::int64_t, std::uint64_t, float, double>(calls);
}

}  // namespace troupe::torture
