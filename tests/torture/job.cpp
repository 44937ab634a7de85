#include "job.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <fstream>
#include <thread>

#include "leaks.hpp"
#include "members.hpp"
#include "program.hpp"
#include "runner.hpp"

namespace troupe::torture {
namespace {

using namespace std::chrono_literals;

/// "3,7-9" as a set.
Result<std::set<std::uint32_t>> parse_ids(const std::vector<std::string>& list) {
  std::set<std::uint32_t> ids;
  for (const auto& text : list) {
    unsigned first = 0, last = 0;
    char behind = 0;
    const int found = std::sscanf(text.c_str(), "%u-%u%c", &first, &last, &behind);
    if (found == 1 && text.find('-') == std::string::npos)
      last = first;
    else if (found != 2 || last < first)
      return Error{Errc::invalid, 0, "--leave-out: " + text + " is no number and no range"};
    for (auto id = first; id <= last; ++id) ids.insert(id);
  }
  return ids;
}

Result<std::set<RoundKind>> parse_rounds(const std::vector<std::string>& list) {
  std::set<RoundKind> kinds;
  for (const auto& text : list) {
    std::size_t i = 0;
    while (i < kRoundKindCount && text != to_string(static_cast<RoundKind>(i))) ++i;
    if (i == kRoundKindCount)
      return Error{Errc::invalid, 0, "--rounds: there are no rounds " + text};
    kinds.insert(static_cast<RoundKind>(i));
  }
  return kinds;
}

/// Ends the job where there is no progress: in host calls of MPI and within World::run nothing has
/// a deadline that a program could set.
class Watchdog {
 public:
  Watchdog(const Account& account, std::chrono::nanoseconds limit,
           std::function<void(const std::string&)> told)
      : thread_([&account, limit, told = std::move(told)](const std::stop_token& stop) {
          auto seen = account.progress();
          std::chrono::nanoseconds quiet{};
          while (!stop.stop_requested()) {
            std::this_thread::sleep_for(kSlice);
            quiet += kSlice;
            if (const auto now = account.progress(); now != seen) {
              seen = now, quiet = {};
            } else if (quiet > limit) {
              told(fmt::format("no progress for {} s in {}",
                               std::chrono::duration<double>(limit).count(), account.where()));
            }
          }
        }) {}

