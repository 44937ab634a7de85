#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <memory>
#include <thread>
#include <variant>

#include "distributed_matrix.hpp"
#include "matrix_market.hpp"
#include "options.hpp"
#include "report.hpp"
#include "solver.hpp"
#include "stencil.hpp"

namespace troupe::cg {
namespace {

using Clock = std::chrono::steady_clock;
using AnyProblem = std::variant<LocalProblem<std::int32_t>, LocalProblem<std::int64_t>>;

/// Threads for generating and reading: this rank's share of the cores it may use.
int host_threads(const World& world) {
  return std::max(
      1, static_cast<int>(std::thread::hardware_concurrency()) / std::max(1, world.local_size()));
}

/// Host memory that this rank may take: its share of what is available.
std::int64_t host_memory_limit(const World& world) {
  const auto available =
      static_cast<std::int64_t>(::sysconf(_SC_PHYS_PAGES)) * ::sysconf(_SC_PAGESIZE);
  return available / std::max(1, world.local_size());
}

template <class Narrow, class Wide>
Result<AnyProblem> choose(bool wide, Narrow make_narrow, Wide make_wide) {
  if (wide) {
    auto problem = make_wide();
    if (!problem) return problem.error();
    return AnyProblem(std::move(*problem));
  }
  auto problem = make_narrow();
  if (!problem) return problem.error();
  return AnyProblem(std::move(*problem));
}

Result<AnyProblem> load(const Options& options, const World& world) {
  if (options.matrix.empty()) {
    const StencilOptions stencil{.nx = options.stencil[0],
                                 .ny = options.stencil[1],
                                 .nz = options.stencil[2],
                                 .rank = world.rank(),
                                 .ranks = world.size(),
                                 .threads = host_threads(world),
                                 .memory_limit_bytes = host_memory_limit(world)};
    const auto size = stencil_size(stencil);
    if (!size) return size.error();
    return choose(
        size->needs_64_bit(), [&] { return make_stencil_problem<std::int32_t>(stencil); },
        [&] { return make_stencil_problem<std::int64_t>(stencil); });
  }
  auto rows = read_matrix_market(options.matrix, world.rank(), world.size());
  if (!rows) return rows.error();
  const RowBlocks blocks{rows->global_rows, world.size()};
  return choose(
      needs_64_bit(*rows), [&] { return partition<std::int32_t>(*rows, blocks, world.rank()); },
      [&] { return partition<std::int64_t>(*rows, blocks, world.rank()); });
}

/// The device memory that a solve will take, against what there is, before anything is allocated.
template <class T, class I>
Result<void> check_memory(const LocalProblem<I>& problem, const Options& options,
                          Runtime& runtime) {
  const auto rows = static_cast<std::uint64_t>(problem.rows),
             halo = static_cast<std::uint64_t>(problem.halo_columns.size());
  const auto entries =
      static_cast<std::uint64_t>(stored_entries(problem.own) + problem.foreign.nonzeros());
  // b, x, r, p, q, two copies of x, r, p; with a preconditioner z and the diagonal.
  const std::uint64_t vectors = options.jacobi ? 13 : 11;
  const auto need = entries * (sizeof(T) + sizeof(I)) + 2 * rows * sizeof(I) +
                    vectors * rows * sizeof(T) + 3 * halo * sizeof(T);
  auto there = runtime.device().info().memory_bytes;
  const auto limit = runtime.config().bytes("memory-limit");
  if (limit != 0) there = std::min(there, limit);
  if (need <= there) return {};
  return Error{Errc::out_of_memory, 0,
               "the problem needs " + std::to_string(need >> 20) + " MiB on each device, of " +
                   std::to_string(there >> 20) + " MiB"};
}

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
Progress make_progress(int rank) {
  if (rank != 0) return [](std::int64_t, double) {};
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

/// Rank 0's SpMV and a device-to-device copy, each on its own, repeated for at least a few
/// milliseconds.
template <Real T, troupe::Index I>
void measure_kernels(Device& device, DistributedMatrix<T, I>& matrix, Report& report) {
  constexpr int kRepeats = 20;
  const auto timed = [&](auto submit) {
    submit().get();
    const auto start = Clock::now();
    for (int i = 1; i < kRepeats; ++i) submit();
    submit().get();
    return seconds_since(start) / kRepeats;
  };
  const auto x = device.alloc<T>(matrix.rows()), y = device.alloc<T>(matrix.rows());
  device.fill(x, T(1));
  report.spmv_format = matrix.own_format();
  report.spmv_bytes = matrix.own_bytes();
  report.spmv_seconds = timed([&] { return matrix.multiply_own(x, y); });
  // As large as the matrix, within reason, so that neither fits a cache that the other does not
  // fit.
  const auto length =
      static_cast<std::int64_t>(std::min(report.spmv_bytes / 2, 1e9) / sizeof(T)) + 1;
  auto from = device.try_alloc<T>(length);
  auto to = device.try_alloc<T>(length);
  if (!from.ok() || !to.ok()) return;
  device.fill(*from, T(1));
  report.copy_bytes = 2.0 * static_cast<double>(from->bytes());
  report.copy_seconds = timed([&] { return device.copy(*from, *to); });
}

template <Real T, class I>
int solve(Runtime& runtime, const Options& options, const LocalProblem<I>& problem,
          Report& report) {
  auto& world = runtime.world();
  world.agree(check_memory<T>(problem, options, runtime));
  const auto threads = host_threads(world);
  const auto start = Clock::now();
  const auto solution = known_solution(problem, options.seed, threads);
  const auto right_hand_side_values = right_hand_side(problem, options.seed, threads);
  const auto diagonal_values = diagonal(problem);
  report.setup_seconds += seconds_since(start);

  const auto uploading = Clock::now();
  std::unique_ptr<DistributedMatrix<T, I>> matrix;
  std::unique_ptr<Solver<T, I>> solver;
  Result<void> made;
  try {
    matrix = std::make_unique<DistributedMatrix<T, I>>(runtime, problem, threads);
    solver = std::make_unique<Solver<T, I>>(runtime, *matrix, problem, options,
                                            right_hand_side_values, diagonal_values);
    measure_kernels(runtime.device(), *matrix, report);
  } catch (const Exception& e) {
    made = e.error();
  }
  world.agree(made);
  report.upload_seconds = seconds_since(uploading);
  world.barrier();
  solver->solve(report, solution, make_progress(world.rank()));
  report.final_epoch = world.epoch().value;
  report.recoveries = world.recoveries();
  return report.converged ? kExitSuccess : kExitFailure;
}

Result<void> check_against_world(const Options& options, const World& world) {
  for (const auto& fault : options.faults) {
    if (fault.rank < world.size()) continue;
    return Error{Errc::invalid, 0,
                 "--fault: there is no rank " + std::to_string(fault.rank) + " among " +
                     std::to_string(world.size())};
  }
  return {};
}

int run(Runtime& runtime) {
  auto& world = runtime.world();
  const auto options = parse_options(runtime.config()).take();
  world.agree(check_against_world(options, world));
  Report report;
  report.problem = describe(options);
  report.backend = runtime.device().info().engine;
  report.ranks = world.size();
  report.jacobi = options.jacobi;
  report.element_bytes = size_of(options.dtype);
  char host[256] = {};
  ::gethostname(host, sizeof host - 1);
  report.devices =
      world.gather_text("rank " + std::to_string(world.rank()) + " on " + host + ": " +
                        runtime.device().info().name + " " + runtime.device().info().uuid);

  const auto start = Clock::now();
  auto problem = load(options, world);
  world.agree(problem.ok() ? Result<void>() : Result<void>(problem.error()));
  report.setup_seconds = seconds_since(start);
  const int status = std::visit(
      [&](const auto& local) {
        report.rows = local.global_rows;
        report.nonzeros = local.global_nonzeros;
        return options.dtype == DType::f32 ? solve<float>(runtime, options, local, report)
                                           : solve<double>(runtime, options, local, report);
      },
      *problem);
  Result<void> written;
  if (world.rank() == 0) {
    std::fputs(to_text(report, options).c_str(), stdout);
    std::fflush(stdout);
    if (!options.json.empty()) written = write_json(report, options);
  }
  world.agree(written);
  return status;
}

}  // namespace
}  // namespace troupe::cg

int main(int argc, char** argv) {
  using namespace troupe;
  const Program program{
      "troupe-cg",
      "Solves a sparse symmetric positive definite system by preconditioned conjugate gradients, "
      "distributed over the devices of an MPI job, and outlives faults of the devices.",
      cg::option_specs()};
  return run_program(argc, argv, program, cg::run, [](const Config& config) -> Result<void> {
    const auto options = cg::parse_options(config);
    return options.ok() ? Result<void>() : Result<void>(options.error());
  });
}
