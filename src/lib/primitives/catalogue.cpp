#include <algorithm>
#include <numeric>

#include <troupe/lib/primitives.hpp>

#include "catalogue/catalogue.hpp"

// Reductions, selections, runs, scans and histograms of small integers: exact whatever the type and
// the order.

namespace troupe::catalogue {
namespace {

using primitives::Extreme;
using primitives::ReduceOp;

/// Up to `most` numbers from 0 to `largest`: many are equal.
template <class T>
std::vector<T> draw(Trial& t, std::int64_t most, int largest) {
  std::vector<T> values(static_cast<std::size_t>(t.random.between(1, most)));
  for (auto& value : values) value = static_cast<T>(t.random.below(largest + 1));
  return values;
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
void add_reductions(Catalogue& catalogue) {
  catalogue.add<T>({"product", "reduce"}, [](Trial& t) {
    using N = NumberOf<T>;
    auto x = draw<N>(t, 15, 1);
    for (auto& value : x) value = value + N(1);  // at most 2^15
    const auto result = t.room<T>(1);
    t.call(primitives::on(t.device()).reduce(t.put<T>(wide(x)), result, ReduceOp::prod));
    t.expect(result,
             wide(std::vector<N>{std::accumulate(x.begin(), x.end(), N(1), std::multiplies<>{})}));
  });
  catalogue.add<T>("arg_reduce", [](Trial& t) {
    using N = NumberOf<T>;
    const auto x = draw<N>(t, 300, 50);
    const auto extreme = t.flip() ? Extreme::min : Extreme::max;
    const auto value = t.room<T>(1);
    const auto index = t.room<std::int64_t>(1);
    t.call(primitives::on(t.device()).arg_reduce(t.put<T>(wide(x)), value, index, extreme));
    const auto place = extreme == Extreme::min ? std::min_element(x.begin(), x.end())
                                               : std::max_element(x.begin(), x.end());
    t.expect(value, wide(std::vector<N>{*place}));
    t.expect(index, wide(std::vector<std::int64_t>{place - x.begin()}));
  });
}

template <class T>
void add_segmented_reduce(Catalogue& catalogue) {
  catalogue.add<T>("segmented_reduce", [](Trial& t) {
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
void add_selections(Catalogue& catalogue) {
  catalogue.add<T>({"select_flagged", "select_flagged partition_flagged"}, [](Trial& t) {
    const auto x = draw<NumberOf<T>>(t, 300, 50);
    std::vector<std::uint8_t> flags(x.size());
    std::vector<NumberOf<T>> selected, others;
    for (std::size_t i = 0; i < x.size(); ++i) {
      flags[i] = t.flip() ? 1 : 0;
      (flags[i] != 0 ? selected : others).push_back(x[i]);
    }
    const auto dx = t.put<T>(wide(x));
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
  catalogue.add<T>({"runs", "unique run_length_encode"}, [](Trial& t) {
    const auto x = draw<NumberOf<T>>(t, 300, 2);
    std::vector<NumberOf<T>> runs;
    std::vector<std::int64_t> lengths;
    for (std::size_t i = 0; i < x.size(); ++i) {
      if (i == 0 || x[i] != x[i - 1]) runs.push_back(x[i]), lengths.push_back(0);
      lengths.back() += 1;
    }
    const auto n = std::ssize(x);
    const auto dx = t.put<T>(wide(x));
    const auto firsts = t.room<T>(n), of_lengths = t.room<T>(n);
    const auto dlengths = t.room<std::int64_t>(n);
    auto library = primitives::on(t.device());
    expect_count(t, library.unique(dx, firsts), runs.size());
    expect_count(t, library.run_length_encode(dx, of_lengths, dlengths), runs.size());
    for (const auto& of : {firsts, of_lengths}) t.expect(of, with_rest(runs, x.size()));
    t.expect(dlengths, with_rest(lengths, x.size()));
  });
}

template <class T>
void add_sums_of_runs(Catalogue& catalogue) {
  catalogue.add<T>({"sums of runs", "reduce_by_key"}, [](Trial& t) {
    const auto x = draw<T>(t, 300, 2);
    std::vector<std::uint32_t> values(x.size()), sums;
    std::vector<T> runs;
    for (std::size_t i = 0; i < x.size(); ++i) {
      values[i] = static_cast<std::uint32_t>(t.random.below(100));
      if (i == 0 || x[i] != x[i - 1]) runs.push_back(x[i]), sums.push_back(0);
      sums.back() += values[i];
    }
    const auto n = std::ssize(x);
    const auto keys = t.room<T>(n);
    const auto dsums = t.room<std::uint32_t>(n);
    expect_count(t,
                 primitives::on(t.device())
                     .reduce_by_key(t.put_values(x), t.put_values(values), keys, dsums),
                 runs.size());
    t.expect(keys, with_rest(runs, x.size()));
    t.expect(dsums, with_rest(sums, x.size()));
  });
}

template <class T>
void add_places(Catalogue& catalogue) {
  catalogue.add<T>({"places", "non_trivial_runs unique_by_key partition_three_way"}, [](Trial& t) {
    const auto x = draw<NumberOf<T>>(t, 300, 2);
    const auto n = std::ssize(x);
    std::vector<std::int64_t> offsets, lengths, values, firsts;
    std::vector<NumberOf<T>> keys, ways[3];
    std::vector<std::uint8_t> first_flags, second_flags;
    for (std::int64_t i = 0, begin = 0; i < n; ++i) {
      const auto at = static_cast<std::size_t>(i);
      values.push_back(i);
      first_flags.push_back(t.flip() ? 1 : 0);
      second_flags.push_back(t.flip() ? 1 : 0);
      ways[first_flags.back() != 0 ? 0 : second_flags.back() != 0 ? 1 : 2].push_back(x[at]);
      if (i == 0 || x[at] != x[at - 1]) begin = i, keys.push_back(x[at]), firsts.push_back(i);
      if (i == begin + 1) offsets.push_back(begin), lengths.push_back(1);
      if (i > begin) lengths.back() += 1;
    }
    const auto dx = t.put<T>(wide(x));
    const auto doffsets = t.room<std::int64_t>(n), dlengths = t.room<std::int64_t>(n),
               dfirsts = t.room<std::int64_t>(n);
    const auto dkeys = t.room<T>(n), first = t.room<T>(n), second = t.room<T>(n),
               rest = t.room<T>(n);
    auto library = primitives::on(t.device());
    expect_count(t, library.non_trivial_runs(dx, doffsets, dlengths), offsets.size());
    expect_count(t, library.unique_by_key(dx, t.put_values(values), dkeys, dfirsts), keys.size());
    const auto counts = library.partition_three_way(
        dx, t.put_values(first_flags), t.put_values(second_flags), first, second, rest);
    expect_count(t, counts.then([](const primitives::ThreeWayCounts& is) { return is.first; }),
                 ways[0].size());
    expect_count(t, counts.then([](const primitives::ThreeWayCounts& is) { return is.second; }),
                 ways[1].size());
    t.expect(doffsets, with_rest(offsets, x.size()));
    t.expect(dlengths, with_rest(lengths, x.size()));
    t.expect(dkeys, with_rest(keys, x.size()));
    t.expect(dfirsts, with_rest(firsts, x.size()));
    t.expect(first, with_rest(ways[0], x.size()));
    t.expect(second, with_rest(ways[1], x.size()));
    t.expect(rest, with_rest(ways[2], x.size()));
  });
}

template <class T>
void add_neighbours(Catalogue& catalogue) {
  catalogue.add<T>({"neighbours", "scan_by_key adjacent_difference"}, [](Trial& t) {
    using primitives::Neighbour;
    using primitives::Scanning;
    const auto x = draw<T>(t, 300, 2);
    const auto n = std::ssize(x);
    const bool exclusive = t.flip(), right = t.flip();
    std::vector<std::uint32_t> values(x.size()), sums;
    for (auto& value : values) value = static_cast<std::uint32_t>(t.random.below(100));
    std::uint32_t so_far = 5;
    for (std::size_t i = 0; i < x.size(); ++i) {
      if (i > 0 && x[i] != x[i - 1]) so_far = 5;
      sums.push_back(exclusive ? so_far : so_far + values[i]);
      so_far += values[i];
    }
    const auto results = t.room<std::uint32_t>(n);
    auto library = primitives::on(t.device());
    t.call(library.scan_by_key(t.put_values(x), t.put_values(values), results, ReduceOp::sum,
                               exclusive ? Scanning::exclusive : Scanning::inclusive, 5u));
    t.expect(results, wide(sums));
    std::vector<T> ordered(x.size());  // towards the neighbour, so that no difference is negative
    for (std::size_t i = 0; i < x.size(); ++i)
      ordered[i] = static_cast<T>((right ? x.size() - i : i + 1) * 3);
    std::vector<T> steps(x.size(), T(3));
    const auto y = t.room<T>(n);
    t.call(library.adjacent_difference(t.put_values(ordered), y,
                                       right ? Neighbour::right : Neighbour::left));
    t.expect(y, wide(steps));
  });
}

template <class T>
void add_histograms(Catalogue& catalogue) {
  catalogue.add<T>({"histograms", "histogram_even histogram_range"}, [](Trial& t) {
    using L = primitives::LevelOf<T>;
    const auto x = draw<T>(t, 300, 60);
    const std::vector<L> levels{L(0), L(10), L(20), L(30), L(40)};
    std::vector<std::uint64_t> counts(4);
    for (const auto value : x) {
      if (value < T(40)) ++counts[static_cast<std::size_t>(value) / 10];
    }
    const auto even = t.room<std::uint64_t>(4), range = t.room<std::uint64_t>(4);
    const auto dx = t.put_values(x);
    auto library = primitives::on(t.device());
    t.call(library.histogram_even(dx, even, L(0), L(40)));
    t.call(library.histogram_range(dx, t.put_values(levels), range));
    for (const auto& of : {even, range}) t.expect(of, wide(counts));
  });
}

/// What numbers of 16 bits have, too.
template <class... T>
void add_of_all_sizes(Catalogue& catalogue) {
  (add_reductions<T>(catalogue), ...);
  (add_selections<T>(catalogue), ...);
  (add_places<T>(catalogue), ...);
}
template <class... T>
void add_of_larger(Catalogue& catalogue) {
  add_of_all_sizes<T...>(catalogue);
  (add_segmented_reduce<T>(catalogue), ...);
  (add_sums_of_runs<T>(catalogue), ...);
  (add_neighbours<T>(catalogue), ...);
  (add_histograms<T>(catalogue), ...);
}

void add_calls_of_primitives(Catalogue& catalogue) {
  add_of_larger<std::int32_t, std::uint32_t, std::int64_t, std::uint64_t, float, double>(catalogue);
  add_of_all_sizes<Half, BFloat16>(catalogue);
  add_histograms<std::uint8_t>(catalogue);
}

const Subject kPrimitives("primitives", add_calls_of_primitives);

}  // namespace

}  // namespace troupe::catalogue
