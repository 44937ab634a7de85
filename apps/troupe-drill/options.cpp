#include "options.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>

namespace troupe::drill {
namespace {

using memory::FaultKind;

const std::string kNoPhase = "none";
const std::string kAll = "all";

constexpr SilentFault kSilentAttacks[] = {SilentFault::flip, SilentFault::stray_write};

std::vector<std::string> kind_names() {
  std::vector<std::string> names;
  for (std::size_t i = 0; i < memory::kFaultKindCount; ++i)
    names.emplace_back(to_string(static_cast<FaultKind>(i)));
  for (const auto death : kRankDeaths) names.emplace_back(to_string(death));
  for (const auto silent : kSilentAttacks) names.emplace_back(to_string(silent));
  return names;
}

std::vector<std::string> phase_names() {
  std::vector<std::string> names{kNoPhase};
  names.insert(names.end(), std::begin(kRecoveryPhases), std::end(kRecoveryPhases));
  return names;
}

bool standby_world(const Config& config) {
  return config.text("standby") == "world" || config.text("standby") == "on";
}

Error bad(const std::string& option, const std::string& why) {
  return {Errc::invalid, 0, fmt::format("--{}: {}", option, why)};
}

std::optional<int> whole(std::string_view text) {
  int value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size() || value < 0) return std::nullopt;
  return value;
}

std::optional<RankDeath> death_of(const std::string& name) {
  for (const auto death : kRankDeaths) {
    if (name == to_string(death)) return death;
  }
  return std::nullopt;
}

/// A drill of another sort has no phases, and no larger worlds.
Result<void> check_alone(const Config& config) {
  const auto& phases = config.list("phases");
  if (!phases.empty() && phases != std::vector{kNoPhase})
    return bad("phases", "only with faults of device hosts");
  if (!config.list("world-size").empty())
    return bad("world-size", "only with faults of device hosts");
  return {};
}

/// Attacks that change bits; empty: there are others. Errors: invalid, if it is both.
Result<std::vector<SilentFault>> parse_silent(const Config& config) {
  const auto& names = config.list("kinds");
  std::vector<SilentFault> faults;
  for (const auto& name : names) {
    for (const auto silent : kSilentAttacks)
      if (name == to_string(silent)) faults.push_back(silent);
  }
  if (faults.empty()) return faults;
  if (faults.size() != names.size())
    return bad("kinds", "flip and stray-write want a drill of their own");
  if (std::find(faults.begin(), faults.end(), SilentFault::flip) != faults.end() &&
      config.integer("verify") != 1)
    return bad("kinds", "flip: with --verify 1");
  if (auto alone = check_alone(config); !alone) return alone.error();
  return faults;
}

/// Attacks on the processes of ranks; empty: there are others. Errors: invalid, if it is both.
Result<std::vector<RankDeath>> parse_deaths(const Config& config) {
  const auto& names = config.list("kinds");
  std::vector<RankDeath> deaths;
  for (const auto& name : names) {
    if (const auto death = death_of(name)) deaths.push_back(*death);
  }
  if (deaths.empty()) return deaths;
  if (deaths.size() != names.size())
    return bad("kinds", "rank, node and stop want a drill of their own");
  if (config.text("on-rank-loss") != "respawn")
    return bad("kinds", fmt::format("{}: with --on-rank-loss respawn", to_string(deaths[0])));
  if (auto alone = check_alone(config); !alone) return alone.error();
  return deaths;
}

/// A place is used up by each loss of a node.
Result<void> check_spares(const Config& config, const Options& options) {
  const auto nodes = std::count_if(options.attacks.begin(), options.attacks.end(),
                                   [](auto& one) { return one.death == RankDeath::node; });
  const auto wanted = nodes * options.repetitions * std::ssize(options.victims);
  if (config.integer("spares") >= wanted) return {};
  return bad("spares", fmt::format("so many nodes are lost: {}", wanted));
}

Result<std::vector<FaultKind>> parse_kinds(const Config& config, const std::string& engine) {
  using enum FaultKind;
  const auto& names = config.list("kinds");
  if (names.empty() && engine == "cuda")
    return std::vector{kill, illegal_address, trap, assertion, misaligned};
  if (names.empty()) return std::vector{kill};
  std::vector<FaultKind> kinds;
  for (const auto& name : names) {
    const auto kind = *memory::fault_kind(name);  // one of the choices
    if (needs_gpu(kind) && engine != "cuda")
      return bad("kinds", fmt::format("{} happens on GPUs only, the engine is {}", name, engine));
    kinds.push_back(kind);
  }
  return kinds;
}

Result<std::vector<int>> parse_victims(const Config& config, int ranks) {
  const auto& names = config.list("victim");
  std::vector<int> victims;
  if (names.empty()) return std::vector{ranks > 1 ? 1 : 0};
  for (const auto& name : names) {
    const auto rank = whole(name);
    if (name == kAll) {
      for (int i = 0; i < ranks; ++i) victims.push_back(i);
    } else if (rank.has_value() && *rank < ranks) {
      victims.push_back(*rank);
    } else {
      return bad("victim", fmt::format("there is no rank {} among {}", name, ranks));
    }
  }
  std::sort(victims.begin(), victims.end());
  victims.erase(std::unique(victims.begin(), victims.end()), victims.end());
  return victims;
}

/// The simulation is of the standby world's way over the loss of one device host.
Result<std::vector<int>> parse_world_sizes(const Config& config, std::size_t victims) {
  constexpr int kLargest = 16'384;
  std::vector<int> sizes;
  for (const auto& text : config.list("world-size")) {
    const auto size = whole(text);
    if (!size || *size < 2 || *size > kLargest)
      return bad("world-size", fmt::format("{} is no number from 2 to {}", text, kLargest));
    sizes.push_back(*size);
  }
  const auto& phases = config.list("phases");
  const bool alone =
      phases.empty() || std::find(phases.begin(), phases.end(), kNoPhase) != phases.end();
  if (!sizes.empty() && (victims != 1 || !alone || !standby_world(config)))
    return bad("world-size", "simulated is one fault alone, with --standby world");
  return sizes;
}

/// The next rank that is not struck before it.
std::optional<int> choose_second(const std::vector<int>& victims, int ranks) {
  for (int i = 1; i < ranks; ++i) {
    const int rank = (victims.back() + i) % ranks;
    if (std::find(victims.begin(), victims.end(), rank) == victims.end()) return rank;
  }
  return std::nullopt;
}

}  // namespace

