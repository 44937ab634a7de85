#include "options.hpp"

#include "stencil.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <chrono>

namespace troupe::cg {
namespace {

Error bad(const std::string& option, const std::string& value, const std::string& why) {
  return {Errc::invalid, 0, fmt::format("--{} {}: {}", option, value, why)};
}

bool whole(std::string_view text, std::int64_t& value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc{} && end == text.data() + text.size();
}

Result<std::array<std::int64_t, 3>> parse_stencil(const std::string& text) {
  std::vector<std::int64_t> points;
  for (std::size_t at = 0; at <= text.size();) {
    const auto comma = std::min(text.find(',', at), text.size());
    std::int64_t value = 0;
    if (!whole(std::string_view(text).substr(at, comma - at), value) || value < 1) {
      return bad("stencil", text, "wants NX or NX,NY,NZ, positive whole numbers");
    }
    points.push_back(value);
    at = comma + 1;
  }
  if (points.size() == 1) return std::array{points[0], points[0], points[0]};
  if (points.size() != 3) return bad("stencil", text, "wants one number or three");
  return std::array{points[0], points[1], points[2]};
}

/// An option that does not change what the state of an iteration is.
OptionSpec on_the_way(OptionSpec option) {
  option.shapes_result = false;
  return option;
}

/// What HPCG asks of a rating run, and what does not go with one.
Result<void> check_hpcg(const Config& config, const Options& options) {
  if (!options.hpcg) {
    return config.given("time") ? bad("time", config.text("time"), "goes with --hpcg alone")
                                : Result<void>();
  }
  if (!options.matrix.empty()) return Error{Errc::invalid, 0, "--hpcg wants --stencil"};
  const auto& points = options.stencil;
  const auto [least, most] = std::minmax_element(points.begin(), points.end());
  for (const auto number : points) {
    if (number < 16 || number % 8 != 0)
      return bad("stencil", config.text("stencil"),
                 "--hpcg wants multiples of 8, from 16 on, so that there are four grids");
  }
  if (8 * *least < *most)
    return bad("stencil", config.text("stencil"), "--hpcg wants a ratio of sides up to 8");
  const auto unless = [&](const char* option, bool fits, const char* why) -> Result<void> {
    if (!config.given(option) || fits) return {};
    return bad(option, config.text(option), why);
  };
  constexpr auto kOwn = "does not go with --hpcg, whose rules decide on it";
  for (const auto& checked :
       {unless("precond", options.preconditioner == Preconditioner::multigrid, kOwn),
        unless("dtype", options.dtype == DType::f64, "--hpcg wants f64"),
        unless("tol", false, kOwn), unless("max-iter", false, kOwn),
        unless("check-every", false, kOwn),
        unless("checkpoint-dir", config.text("checkpoint-dir").empty(),
               "--hpcg times one run, which goes on from no saved state"),
        unless("on-loss", config.text("on-loss") != "shrink",
               "--hpcg rates as many devices at the end as at the begin")}) {
    if (!checked.ok()) return checked;
  }
  return {};
}

}  // namespace

std::string_view to_string(Preconditioner preconditioner) noexcept {
  switch (preconditioner) {
    case Preconditioner::none: return "none";
    case Preconditioner::jacobi: return "jacobi";
    case Preconditioner::multigrid: return "mg";
  }
  return "unknown";
}

std::vector<OptionSpec> option_specs() {
  return {
      {"matrix", OptionType::file, "", "FILE.mtx",
       "solve with this Matrix Market file (symmetric positive definite)"},
      {"stencil", OptionType::text, "", "NX[,NY,NZ]",
       "solve HPCG's 27-point operator, so many points per rank"},
      {"precond",
       OptionType::text,
       "none",
       "P",
       "preconditioner; mg: HPCG's multigrid cycle, with --stencil and even numbers of points",
       {"none", "jacobi", "mg"}},
      {"dtype", OptionType::text, "f64", "T", "arithmetic", {"f64", "f32"}},
      on_the_way(
          {"tol", OptionType::real, "1e-8", "EPS", "relative residual to reach", {}, "0", "1"}),
      on_the_way({"max-iter",
                  OptionType::integer,
                  "10000",
                  "N",
                  "give up after so many iterations",
                  {},
                  "1"}),
      {"check-every",
       OptionType::integer,
       "10",
       "K",
       "iterations between looks at the residual",
       {},
       "1",
       "10000"},
      on_the_way({"commit-every",
                  OptionType::integer,
                  "50",
                  "K",
                  "iterations between commits of the state",
                  {},
                  "1"}),
      fault_option(),
      on_the_way({"history", OptionType::flag, "off", "",
                  "report the residual at every check; with --hpcg: the reference's"}),
      on_the_way(
          {"record", OptionType::flag, "on", "", "run each iteration as one recorded sequence"}),
      {"hpcg", OptionType::flag, "off", "",
       "rate the devices by HPCG's rules; with --stencil, multiples of 8 from 16 on"},
      on_the_way({"time", OptionType::duration, "60s", "TIME",
                  "with --hpcg: how long the timed sets take; 1800s for a result that counts; 0: "
                  "one set"}),
      on_the_way({"json", OptionType::text, "", "FILE", "write the report as JSON"}),
  };
}

Result<Options> parse_options(const Config& config) {
  Options options;
  options.matrix = config.text("matrix");
  const auto& stencil = config.text("stencil");
  if (options.matrix.empty() == stencil.empty()) {
    return Error{Errc::invalid, 0, "give either --matrix FILE.mtx or --stencil NX[,NY,NZ]"};
  }
  if (!stencil.empty()) {
    auto points = parse_stencil(stencil);
    if (!points) return points.error();
    options.stencil = *points;
  }
  const auto& precond = config.text("precond");
  for (const auto choice : {Preconditioner::jacobi, Preconditioner::multigrid}) {
    if (precond == to_string(choice)) options.preconditioner = choice;
  }
  if (options.preconditioner == Preconditioner::multigrid) {
    if (stencil.empty()) return bad("precond", precond, "wants --stencil, whose grids it knows");
    if (!has_coarser({options.stencil[0], options.stencil[1], options.stencil[2]})) {
      return bad(
          "precond", precond,
          "wants even numbers of points per rank and axis, from 4 on: --stencil has " + stencil);
    }
  }
  options.dtype = config.text("dtype") == "f32" ? DType::f32 : DType::f64;
  options.tolerance = config.real("tol");
  options.max_iterations = config.integer("max-iter");
  options.check_every = config.integer("check-every");
  options.commit_every = config.integer("commit-every");
  auto faults = ordered_faults(config);
  if (!faults) return faults.error();
  options.faults = std::move(*faults);
  options.history = config.flag("history");
  options.record = config.flag("record");
  options.json = config.text("json");
  options.hpcg = config.flag("hpcg");
  options.seconds = std::chrono::duration<double>(config.duration("time")).count();
  options.seed = static_cast<std::uint64_t>(config.integer("seed"));
  if (const auto checked = check_hpcg(config, options); !checked.ok()) return checked.error();
  if (options.hpcg) options.preconditioner = Preconditioner::multigrid;
  return options;
}

}  // namespace troupe::cg
