#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <memory>
#include <thread>
#include <variant>

#include "distributed_matrix.hpp"
#include "grids.hpp"
#include "hpcg.hpp"
#include "job_report.hpp"
#include "load.hpp"
#include "options.hpp"
#include "report.hpp"
#include "solver.hpp"

namespace troupe::cg {
namespace {

using Clock = std::chrono::steady_clock;
std::string describe(const Options& options) {
  if (!options.matrix.empty()) return "matrix " + options.matrix;
  const auto& [nx, ny, nz] = options.stencil;
  return "27-point stencil, " + std::to_string(nx) + " x " + std::to_string(ny) + " x " +
         std::to_string(nz) + " points per rank";
}

/// Whether somebody watches. mpirun gives its ranks a terminal of their own and copies what they
/// write: then its own output, that of our parent, is what counts.
bool on_terminal() {
  if (::isatty(STDOUT_FILENO) != 1) return false;
  if (std::getenv("OMPI_COMM_WORLD_RANK") == nullptr) return true;
  char target[64] = {};
  const auto link = "/proc/" + std::to_string(::getppid()) + "/fd/1";
  if (::readlink(link.c_str(), target, sizeof target - 1) < 0) return false;
  const std::string_view path(target);
  return path.starts_with("/dev/pts/") || path.starts_with("/dev/tty");
}

/// One refreshed line on a terminal; elsewhere a plain line now and then.
Progress make_progress() {
  const bool terminal = on_terminal();
  return [terminal, last = Clock::time_point{}](std::int64_t iteration, double residual) mutable {
    const auto now = Clock::now();
    if (now - last < (terminal ? std::chrono::milliseconds(50) : std::chrono::milliseconds(1000)))
      return;
    last = now;
    std::printf(terminal ? "\riteration %8lld  relative residual %.3e "
                         : "iteration %8lld  relative residual %.3e\n",
                static_cast<long long>(iteration), residual);
    std::fflush(stdout);
  };
}

/// This rank's share of the problem, on its device and as it is before the first iteration. All
/// ranks call it. Throws CollectiveException, or on a fault Exception.
std::unique_ptr<Share> share_out(Solve& solve) {
  auto& world = solve.runtime->world();
  const auto& options = *solve.options;
  auto& report = *solve.report;
  const auto threads = host_threads(world);
  const auto start = Clock::now();
  auto problem = load(options, world, report.ranks);
  world.agree(problem.ok() ? Result<void>() : Result<void>(problem.error()));
  return std::visit(
      [&]<class I>(LocalProblem<I>& local) {
        auto coarse = coarse_grids(options, world, report.ranks, local);
        world.agree(coarse.ok() ? Result<void>() : Result<void>(coarse.error()));
        report.grid_nonzeros.clear();
        if (!coarse->empty()) report.grid_nonzeros.push_back(local.global_nonzeros);
        for (const auto& grid : *coarse)
          report.grid_nonzeros.push_back(grid.problem.global_nonzeros);
        report.rows = local.global_rows;
        report.nonzeros = local.global_nonzeros;
        const bool narrow = options.dtype == DType::f32;
        world.agree(narrow ? check_memory<float>(local, *coarse, options, *solve.runtime)
                           : check_memory<double>(local, *coarse, options, *solve.runtime));
        const auto plans = plan_exchanges(world, local, *coarse);
        HostVectors vectors{known_solution(local, options.seed, threads),
                            right_hand_side(local, options.seed, threads), diagonal(local)};
        report.setup_seconds += seconds_since(start);
        const auto uploading = Clock::now();
        std::unique_ptr<Share> share;
        Result<void> made;
        try {
          if (narrow) {
            share = std::make_unique<Solver<float, I>>(solve, std::move(local), *coarse, plans,
                                                       std::move(vectors), threads);
          } else {
            share = std::make_unique<Solver<double, I>>(solve, std::move(local), *coarse, plans,
                                                        std::move(vectors), threads);
          }
        } catch (const Exception& e) {
          made = e.error();
        }
        world.agree(made);
        report.upload_seconds += seconds_since(uploading);
        return share;
      },
      *problem);
}

std::string in_text(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.6g", value);
  return text;
}

Error breakdown_error(const Solve& solve) {
  const auto where = "breakdown in iteration " + std::to_string(solve.breakdown);
  if (solve.underflow) {
    return {Errc::invalid, 0,
            where + ": p'Ap underflows, after a relative residual of " +
                in_text(solve.breakdown_residual) + ": the numbers of the problem are too small"};
  }
  if (std::isfinite(solve.breakdown_value)) {
    return {Errc::invalid, 0,
            where + ": p'Ap = " + in_text(solve.breakdown_value) +
                " is not positive: the matrix is not positive definite"};
  }
  return {Errc::invalid, 0,
          where + ": p'Ap or the residual is " + in_text(solve.breakdown_value) + ", after " +
              in_text(solve.breakdown_residual) +
              ": the matrix is not positive definite, or its numbers overflow"};
}

/// What kept a solve from ending well that came down to rounding.
std::string stagnation(const Solve& solve) {
  const auto residual = in_text(solve.breakdown_residual);
  auto text = "stagnated in iteration " + std::to_string(solve.breakdown) +
              ": the relative residual was down to " + residual + ", ";
  if (solve.breakdown_residual > solve.options->tolerance)
    return text + "and rounding allows no less; --tol is " + in_text(solve.options->tolerance);
  return text + "which is within --tol, but the next check was after iteration " +
         std::to_string(solve.report->iterations) + ": --check-every 1 ends there";
}

/// Solves and fills the report. Throws CollectiveException (invalid) on a breakdown.
void solve(Solve& solve) {
  auto& world = solve.runtime->world();
  auto& report = *solve.report;
  std::unique_ptr<Share> share;
  Checkpoint checkpoint(solve.runtime->device());
  const auto make_share = [&] {
    share.reset();  // its memory is needed
    share = share_out(solve);
  };
  const auto begin = [&] {
    share->start();
    share->add_to(checkpoint);
  };
  world.run(checkpoint, [&](std::int64_t i) { return share->step(i); },
            {.commit_every = solve.options->commit_every,
             .prepare =
                 [&] {
                   make_share();
                   share->measure_kernels();
                   share->warm_up();
                   begin();
                   solve.began = Clock::now();
                 },
             .redistribute = [&](const SavedState& state) { share->take_over(state); },
             .resized =
                 [&] {
                   make_share();
                   begin();
                 }});
  report.restarted_from = world.restarted_from();
  report.checkpoints = world.saved_checkpoints();
  report.final_ranks = world.size();
  report.final_epoch = world.epoch().value;
  report.recoveries = world.recoveries();
  report.corruptions = world.corruptions();
  report.health = world.health_events();
  if (world.spectator()) return;  // the others have the result
  if (solve.stagnated()) return;
  if (solve.breakdown != 0) throw CollectiveException(breakdown_error(solve));
  const double epsilon = solve.options->dtype == DType::f32
                             ? std::numeric_limits<float>::epsilon()
                             : std::numeric_limits<double>::epsilon();
  report.converged =
      report.converged &&
      report.true_relative_residual <= std::max(10 * solve.options->tolerance, 1000 * epsilon);
}

int run(Runtime& runtime) {
  auto& world = runtime.world();
  const auto options = parse_options(runtime.config()).take();
  world.agree(check_ranks(options.faults, world.size()));
  app::require_report_file(world, options.json);
  if (options.hpcg) return rate(runtime, options, make_progress());
  Report report;
  report.problem = describe(options);
  report.engine = runtime.device().info().engine;
  report.ranks = world.size();
  report.preconditioner = options.preconditioner;
  report.element_bytes = size_of(options.dtype);
  report.devices = app::devices_of(runtime);

  Solve work{&runtime, &options, &report, make_progress(), FaultsOfRank(runtime, options.faults)};
  solve(work);
  if (world.spectator()) return kExitSuccess;
  if (work.stagnated()) {
    if (world.rank() == 0) std::fprintf(stderr, "troupe-cg: %s\n", stagnation(work).c_str());
    return kExitFailure;
  }
  return app::conclude(
      world, report.converged, options.json, [&] { return to_text(report, options); },
      [&] { return to_json(report, options); });
}

}  // namespace
}  // namespace troupe::cg

int main(int argc, char** argv) {
  using namespace troupe;
  const Program program{
      "troupe-cg",
      "Solves a sparse symmetric positive definite system by preconditioned conjugate gradients, "
      "distributed over the devices of an MPI job, and outlives faults of the devices. With --hpcg "
      "it rates the devices by HPCG's rules.",
      cg::option_specs()};
  return run_program(argc, argv, program, cg::run, [](const Config& config) -> Result<void> {
    const auto options = cg::parse_options(config);
    return options.ok() ? Result<void>() : Result<void>(options.error());
  });
}