std::vector<OptionSpec> option_specs() {
  return {
      {"kinds", OptionType::list, "", "KIND",
       "faults to suffer: kill, segv, hang, exit, with --on-loss shrink device-failure, on a GPU "
       "illegal-address, trap, assert, misaligned; default: kill, and on a GPU also these four. Or "
       "rank, node, stop, with --on-rank-loss respawn: of the ranks' processes, in one run. Or "
       "flip (a bit of the state, with --verify 1) and stray-write (a bit of a constant), in one "
       "run",
       kind_names()},
      {"phases", OptionType::list, kNoPhase, "PHASE",
       fmt::format("with each fault another rank suffers the same in this phase of the recovery: "
                   "{}; none: no second fault. form and replace want --standby local or off",
                   fmt::join(kRecoveryPhases, ", ")),
       phase_names()},
      {"victim", OptionType::list, "", "RANK|all",
       "ranks whose device hosts suffer the fault, together; default: 1, of a single rank 0"},
      {"repetitions",
       OptionType::integer,
       "5",
       "N",
       "faults of each kind and phase",
       {},
       "1",
       "1000"},
      {"settle",
       OptionType::duration,
       "auto",
       "TIME",
       "pause before a fault; auto: until what --standby asks for is up again",
       {"auto"}},
      {"kept",
       OptionType::bytes,
       "64MiB",
       "SIZE",
       "size of the buffer that must survive",
       {},
       "4B",
       "64GiB"},
      {"in-run", OptionType::flag, "off", "",
       "suffer the faults in World::run, with a checkpoint, and report the steps repeated"},
      {"world-size", OptionType::list, "", "N",
       "simulate the same in worlds of so many ranks too, at most 16384"},
      {"json", OptionType::text, "", "FILE", "write the results as JSON"},
  };
}

Result<void> check_options(const Config& config) {
  if (config.text("isolation") == "thread")
    return bad("isolation", "with the device host as a thread a fault ends its rank");
  if (config.text("on-loss") == "shrink" && !config.flag("in-run"))
    return bad("on-loss", "shrink: with --in-run, which makes the shares anew");
  if (const auto deaths = parse_deaths(config); !deaths) return deaths.error();
  if (const auto silent = parse_silent(config); !silent) return silent.error();
  const auto& kinds = config.list("kinds");
  const std::string failure(to_string(FaultKind::device_failure));
  if (config.text("on-loss") != "shrink" &&
      std::find(kinds.begin(), kinds.end(), failure) != kinds.end()) {
    return bad("kinds", failure + ": it ends the world, but with --on-loss shrink");
  }
  for (const std::string phase : {"replace", "form"}) {
    const auto& phases = config.list("phases");
    if (!standby_world(config) || std::find(phases.begin(), phases.end(), phase) == phases.end())
      continue;
    return bad("phases",
               fmt::format("{}: with --standby world {}; see --standby local", phase,
                           phase == "form" ? "nothing is formed"
                                           : "every device host is replaced there anyway"));
  }
  return {};
}

Result<Options> parse_options(const Config& config, int ranks, const std::string& engine) {
  Options options;
  const auto deaths = parse_deaths(config);
  if (!deaths) return deaths.error();
  options.ranks_die = !deaths->empty();
  const auto silent = parse_silent(config);
  if (!silent) return silent.error();
  options.silent = !silent->empty();
  Result<std::vector<FaultKind>> kinds = std::vector<FaultKind>();
  if (!options.ranks_die && !options.silent) kinds = parse_kinds(config, engine);
  if (!kinds) return kinds.error();
  auto victims = parse_victims(config, ranks);
  if (!victims) return victims.error();
  options.victims = std::move(*victims);
  options.second = choose_second(options.victims, ranks);
  auto phases = config.list("phases");
  if (phases.empty()) phases = {kNoPhase};
  for (const auto kind : *kinds) {
    for (const auto& phase : phases) {
      if (phase != kNoPhase && !options.second)
        return bad("phases", fmt::format("{}: all ranks are victims already", phase));
      options.attacks.push_back({kind, phase == kNoPhase ? "" : phase});
    }
  }
  for (const auto death : *deaths) options.attacks.push_back({.death = death});
  for (const auto fault : *silent) options.attacks.push_back({.silent = fault});
  options.repetitions = config.integer("repetitions");
  if (config.text("settle") != "auto") options.settle = config.duration("settle");
  options.kept_bytes = config.bytes("kept");
  auto sizes = parse_world_sizes(config, options.victims.size());
  if (!sizes) return sizes.error();
  options.world_sizes = std::move(*sizes);
  options.in_run = config.flag("in-run");
  options.shrinks = config.text("on-loss") == "shrink";
  const auto struck =
      static_cast<int>(options.victims.size()) + (phases == std::vector{kNoPhase} ? 0 : 1);
  if (options.shrinks && struck >= ranks) return bad("on-loss", "shrink: a rank must be left");
  options.json = config.text("json");
  if (auto enough = check_spares(config, options); !enough) return enough.error();
  return options;
}

}  // namespace troupe::drill
