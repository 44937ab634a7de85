#include "job.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>
#include <exception>
#include <thread>

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
          auto since = Clock::now();
          while (!stop.stop_requested()) {
            std::this_thread::sleep_for(100ms);
            if (const auto now = account.progress(); now != seen) {
              seen = now, since = Clock::now();
            } else if (Clock::now() - since > limit) {
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

/// The command line that brings the same program again.
std::string replay_line(const Runtime& runtime, std::uint64_t seed) {
  const auto& config = runtime.config();
  std::string line = fmt::format("mpirun -n {} troupe-torture --seed {} --programs 1",
                                 const_cast<Runtime&>(runtime).world().size(), seed);
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
           {"faults", OptionType::flag, "on", "on|off", "let device hosts and ranks suffer faults"},
           {"rounds", OptionType::list, "", "KIND,...",
            "only rounds of these kinds: free, run, held, versions, failing, slabs, pieces"},
           {"collectives", OptionType::flag, "on", "on|off", "let programs have collectives"},
           {"tokens", OptionType::flag, "on", "on|off",
            "let ranks use one another's buffers and devices"},
           {"leave-out", OptionType::list, "", "ID,FIRST-LAST,...",
            "operations of the program that are not carried out"},
           {"deadline", OptionType::duration, "60s", "TIME",
            "what takes longer does not happen at all"},
           {"folder", OptionType::text, "", "DIR", "where runs save their states"},
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
            "-1"}}};
}

Result<void> check_options(const Config& config) {
  if (const auto ids = parse_ids(config.list("leave-out")); !ids) return ids.error();
  if (const auto kinds = parse_rounds(config.list("rounds")); !kinds) return kinds.error();
  return {};
}

Recipe recipe_of(const Config& config, int ranks, const std::string& engine) {
  return {.ranks = ranks,
          .operations = config.integer("operations"),
          .engine = engine,
          .faults = config.flag("faults"),
          .isolated = config.text("isolation") == "process",
          .collectives = config.flag("collectives"),
          .tokens = config.flag("tokens"),
          .rounds = parse_rounds(config.list("rounds")).take(),
          .left_out = parse_ids(config.list("leave-out")).take()};
}

int run_job(Runtime& runtime) {
  auto& world = runtime.world();
  const auto& config = runtime.config();
  const auto first = static_cast<std::uint64_t>(config.integer("seed"));
  const auto start = Clock::now();
  const Conduct conduct{.deadline = config.duration("deadline"),
                        .folder = config.text("folder"),
                        .resume = config.flag("resume"),
                        .disk_fails = config.flag("disk-fails"),
                        .collectives = config.flag("collectives")};
  const auto recipe = recipe_of(config, world.size(), runtime.device().info().engine);
  Account account(config.integer("spoil"));
  Runner runner(runtime, conduct, account);
  std::atomic<std::uint64_t> seed{first};
  const auto tell = [&](const std::string& what) {
    report(world, replay_line(runtime, seed), what);
  };
  const Watchdog watchdog(account, 3 * conduct.deadline, tell);
  const auto until = start + std::chrono::duration<double>(60 * config.real("minutes"));
  try {
    for (;;) {
      runner.run(generate(seed, recipe));
      const bool more = seed + 1 - first < static_cast<std::uint64_t>(config.integer("programs")) ||
                        Clock::now() < until;
      // Clocks differ: rank 0's decides.
      if (!world.gather_values(more)[0]) break;
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
  std::int64_t operations = 0;
  for (const auto one : world.gather_values(account.operations())) operations += one;
  const auto seconds = std::chrono::duration<double>(Clock::now() - start).count();
  if (world.rank() == 0) {
    std::printf(
        "seeds %llu to %llu on %d ranks: %lld operations (%.0f per second), %zu "
        "recoveries; nothing wrong\n",
        static_cast<unsigned long long>(first), static_cast<unsigned long long>(seed.load()),
        world.size(), static_cast<long long>(operations), static_cast<double>(operations) / seconds,
        world.recoveries().size());
    std::fflush(stdout);
  }
  return kExitSuccess;
}

}  // namespace troupe::torture
