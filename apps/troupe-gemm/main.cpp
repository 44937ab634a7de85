// Products of matrices that are spread over the devices of an MPI job, with the command line and
// the report of COSMA's miniapps.
//
//   mpirun -n N troupe-gemm [-m 32768 -n 32768 -k 32768] [-r 10] [--fault kill@5:0] [--json FILE]

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <limits>

#include <troupe/troupe.hpp>

#include "job_report.hpp"
#include "report.hpp"

namespace troupe::gemm {
namespace {

using Clock = std::chrono::steady_clock;
using distributed::Grid;
using distributed::Layout;
using distributed::Matrix;
using distributed::Pgemm;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

Layout layout_of(const Pair& extents, const std::optional<Pair>& block, const Grid& grid) {
  if (block) return {extents[0], extents[1], (*block)[0], (*block)[1]};
  return Layout::blocks(extents[0], extents[1], grid.rows(), grid.columns());
}

template <FieldElement T>
class Gemm {
 public:
  Gemm(Runtime& runtime, const Options& options)
      : world_(runtime.world()),
        device_(runtime.device()),
        options_(options),
        grid_(world_, static_cast<int>(options.grid ? (*options.grid)[0] : 1),
              static_cast<int>(options.grid ? (*options.grid)[1] : world_.size())),
        a_(device_, grid_, layout_of(options.extents_a(), options.block_a, grid_), "a"),
        b_(device_, grid_, layout_of(options.extents_b(), options.block_b, grid_), "b"),
        c_(device_, grid_, layout_of({options.m, options.n}, options.block_c, grid_), "c"),
        plan_(device_, grid_, a_.layout(), b_.layout(), c_.layout(),
              {options.transpose_a, options.transpose_b, options.panel}),
        check_(device_, world_, options),
        faults_(runtime, options.faults),
        times_(static_cast<std::size_t>(options.repetitions)) {}

  /// All repetitions; fills in the report.
  void run(Report& report) {
    report.grid = {grid_.rows(), grid_.columns()};
    report.a = a_.layout(), report.b = b_.layout(), report.c = c_.layout();
    check_.generate(Which::a, a_), check_.generate(Which::b, b_);
    if (options_.beta == 0)  // it must not be read
      device_.fill(c_.local(), T(std::numeric_limits<RealOf<T>>::quiet_NaN()));
    else
      check_.generate(Which::c, c_);
    check_.begin(a_, b_, c_);

    Checkpoint state(device_);
    state.add("c", c_.local());
    plan_.add_scratch(state);
    world_.barrier();
    const auto start = Clock::now();
    world_.run(state, [this](std::int64_t step) { return repetition(step); },
               {.commit_every = options_.commit_every});
    world_.barrier();
    report.seconds = seconds_since(start);
    report.restarted_from = world_.restarted_from();
    report.recoveries = world_.recoveries();
    report.corruptions = world_.corruptions();
    report.times = app::slowest_times(world_, times_, report.restarted_from);
    const auto made = std::max(options_.repetitions, report.restarted_from);
    report.residual = check_.residual(c_, made);
    if (options_.test) report.elements = check_.elements(c_, made);
  }

 private:
  Step repetition(std::int64_t step) {
    if (step >= options_.repetitions) return Step::done;  // a saved state was that far
    faults_.strike(step);
    const auto start = Clock::now();
    using Real = RealOf<T>;
    plan_
        .multiply(T(static_cast<Real>(options_.alpha)), a_, b_, T(static_cast<Real>(options_.beta)),
                  c_)
        .get();
    times_[static_cast<std::size_t>(step)] = seconds_since(start);
    return step + 1 < options_.repetitions ? Step::again : Step::done;
  }

  World& world_;
  Device& device_;
  const Options& options_;
  Grid grid_;
  Matrix<T> a_, b_, c_;
  Pgemm<T> plan_;
  Check<T> check_;
  FaultsOfRank faults_;
  std::vector<double> times_;  ///< this rank's, of each repetition
};

/// Errors: invalid.
Result<void> check_grid(const Options& options, int ranks) {
  if (!options.grid || (*options.grid)[0] * (*options.grid)[1] == ranks) return {};
  return Error{Errc::invalid, 0,
               "--p_grid: " + std::to_string((*options.grid)[0]) + " x " +
                   std::to_string((*options.grid)[1]) + " are not " + std::to_string(ranks) +
                   (ranks == 1 ? " rank" : " ranks")};
}

int run(Runtime& runtime) {
  auto& world = runtime.world();
  const auto options = parse_options(runtime.config()).take();
  world.agree(check_ranks(options.faults, world.size()));
  app::require_report_file(world, options.json);
  world.agree(check_grid(options, world.size()));
  Report report;
  report.ranks = world.size();
  report.engine = runtime.device().info().engine;
  report.devices = app::devices_of(runtime);
  switch (options.dtype) {
    case DType::f32: Gemm<float>(runtime, options).run(report); break;
    case DType::c64: Gemm<std::complex<float>>(runtime, options).run(report); break;
    case DType::c128: Gemm<std::complex<double>>(runtime, options).run(report); break;
    default: Gemm<double>(runtime, options).run(report);
  }
  return app::conclude(
      world, report.right(), options.json, [&] { return to_text(report, options); },
      [&] { return to_json(report, options); });
}

}  // namespace
}  // namespace troupe::gemm

int main(int argc, char** argv) {
  using namespace troupe;
  const Program program{
      "troupe-gemm",
      "Multiplies matrices that are spread over the devices of an MPI job, as COSMA's miniapps do. "
      "Ends with 0 if the result is right.",
      gemm::option_specs()};
  return run_program(argc, argv, program, gemm::run, [](const Config& config) -> Result<void> {
    const auto options = gemm::parse_options(config);
    return options.ok() ? Result<void>() : Result<void>(options.error());
  });
}
