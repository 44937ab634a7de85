// Fourier transforms of a three-dimensional array that is spread over the devices of an MPI job,
// with the report of heFFTe's speed3d.
//
//   mpirun -n N troupe-fft [--points 1024] [--precision float] [-n10] [--fault kill@5:0] [--json
//   FILE]

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>

#include <troupe/lib/blas.hpp>
#include <troupe/troupe.hpp>

#include "job_report.hpp"
#include "oracle.hpp"
#include "report.hpp"

namespace troupe::fft3 {
namespace {

using Clock = std::chrono::steady_clock;
using distributed::Grid;
using distributed::Pfft3;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

/// What the array is multiplied by after so many runs: one that is lost, or made twice, shows.
double factor_after(std::int64_t runs) {
  return std::ldexp(1.0, static_cast<int>(runs % 8));
}

template <FieldElement E>
class Transforms {
 public:
  Transforms(Runtime& runtime, const Options& options, const Triple& grid)
      : world_(runtime.world()),
        device_(runtime.device()),
        options_(options),
        grid_(world_, static_cast<int>(grid[0]), static_cast<int>(grid[1])),
        plan_(device_, grid_, options.points, options.pieces),
        oracle_(device_, options.points),
        faults_(runtime, options.faults),
        times_(static_cast<std::size_t>(options.runs)) {}

  /// All runs; fills in the report.
  void run(Report& report) {
    plan_.forward(), plan_.inverse();  // opens libraries
    oracle_.fill(plan_.space_box(), plan_.space());
    Checkpoint state(device_);
    state.add("space", plan_.space());
    state.add_scratch(plan_.spectrum());
    plan_.add_scratch(state);
    world_.barrier();
    const auto start = Clock::now();
    world_.run(state, [this](std::int64_t step) { return there_and_back(step); },
               {.commit_every = options_.commit_every});
    world_.barrier();
    report.seconds = seconds_since(start);
    report.restarted_from = world_.restarted_from();
    report.recoveries = world_.recoveries();
    report.corruptions = world_.corruptions();
    const auto held = world_.gather_values(device_.bytes_held());
    report.memory_bytes = *std::max_element(held.begin(), held.end());
    report.times = app::slowest_times(world_, times_, report.restarted_from);
    compare(report, std::max(options_.runs, report.restarted_from));
  }

 private:
  Step there_and_back(std::int64_t step) {
    if (step >= options_.runs) return Step::done;  // a saved state was that far
    const auto start = Clock::now();
    plan_.forward();
    faults_.strike(step);
    plan_.inverse();
    const double factor = factor_after(step + 1) / factor_after(step) / options_.elements();
    device_.blas().scal(E(static_cast<RealOf<E>>(factor)), plan_.space()).get();
    times_[static_cast<std::size_t>(step)] = seconds_since(start);
    return step + 1 < options_.runs ? Step::again : Step::done;
  }

  /// The array with what it was at first, and its transform with the known one.
  void compare(Report& report, std::int64_t runs) {
    const auto allowed = [&](std::int64_t transforms) {
      return tolerance(options_.points, options_.real, options_.single, transforms);
    };
    const double factor = factor_after(runs);
    report.there_and_back = {largest(oracle_.error(plan_.space_box(), factor, plan_.space())),
                             allowed(2 * runs)};
    plan_.forward();
    report.spectrum = {
        largest(oracle_.spectrum_error(plan_.spectrum_box(), factor, plan_.spectrum())),
        allowed(2 * runs + 1)};
  }

  double largest(double mine) {
    const auto all = world_.gather_values(mine);
    return *std::max_element(all.begin(), all.end());
  }

  World& world_;
  Device& device_;
  const Options& options_;
  Grid grid_;
  Pfft3<E> plan_;
  Oracle<E> oracle_;
  FaultsOfRank faults_;
  std::vector<double> times_;  ///< this rank's, of each run
};

int run(Runtime& runtime) {
  auto& world = runtime.world();
  const auto options = parse_options(runtime.config()).take();
  world.agree(check_ranks(options.faults, world.size()));
  app::require_report_file(world, options.json);
  const auto grid = grid_of(options, world.size());
  world.agree(grid.ok() ? Result<void>() : Result<void>(grid.error()));
  Report report;
  report.ranks = world.size();
  report.grid = *grid;
  report.engine = runtime.device().info().engine;
  report.devices = app::devices_of(runtime);
  if (options.real && options.single)
    Transforms<float>(runtime, options, *grid).run(report);
  else if (options.real)
    Transforms<double>(runtime, options, *grid).run(report);
  else if (options.single)
    Transforms<std::complex<float>>(runtime, options, *grid).run(report);
  else
    Transforms<std::complex<double>>(runtime, options, *grid).run(report);
  return app::conclude(
      world, report.right(), options.json, [&] { return to_text(report, options); },
      [&] { return to_json(report, options); });
}

}  // namespace
}  // namespace troupe::fft3

int main(int argc, char** argv) {
  using namespace troupe;
  const Program program{"troupe-fft",
                        "Transforms a three-dimensional array that is spread over the devices of "
                        "an MPI job there and "
                        "back, as heFFTe's speed3d does. Ends with 0 if the result is right.",
                        fft3::option_specs()};
  return run_program(argc, argv, program, fft3::run, [](const Config& config) -> Result<void> {
    const auto options = fft3::parse_options(config);
    return options.ok() ? Result<void>() : Result<void>(options.error());
  });
}
