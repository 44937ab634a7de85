// Measures recovery: device hosts, or the processes of ranks, suffer real faults while all ranks
// compute, or bits change, and what it takes until the world computes again is reported phase by
// phase.
//
//   mpirun -n N troupe-drill [--standby off|local|world] [--kinds kill,trap,...] [--json FILE]

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <functional>

#include <troupe/progress.hpp>
#include <troupe/troupe.hpp>

#include "drill.hpp"
#include "larger_worlds.hpp"
#include "options.hpp"
#include "rank_deaths.hpp"
#include "report.hpp"
#include "report_file.hpp"
#include "silent_attacks.hpp"

namespace troupe::drill {
namespace {

using Print = std::function<void(const std::string&)>;

/// Attacks on device hosts.
std::vector<Series> strike_device_hosts(Runtime& runtime, const Options& options,
                                        const Print& print) {
  Drill drill(runtime, options);
  std::vector<Series> all;
  Progress progress(
      "faults", static_cast<std::uint64_t>(options.repetitions) * options.attacks.size(), "faults");
  std::uint64_t suffered = 0;
  for (const auto& attack : options.attacks) {
    Series losses{attack, {}}, returns{attack, {}, true};
    for (std::int64_t i = 0; i < options.repetitions; ++i) {
      drill.settle();
      losses.outcomes.push_back(drill.suffer(attack));
      returns.outcomes.push_back(drill.came_back());
      progress.reach(++suffered);
    }
    for (auto* series : {&losses, &returns}) {
      if (series->back && !options.shrinks) continue;
      print(to_text(*series));
      all.push_back(std::move(*series));
    }
  }
  return all;
}

/// Attacks on the processes of ranks. Of one that dies nothing is printed twice: all is in the end.
std::vector<Series> strike_ranks(Runtime& runtime, const Options& options, const Print& print) {
  auto all = RankDeaths(runtime, options).suffer_all();
  for (const auto& series : all) print(to_text(series));
  return all;
}

/// Bits that change.
std::vector<Series> change_bits(Runtime& runtime, const Options& options, const Print& print) {
  auto all = SilentAttacks(runtime, options).suffer_all();
  for (const auto& series : all) print(to_text(series));
  return all;
}

int run(Runtime& runtime) {
  auto& world = runtime.world();
  const auto& info = runtime.device().info();
  const auto parsed = parse_options(runtime.config(), world.size(), info.engine);
  world.agree(parsed.ok() ? Result<void>() : Result<void>(parsed.error()));
  const auto& options = *parsed;
  world.agree(world.rank() == 0 ? app::check_report_file(options.json) : Result<void>());
  const Setting setting{.ranks = world.size(),
                        .engine = info.engine,
                        .device = info.name,
                        .policy = policy_of(runtime.config())};
  const Print print = [&](const std::string& text) {
    if (world.rank() != 0) return;
    std::fputs(text.c_str(), stdout);
    std::fflush(stdout);
  };
  if (world.deaths_of_rank() == 0) print(heading(setting, options));
  const auto all = options.ranks_die ? strike_ranks(runtime, options, print)
                   : options.silent  ? change_bits(runtime, options, print)
                                     : strike_device_hosts(runtime, options, print);
  Result<void> written;
  if (world.rank() == 0) {
    const auto simulated = simulate(all, options);
    if (!simulated.empty()) print(to_text(simulated));
    print(to_text(world.health_events()));
    if (!options.json.empty())
      written = write_json(all, simulated, world.health_events(), setting, options);
  }
  world.agree(written);
  const bool intact =
      std::all_of(all.begin(), all.end(), [](const Series& one) { return one.kept_intact(); });
  return intact ? kExitSuccess : kExitFailure;
}

}  // namespace
}  // namespace troupe::drill

int main(int argc, char** argv) {
  using namespace troupe;
  // This program's own defaults: it lives on what the budget is there to stop, or on its end, and
  // its table says what the log would.
  const auto asked = Config::parse(argc, argv, drill::option_specs());
  const bool shrinks = asked.ok() && asked->text("on-loss") == "shrink";
  ::setenv("TROUPE_RESTART_BUDGET", shrinks ? "0" : "100000", 0);
  ::setenv("TROUPE_REJOIN_AFTER", "100ms", 0);
  ::setenv("TROUPE_LOG_LEVEL", "error", 0);
  ::setenv("TROUPE_FLIGHT_DIR", "none", 0);
  const Program program{
      "troupe-drill",
      "Measures recovery: device hosts, or ranks, suffer real faults while all ranks compute; the "
      "table and "
      "the JSON file say how long each phase took and what was lost. Ends with 0 if every recovery "
      "succeeded and a buffer that nobody wrote came through all of them bit for bit.",
      drill::option_specs()};
  return run_program(argc, argv, program, drill::run, drill::check_options);
}