 private:
  std::jthread thread_;
};

/// Says what is wrong, and ends this rank, and so the job.
[[noreturn]] void report(const World& world, const std::string& replay, const std::string& what) {
  const auto text = fmt::format("FINDING on rank {} of {}: {}\nreplay: {}\n", world.rank(),
                                world.size(), what, replay);
  std::fputs(text.c_str(), stderr);
  std::fflush(stderr);
  // The other ranks may be waiting for this one in the middle of anything: nothing is taken down in
  // order.
  std::_Exit(kExitFailure);
}

/// What was done: one line of rank 0.
void print_summary(World& world, std::uint64_t first, std::uint64_t last, const Account& account,
                   std::chrono::duration<double> time) {
  std::int64_t operations = 0;
  for (const auto one : world.gather_values(account.operations())) operations += one;
  if (world.rank() != 0) return;
  std::size_t losses = 0, left = 0, returns = 0;
  const auto recoveries = world.recoveries();
  for (const auto& recovery : recoveries) {
    losses += recovery.kind == "failed" ? 1 : 0;
    left += recovery.kind == "withdrawn" ? 1 : 0;
    returns += recovery.kind == "rejoin" ? 1 : 0;
  }
  fmt::print(
      "seeds {} to {} on {} ranks: {} operations ({:.0f} per second), {} recoveries, {} GPUs left, "
      "{} ranks lost, {} back; nothing wrong\n",
      first, last, world.size(), operations, static_cast<double>(operations) / time.count(),
      recoveries.size(), left, losses, returns);
  std::fflush(stdout);
}

/// The command line that brings the same program again.
std::string replay_line(const Config& config, int ranks, std::uint64_t seed) {
  auto line = fmt::format("mpirun -n {} troupe-torture --seed {} --programs 1", ranks, seed);
  for (const auto& option : this_program().options) {
    if (option.name == "seed" || option.name == "programs" || option.name == "minutes" ||
        option.name == "ranks" || option.name == "reduce")
      continue;
    if (config.given(option.name) && !config.text(option.name).empty())
      line += fmt::format(" --{} {}", option.name, config.text(option.name));
  }
  for (const auto& option : runtime_options()) {
    const auto& source = config.source(option.name);
    if (option.name != "seed" && source == "command line" && !config.text(option.name).empty())
      line += fmt::format(" --{} {}", option.name, config.text(option.name));
  }
  return line;
}

}  // namespace

troupe::Program this_program() {
  return {"troupe-torture",
          "Random programs against an oracle, with faults: one seed makes the program, the faults "
          "and the verdict. Ends with 0 if nothing was wrong.",
          {{"operations", OptionType::integer, "1000", "N", "operations of each program", {}, "1"},
           {"programs",
            OptionType::integer,
            "1",
            "N",
            "programs of a job, one after the other: of the seed, the next one, ...",
            {},
            "1"},
           {"minutes", OptionType::real, "0", "N", "go on with further seeds for so long", {}, "0"},
           {"faults",
            OptionType::text,
            "on",
            "LEVEL",
            "what device hosts and ranks suffer: off, nothing; on, faults in half of the programs, "
            "and failing calls of libraries in the others; many, several at once in every round",
            {"off", "on", "many"}},
           {"rounds", OptionType::list, "", "KIND,...",
            "only rounds of these kinds: free, run, held, versions, failing, slabs, pieces, "
            "recorded, distributed, helped; with "
            "--on-loss shrink all are of the kind members"},
           {"collectives", OptionType::flag, "on", "on|off", "let programs have collectives"},
           {"tokens", OptionType::flag, "on", "on|off",
            "let ranks use one another's buffers and devices"},
           {"leave-out", OptionType::list, "", "ID,FIRST-LAST,...",
            "operations of the program that are not carried out"},
           {"deadline", OptionType::duration, "60s", "TIME",
            "what takes longer does not happen at all"},
           {"folder", OptionType::text, "", "DIR",
            "where runs save their states; without mpirun each job has a folder of its own there"},
           {"resume", OptionType::flag, "off", "on|off",
            "runs go on from what a job that was killed has saved in the folder"},
           {"disk-fails", OptionType::flag, "off", "on|off",
            "the folder is full or read-only: states need not come to disk"},
           {"descriptors",
            OptionType::integer,
            "0",
            "N",
            "the soft limit of each rank's file descriptors; 0: as it is",
            {},
            "0"},
           {"ranks",
            OptionType::integer,
            "0",
            "N",
            "without mpirun: ranks of each job; 0: 1 to 8, by the seed",
            {},
            "0",
            "8"},
           {"reduce", OptionType::flag, "off", "on|off",
            "without mpirun: make a program that fails smaller"},
           {"spoil",
            OptionType::integer,
            "-1",
            "N",
            "falsify the Nth download: shows that it is found",
            {},
            "-1"},
           {"leak", OptionType::flag, "off", "on|off",
            "each program keeps a descriptor open: shows that it is found"}}};
}

Result<void> check_options(const Config& config) {
  if (const auto ids = parse_ids(config.list("leave-out")); !ids) return ids.error();
  const auto kinds = parse_rounds(config.list("rounds"));
  if (!kinds) return kinds.error();
  const bool respawns = config.text("on-rank-loss") == "respawn";
  const bool shrinks = config.text("on-loss") == "shrink" || respawns;
  if (kinds->contains(RoundKind::members) && !shrinks)
    return Error{Errc::invalid, 0,
                 "--rounds members: with --on-loss shrink, or --on-rank-loss respawn"};
  // A rank that is out of the world would not learn whether there is another program.
  if (shrinks && config.real("minutes") > 0)
    return Error{
        Errc::invalid, 0,
        "--minutes: with --on-loss shrink, or --on-rank-loss respawn, only without mpirun"};
  return {};
}

Recipe recipe_of(const Config& config, int ranks, const std::string& engine) {
  const auto faults = config.text("faults");
  const bool respawns = config.text("on-rank-loss") == "respawn";
  std::vector<const CallInfo*> calls;
  for (const auto& call : Catalogue::all().calls()) calls.push_back(&call);
  return {.calls = std::move(calls),
          .ranks = ranks,
          .operations = config.integer("operations"),
          .engine = engine,
          .faults = faults == "off"    ? Faults::none
                    : faults == "many" ? Faults::many
                                       : Faults::some,
          .isolated = config.text("isolation") == "process",
          .shrinks = config.text("on-loss") == "shrink" || respawns,
          .respawns = respawns,
          .leaves_failing = config.text("on-health") == "shrink",
          .collectives = config.flag("collectives"),
          .tokens = config.flag("tokens"),
          .rounds = parse_rounds(config.list("rounds")).take(),
          .left_out = parse_ids(config.list("leave-out")).take(),
          .missing = {}};
}

/// Whether all ranks are on one host, for the kernel, the network and NCCL: then their device hosts
/// compare what they call.
bool on_one_host(World& world) {
  std::string boot;
  std::ifstream("/proc/sys/kernel/random/boot_id") >> boot;
  std::error_code ignored;
  const auto network = std::filesystem::read_symlink("/proc/self/ns/net", ignored).string();
  const char* const named = std::getenv("NCCL_HOSTID");
  const auto hosts = world.gather_text(boot + network + (named != nullptr ? named : ""));
  return std::all_of(hosts.begin(), hosts.end(),
                     [&](const auto& host) { return host == hosts[0]; });
}

/// Kinds of operations of which any rank has no library: programs go without them.
std::set<Kind> missing_anywhere(World& world, const std::set<Kind>& here) {
  std::array<bool, kKindCount> mine{};
  for (const auto kind : here) mine[static_cast<std::size_t>(kind)] = true;
  std::set<Kind> missing;
  for (const auto& kinds : world.gather_values(mine)) {
    for (std::size_t kind = 0; kind < kKindCount; ++kind) {
      if (kinds[kind]) missing.insert(static_cast<Kind>(kind));
    }
  }
  return missing;
}

int run_job(Runtime& runtime) {
  auto& world = runtime.world();
  const auto& config = runtime.config();
  const auto first = static_cast<std::uint64_t>(config.integer("seed"));
  const auto& checks = config.list("check");
  const auto has = [&](const char* what) {
    return std::find(checks.begin(), checks.end(), what) != checks.end();
  };
  const Conduct conduct{.deadline = config.duration("deadline"),
                        .folder = config.text("folder"),
                        .resume = config.flag("resume"),
                        .disk_fails = config.flag("disk-fails"),
                        .collectives = config.flag("collectives"),
                        .rejoins = config.duration("rejoin-after").count() != 0,
                        .verify = config.integer("verify"),
                        .guarded = has("writes")};
  auto recipe = recipe_of(config, world.size(), runtime.device().info().engine);
  recipe.checks = has("collectives");
  recipe.compares = recipe.checks || on_one_host(world);
  Account account(config.integer("spoil"));
  Runner runner(runtime, conduct, account);
  Members members(runtime, conduct, account, runner.random(), runner.own_code(), runner.calls());
  std::atomic<std::uint64_t> seed{first};
  const auto tell = [&, ranks = world.size()](const std::string& what) {
    report(world, replay_line(config, ranks, seed), what);
  };
  const Watchdog watchdog(account, 3 * conduct.deadline, tell);
  Leaks leaks(runtime, conduct.deadline);
  auto missing = leaks.missing();
  missing.insert(runner.own_code().missing().begin(), runner.own_code().missing().end());
  recipe.missing = missing_anywhere(world, missing);
  const auto start = Clock::now();
  const auto until = start + std::chrono::duration<double>(60 * config.real("minutes"));
  try {
    for (;;) {
      const auto program = generate(seed, recipe);
      recipe.shrinks ? members.run(program) : runner.run(program);
      account.at(fmt::format("seed {}: looking for what it has left open", seed.load()));
      if (config.flag("leak")) (void)::open("/dev/null", O_RDONLY | O_CLOEXEC);
      // Ranks that come back are connected anew, when it is needed: what is open says nothing. And
      // they could not go on with a second run.
      if (recipe.respawns) break;
      leaks.check();
      bool more = seed + 1 - first < static_cast<std::uint64_t>(config.integer("programs"));
      // Clocks differ: rank 0's decides. In a world that shrinks there is none (see check_options).
      if (!recipe.shrinks) more = world.gather_values(more || Clock::now() < until)[0];
      if (!more) break;
      ++seed;
    }
  } catch (const CollectiveException& e) {
    // The restart budget may be part of what is tried; the status says what became of the job.
    if (e.code() == Errc::budget_exhausted || e.code() == Errc::requeue) throw;
    tell(fmt::format("an error that nobody expects in {}: {}", account.where(), e.what()));
  } catch (const Exception& e) {
    tell(fmt::format("an error that nobody expects in {}: {}", account.where(), e.what()));
  } catch (const Finding& e) {
    tell(fmt::format("{}, in {}, after {} operations of this rank", e.what(), account.where(),
                     account.operations()));
  }
  if (!world.spectator()) print_summary(world, first, seed, account, Clock::now() - start);
  return kExitSuccess;
}

}  // namespace troupe::torture
