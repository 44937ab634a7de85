// How long it takes from a fault of one device host until the world computes again.
//
//   mpirun -n N recovery_bench [--standby on|off] [--kinds kill,trap,...] [--json FILE]
//
// All ranks stream all_reduces. The device host of rank 1 (of rank 0 if it is alone) is made to
// suffer a real fault. Every rank notices, waits for the new epoch and computes one all_reduce, the
// result of which it downloads and checks. Two figures per fault: `recovery` is troupe's own
// account, from the fault to the new epoch; `wall` goes from the order of the fault to the last
// rank's verified result, and needs all ranks on one node, whose clock they share.
// A buffer that nobody writes meanwhile must come through bit for bit.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <thread>

#include <nlohmann/json.hpp>
#include <troupe/runtime.hpp>

#include "comparison.hpp"

namespace troupe::bench {
namespace {

using Clock = std::chrono::steady_clock;
using memory::FaultKind;

constexpr int kReducesPerRound = 16;
constexpr int kRoundsBefore = 20;
constexpr auto kFaultDeadline = std::chrono::seconds(60);
constexpr std::int64_t kStreamLength = 1024;

std::vector<OptionSpec> option_specs() {
  return {
      {"kinds", OptionType::list, "", "KIND",
       "faults to suffer; default: kill, and on a GPU also illegal-address, trap, assert, "
       "misaligned"},
      {"repetitions", OptionType::integer, "5", "N", "faults of each kind", {}, "1", "1000"},
      {"settle", OptionType::duration, "2s", "TIME",
       "pause after a recovery, for a new standby to warm up"},
      {"kept",
       OptionType::bytes,
       "64MiB",
       "SIZE",
       "size of the buffer that must survive",
       {},
       "4B",
       "64GiB"},
      {"json", OptionType::text, "", "FILE", "write the results as JSON"},
  };
}

Result<std::vector<FaultKind>> kinds_of(const Config& config, const std::string& engine) {
  using enum FaultKind;
  if (config.list("kinds").empty()) {
    if (engine == "cuda") return std::vector{kill, illegal_address, trap, assertion, misaligned};
    return std::vector{kill};
  }
  std::vector<FaultKind> kinds;
  for (const auto& name : config.list("kinds")) {
    std::size_t index = 0;
    while (index < memory::kFaultKindCount && name != to_string(static_cast<FaultKind>(index))) {
      ++index;
    }
    if (index == memory::kFaultKindCount) {
      return Error{Errc::invalid, 0, "--kinds: unknown kind '" + name + "'"};
    }
    kinds.push_back(static_cast<FaultKind>(index));
  }
  return kinds;
}

struct Outcome {
  Recovery recovery;
  double wall_ms = 0;
};

class Drill {
 public:
  explicit Drill(Runtime& runtime)
      : world_(runtime.world()),
        device_(runtime.device()),
        victim_(world_.size() > 1 ? 1 : 0),
        settle_(runtime.config().duration("settle")),
        stream_(device_.alloc<double>(kStreamLength)),
        kept_(device_.alloc<float>(
            static_cast<std::int64_t>(runtime.config().bytes("kept") / sizeof(float)))) {
    device_.rng().uniform(kept_, {.subsequence = static_cast<std::uint64_t>(world_.rank())});
    kept_values_ = device_.download(kept_);
  }

  /// All ranks call this alike. Throws Exception if anything is not as it should be.
  Outcome suffer(FaultKind kind) {
    reduce_and_verify();
    const auto known = world_.recoveries().size();
    const auto ordered = stream_until_fault(kind);
    reduce_and_verify();
    const auto verified = Clock::now();
    world_.agree(check_kept());
    const auto recoveries = world_.recoveries();
    if (recoveries.size() != known + 1) {
      throw CollectiveException(Error{Errc::internal, 0,
                                      fmt::format("{}: {} recoveries instead of one",
                                                  to_string(kind), recoveries.size() - known)});
    }
    const auto started = world_.gather_values(ordered)[static_cast<std::size_t>(victim_)];
    const auto ended = world_.gather_values(verified);
    Outcome outcome{recoveries.back(), 0};
    outcome.wall_ms = std::chrono::duration<double, std::milli>(
                          *std::max_element(ended.begin(), ended.end()) - started)
                          .count();
    std::this_thread::sleep_for(settle_);
    world_.barrier();
    return outcome;
  }

 private:
  /// The time at which this rank ordered the fault, if it is the one that does.
  Clock::time_point stream_until_fault(FaultKind kind) {
    const auto epoch = world_.epoch();
    const auto deadline = Clock::now() + kFaultDeadline;
    Clock::time_point ordered{};
    try {
      for (int round = 0; Clock::now() < deadline; ++round) {
        if (round == kRoundsBefore && world_.rank() == victim_) {
          ordered = Clock::now();
          (void)device_.inject(kind);
        }
        for (int i = 1; i < kReducesPerRound; ++i) (void)world_.all_reduce(stream_, ReduceOp::max);
        world_.all_reduce(stream_, ReduceOp::max).get();
      }
      throw Exception(Error{Errc::timeout, 0, fmt::format("{} had no effect", to_string(kind))});
    } catch (const Exception& e) {
      const auto code = e.code();
      if (code != Errc::device_lost && code != Errc::world_reformed && code != Errc::stale &&
          code != Errc::peer_lost) {
        throw;
      }
    }
    // The first to notice is the device; the world may still seem active for a moment.
    while (world_.wait_active().take() == epoch)
      std::this_thread::sleep_for(std::chrono::microseconds(20));
    return ordered;
  }

