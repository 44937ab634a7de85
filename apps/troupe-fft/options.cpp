#include "options.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>

#include "program_options.hpp"

namespace troupe::fft3 {
namespace {

using app::bad;
using app::lettered;
using app::on_the_way;

constexpr std::int64_t kMostPoints = std::int64_t{1} << 20;  // of an axis

Result<Triple> parse_triple(const char* option, const std::vector<std::string>& words,
                            bool one_will_do) {
  if (words.size() != 3 && !(one_will_do && words.size() == 1))
    return bad(option, one_will_do ? "it takes one number, or three: X,Y,Z"
                                   : "it takes three numbers: X,Y,Z");
  Triple triple{};
  for (std::size_t axis = 0; axis < 3; ++axis) {
    const auto& word = words[words.size() == 1 ? 0 : axis];
    const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), triple[axis]);
    if (error != std::errc{} || end != word.data() + word.size() || triple[axis] < 1 ||
        triple[axis] > kMostPoints)
      return bad(option, fmt::format("'{}' is no number from 1 to {}", word, kMostPoints));
  }
  return triple;
}

}  // namespace

std::vector<OptionSpec> option_specs() {
  using enum OptionType;
  return {
      {"kind",
       text,
       "c2c",
       "c2c|r2c",
       "transforms of a complex or of a real array",
       {"c2c", "r2c"}},
      {"precision", text, "double", "float|double", "of the numbers", {"float", "double"}},
      {"points", list, "64", "N|X,Y,Z", "extents of the whole array"},
      on_the_way(lettered('n', {"nruns",
                                integer,
                                "5",
                                "N",
                                "runs, each a transform and its inverse",
                                {},
                                "1",
                                "1000000"})),
      {"slabs", flag, "off", "on|off", "each rank has planes of the array"},
      {"pencils", flag, "off", "on|off",
       "each rank has columns of the array; default: slabs where there are enough planes"},
      {"ingrid", list, "", "X,Y,1", "ranks along each axis of the array; the last is 1"},
      {"pieces",
       integer,
       "0",
       "N",
       "slabs are exchanged in so many; 0: as many as their size suggests",
       {},
       "0",
       "64"},
      on_the_way(
          {"commit-every", integer, "10", "N", "runs from commit to commit of the state", {}, "1"}),
      on_the_way({"json", text, "", "FILE", "write the report as JSON"}),
      fault_option(),
  };
}

Result<Options> parse_options(const Config& config) {
  Options options;
  const auto points = parse_triple("points", config.list("points"), true);
  if (!points) return points.error();
  options.points = *points;
  options.real = config.text("kind") == "r2c";
  options.single = config.text("precision") == "float";
  options.runs = config.integer("nruns");
  options.commit_every = config.integer("commit-every");
  options.pieces = static_cast<int>(config.integer("pieces"));
  options.json = config.text("json");
  const bool slabs = config.flag("slabs"), pencils = config.flag("pencils");
  if (!config.list("ingrid").empty()) {
    const auto grid = parse_triple("ingrid", config.list("ingrid"), false);
    if (!grid) return grid.error();
    if ((*grid)[2] != 1) return bad("ingrid", "all of the last axis is on one rank: X,Y,1");
    options.ingrid = *grid;
  }
  if (slabs && pencils) return bad("slabs", "--pencils is given too");
  if (options.ingrid && (slabs || pencils))
    return bad("ingrid", fmt::format("--{} is given too", slabs ? "slabs" : "pencils"));
  options.shape = slabs ? Shape::slabs : pencils ? Shape::pencils : Shape::automatic;
  auto faults = ordered_faults(config);
  if (!faults) return faults.error();
  options.faults = std::move(*faults);
  for (const auto& fault : options.faults) {
    if (fault.iteration >= options.runs)
      return bad("fault",
                 fmt::format("there is no run {} among {}", fault.iteration, options.runs));
  }
  return options;
}

Result<Triple> grid_of(const Options& options, int ranks) {
  if (options.ingrid) {
    const auto& grid = *options.ingrid;
    if (grid[0] * grid[1] == ranks) return grid;
    return bad("ingrid", fmt::format("{} x {} are not {} rank{}", grid[0], grid[1], ranks,
                                     ranks == 1 ? "" : "s"));
  }
  const bool enough = ranks <= std::min(options.points[0], options.points[1]);
  if (options.shape == Shape::slabs || (options.shape == Shape::automatic && enough))
    return Triple{ranks, 1, 1};
  std::int64_t rows = 1;  // the largest divisor up to the root
  for (std::int64_t divisor = 1; divisor * divisor <= ranks; ++divisor)
    if (ranks % divisor == 0) rows = divisor;
  return Triple{rows, ranks / rows, 1};
}

double Options::elements() const {
  return static_cast<double>(points[0]) * static_cast<double>(points[1]) *
         static_cast<double>(points[2]);
}

double Options::flops() const {
  return (real ? 2.5 : 5.0) * elements() * std::log2(elements());
}

}  // namespace troupe::fft3
