// Times collectives, transfers by token and messages to actors, in nccl-tests' table, and checks
// what they give.
//
//   mpirun -n N troupe-perf -b 8 -e 128M -f 2 [--operation all_gather] [--peer nccl] [-J FILE]

#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>

#include <fmt/format.h>

#include "measure.hpp"
#include "report.hpp"
#include "report_file.hpp"
#include "troupe_side.hpp"

namespace troupe::perf {
namespace {

void print(const World& world, const std::string& text) {
  if (world.rank() != 0) return;
  std::fputs(text.c_str(), stdout);
  std::fflush(stdout);
}

std::string describe_device(Runtime& runtime, int colour) {
  const auto& world = runtime.world();
  const auto& info = runtime.device().info();
  char host[256] = {};
  ::gethostname(host, sizeof host - 1);
  return fmt::format("Rank {:>2} Group {:>2} Pid {:>6} on {:>10} device {:>2} [{}] {}",
                     world.rank(), colour, ::getpid(), host, world.local_rank(),
                     info.bus_id.empty() ? info.uuid : info.bus_id, info.name);
}

/// One that fails elsewhere, too, ends the program in good order.
std::unique_ptr<Side> make_peer(World& world, Collectives& ranks, const Options& options,
                                int colour, std::uint64_t capacity) {
  std::unique_ptr<Side> peer;
  Result<void> made;
  try {
    peer = load_peer(options.peer, {.rank = ranks.rank(),
                                    .size = ranks.size(),
                                    .colour = colour,
                                    .local_rank = world.local_rank(),
                                    .capacity = capacity,
                                    .first_one = [&](const PeerSetup::Id& id) {
                                      return ranks.gather_values(id).front();
                                    }});
  } catch (const Exception&) {
    throw;
  } catch (const std::exception& e) {
    made = Error{Errc::invalid, 0, e.what()};
  }
  world.agree(made);
  return peer;
}

/// All kinds of calls of an operation: types, reductions and roots.
std::vector<Call> kinds(Operation operation, const Options& options, int size) {
  const auto& of = traits(operation);
  const auto reductions = of.reduces ? options.reductions : std::vector{Reduction::sum};
  std::vector<int> roots{std::max(0, options.root)};
  if (options.root < 0 && of.rooted)
    for (int root = 1; root < size; ++root) roots.push_back(root);
  std::vector<Call> calls;
  for (const auto dtype : options.dtypes)
    for (const auto reduction : reductions)
      for (const int root : roots) calls.push_back({operation, dtype, reduction, root});
  return calls;
}

/// Faults in iterations that do not come are no faults.
Result<void> check_iterations(const Options& options, int size) {
  std::size_t measurements = 0;
  for (const auto operation : options.operations) {
    measurements += kinds(operation, options, size).size() * options.sizes().size() *
                    (traits(operation).in_place ? 2 : 1);
  }
  const auto all = static_cast<std::int64_t>(measurements) * options.iterations *
                   std::max<std::int64_t>(1, options.replays);
  for (const auto& fault : options.faults) {
    if (fault.iteration < all) continue;
    return Error{Errc::invalid, 0,
                 fmt::format("--fault: there is no iteration {} among {}", fault.iteration, all)};
  }
  return {};
}

/// What carries out the calls of a row.
struct Sides {
  std::unique_ptr<Side> ours, tells, peer;

  void warm_up(Measurement& measurement, const Call& call, const Options& options) const {
    const auto largest = elements(call, options);
    measurement.warm_up(of_troupe(call), call, largest);
    if (has_peer(call)) measurement.warm_up(*peer, call, largest);
  }
  Row measure(Measurement& measurement, const Call& call, const Options& options, int size) const {
    const auto largest = elements(call, options);
    Row row;
    row.call = call;
    row.bytes = extents(call, 0, size).largest() * static_cast<std::int64_t>(size_of(call.dtype));
    for (const bool in_place : {false, true}) {
      if (in_place && !traits(call.operation).in_place) continue;
      auto one = call;
      one.in_place = in_place;
      (in_place ? row.in_place : row.out_of_place) =
          measurement.measure(of_troupe(call), one, largest, true, row);
      if (!has_peer(one)) continue;
      (in_place ? row.peer_in_place : row.peer_out_of_place) =
          measurement.measure(*peer, one, largest, false, row);
    }
    return row;
  }

 private:
  [[nodiscard]] Side& of_troupe(const Call& call) const {
    return call.operation == Operation::tell ? *tells : *ours;
  }
  [[nodiscard]] bool has_peer(const Call& call) const { return peer && peer->lacks(call).empty(); }
  /// Of a buffer.
  static std::int64_t elements(const Call& call, const Options& options) {
    return options.largest / static_cast<std::int64_t>(size_of(call.dtype));
  }
};

int run(Runtime& runtime) {
  auto& world = runtime.world();
  const auto options = parse_options(runtime.config()).take();
  const auto engine = runtime.device().info().engine;
  world.agree(check_against_world(options, world.size(), engine));
  for (const auto& path : options.json)
    world.agree(world.rank() == 0 ? app::check_report_file(path) : Result<void>());
  const int size = options.group == 0 ? world.size() : options.group;
  const int colour = world.rank() / size;
  world.agree(check_iterations(options, size));

  Group group;
  if (size != world.size()) group = world.split(colour);
  Collectives& ranks = size != world.size() ? static_cast<Collectives&>(group) : world;
  const auto capacity = static_cast<std::uint64_t>(options.largest);
  Sides sides;
  sides.ours = make_troupe_side(runtime, ranks, capacity);
  if (options.measures(Operation::tell)) sides.tells = make_tell_side(runtime, ranks);
  if (!options.peer.empty()) sides.peer = make_peer(world, ranks, options, colour, capacity);
  const Setting setting{.engine = engine,
                        .ranks = world.size(),
                        .group = size,
                        .devices = world.gather_text(describe_device(runtime, colour))};
  print(world, heading(setting, options));

  Measurement measurement(runtime, options, ranks.rank(), size);
  measurement.settle();
  Report report;
  const auto began = std::chrono::steady_clock::now();
  for (const auto operation : options.operations) {
    if (options.operations.size() > 1)
      print(world, fmt::format("# operation: {}\n", traits(operation).name));
    for (auto call : kinds(operation, options, size)) {
      sides.warm_up(measurement, call, options);
      for (const auto bytes : options.sizes()) {
        call.count = count_of(operation, bytes, call.dtype, size);
        report.rows.push_back(sides.measure(measurement, call, options, size));
        print(world, to_text(report.rows.back(), options));
      }
    }
  }
  report.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
  print(world, footing(report, options));
  Result<void> written;
  for (const auto& path : options.json)
    if (world.rank() == 0 && written.ok()) written = write_json(path, report, setting, options);
  world.agree(written);
  return report.failures() == 0 ? kExitSuccess : kExitFailure;
}

}  // namespace
}  // namespace troupe::perf

int main(int argc, char** argv) {
  using namespace troupe;
  // This program's own default: its table says what the log would.
  ::setenv("TROUPE_LOG_LEVEL", "error", 0);
  const Program program{
      "troupe-perf",
      "Times collectives, transfers by token and messages between the ranks of an MPI job, and "
      "checks what they give: with the options and the table of nccl-tests. Ends with 0 if all "
      "values are right.",
      perf::option_specs()};
  auto words = perf::rewritten(argc, argv);
  return run_program(argc, words.data(), program, perf::run,
                     [](const Config& config) -> Result<void> {
                       const auto options = perf::parse_options(config);
                       return options.ok() ? Result<void>() : Result<void>(options.error());
                     });
}
