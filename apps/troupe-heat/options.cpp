#include "options.hpp"

#include <fmt/format.h>

#include <charconv>
#include <limits>

#include "program_options.hpp"

namespace troupe::heat {
namespace {

using app::bad;
using app::on_the_way;

/// Of one axis: so many that all points of a rank are counted in 31 bits, as kernels do.
constexpr std::int64_t kMostPoints = 1290;

Result<Triple> parse_points(const std::vector<std::string>& words) {
  if (words.size() != 1 && words.size() != 3)
    return bad("points", "it takes one number, or three: X,Y,Z");
  Triple points{};
  for (std::size_t axis = 0; axis < 3; ++axis) {
    const auto& word = words[words.size() == 1 ? 0 : axis];
    const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), points[axis]);
    if (error != std::errc{} || end != word.data() + word.size() || points[axis] < 1 ||
        points[axis] > kMostPoints)
      return bad("points", fmt::format("'{}' is no number from 1 to {}", word, kMostPoints));
  }
  return points;
}

}  // namespace

std::vector<OptionSpec> option_specs() {
  using enum OptionType;
  return {
      {"points", list, "64", "N|X,Y,Z", "points of each rank, along each axis"},
      on_the_way({"steps", integer, "200", "N", "steps in time", {}, "1"}),
      {"together",
       integer,
       "10",
       "N",
       "steps that are recorded as one sequence; even, and a divisor of --steps",
       {},
       "2",
       "40"},
      on_the_way({"commit-every",
                  integer,
                  "100",
                  "N",
                  "steps from commit to commit of the state; a multiple of --together",
                  {},
                  "2"}),
      {"dtype", text, "f64", "f32|f64", "type of the numbers", {"f32", "f64"}},
      {"courant",
       real,
       "0.125",
       "C",
       "diffusivity times time step, over the square of the distance of points",
       {},
       "0",
       "0.1666666"},
      on_the_way({"record", flag, "on", "on|off",
                  "run recorded sequences, instead of the calls one by one"}),
      on_the_way({"json", text, "", "FILE", "write the report as JSON"}),
      fault_option(),
  };
}

Result<Options> parse_options(const Config& config) {
  Options options;
  const auto points = parse_points(config.list("points"));
  if (!points) return points.error();
  options.points = *points;
  options.steps = config.integer("steps");
  options.together = config.integer("together");
  options.commit_every = config.integer("commit-every");
  options.dtype = config.text("dtype") == "f32" ? DType::f32 : DType::f64;
  options.courant = config.real("courant");
  options.record = config.flag("record");
  options.json = config.text("json");
  auto faults = ordered_faults(config);
  if (!faults) return faults.error();
  options.faults = std::move(*faults);
  if (options.together % 2 != 0) return bad("together", "it is to be even");
  for (const auto& [name, value] :
       {std::pair{"steps", options.steps}, std::pair{"commit-every", options.commit_every}}) {
    if (value % options.together != 0)
      return bad(name, fmt::format("{} is no multiple of --together {}", value, options.together));
  }
  for (const auto& fault : options.faults) {
    if (fault.iteration >= options.steps)
      return bad("fault",
                 fmt::format("there is no step {} among {}", fault.iteration, options.steps));
  }
  return options;
}

}  // namespace troupe::heat