  void reduce_and_verify() {
    if (!stream_.valid()) stream_.renew();
    device_.fill(stream_, world_.rank() + 1.0);
    world_.all_reduce(stream_, ReduceOp::sum);
    const double expected = world_.size() * (world_.size() + 1) / 2.0;
    for (const double value : device_.download(stream_)) {
      if (value == expected) continue;
      throw Exception(Error{Errc::library, 0,
                            fmt::format("all_reduce gives {} instead of {}", value, expected)});
    }
  }

  Result<void> check_kept() {
    if (!kept_.valid()) return Error{Errc::stale, 0, "a buffer that nobody wrote is stale"};
    const auto values = device_.download(kept_);
    if (std::memcmp(values.data(), kept_values_.data(), values.size() * sizeof(float)) == 0)
      return {};
    return Error{Errc::internal, 0, "a buffer that nobody wrote has changed"};
  }

  World& world_;
  Device& device_;
  const int victim_;
  const std::chrono::nanoseconds settle_;
  GpuRef<double> stream_;
  const GpuRef<float> kept_;
  std::vector<float> kept_values_;
};

/// The outcomes of one kind of fault.
struct Series {
  std::string kind;
  std::vector<Outcome> outcomes;

  [[nodiscard]] std::vector<double> values(double Recovery::*phase) const {
    std::vector<double> list;
    for (const auto& outcome : outcomes) list.push_back(outcome.recovery.*phase);
    return list;
  }
  [[nodiscard]] std::vector<double> walls() const {
    std::vector<double> list;
    for (const auto& outcome : outcomes) list.push_back(outcome.wall_ms);
    return list;
  }
};

double largest(const std::vector<double>& values) {
  return *std::max_element(values.begin(), values.end());
}

struct Phase {
  const char* name;
  double Recovery::*time;
};
constexpr Phase kPhases[] = {{"detect", &Recovery::detect_ms},
                             {"quiesce", &Recovery::quiesce_ms},
                             {"replace", &Recovery::replace_ms},
                             {"form", &Recovery::form_ms},
                             {"verify", &Recovery::verify_ms}};

void print(const Series& series) {
  fmt::print("  {:<16}", series.kind);
  for (const auto& phase : kPhases) fmt::print(" {:>8.1f}", median(series.values(phase.time)));
  const auto totals = series.values(&Recovery::total_ms), walls = series.walls();
  fmt::print(" {:>10.1f} {:>8.1f} {:>8.1f} {:>8.1f}\n", median(totals), largest(totals),
             median(walls), largest(walls));
  std::fflush(stdout);
}

std::string to_json(const Series& series, const Config& config, int ranks) {
  const auto totals = series.values(&Recovery::total_ms), walls = series.walls();
  nlohmann::ordered_json object = {
      {"name", fmt::format("{} standby {}", series.kind, config.text("standby"))},
      {"unit", "ms"},
      {"ranks", ranks},
      {"wall_median", median(walls)},
      {"wall_max", largest(walls)},
      {"recovery_median", median(totals)},
      {"recovery_max", largest(totals)}};
  for (const auto& phase : kPhases)
    object[std::string(phase.name) + "_median"] = median(series.values(phase.time));
  object["wall_values"] = walls;
  object["recovery_values"] = totals;
  return object.dump();
}

int run(Runtime& runtime) {
  auto& world = runtime.world();
  const auto& config = runtime.config();
  const auto kinds = kinds_of(config, runtime.device().info().engine);
  world.agree(kinds.ok() ? Result<void>() : Result<void>(kinds.error()));
  Drill drill(runtime);
  std::this_thread::sleep_for(config.duration("settle"));
  if (world.rank() == 0) {
    fmt::print(
        "\n{} ranks, {}, standby {}: {} faults of each kind; times in ms, medians and largest\n"
        "  {:<16} {:>8} {:>8} {:>8} {:>8} {:>8} {:>10} {:>8} {:>8} {:>8}\n",
        world.size(), runtime.device().info().name, config.text("standby"),
        config.integer("repetitions"), "", "detect", "quiesce", "replace", "form", "verify",
        "recovery", "largest", "wall", "largest");
  }
  std::vector<std::string> lines;
  for (const auto kind : *kinds) {
    Series series{std::string(to_string(kind)), {}};
    for (std::int64_t i = 0; i < config.integer("repetitions"); ++i) {
      series.outcomes.push_back(drill.suffer(kind));
    }
    if (world.rank() == 0) print(series);
    lines.push_back(to_json(series, config, world.size()));
  }
  Result<void> written;
  if (world.rank() == 0 && !config.text("json").empty())
    written = write_json_lines(config.text("json"), lines);
  world.agree(written);
  return kExitSuccess;
}

}  // namespace
}  // namespace troupe::bench

int main(int argc, char** argv) {
  using namespace troupe;
  // This program's own defaults: it lives on what the budget is there to stop.
  ::setenv("TROUPE_RESTART_BUDGET", "100000", 0);
  ::setenv("TROUPE_LOG_LEVEL", "warn", 0);  // the table says it all
  const Program program{
      "recovery_bench",
      "Measures the time from a fault of a device host until the world computes again.",
      bench::option_specs()};
  return run_program(argc, argv, program, bench::run);
}
