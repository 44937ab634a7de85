// What --trace and --metrics cost a job: the same work without and with them, in pairs, the one and
// the other first in turn.
//
//   mpirun -n N trace_bench [--json FILE]
//
// tell: commands on tiny vectors, submitted one behind the other, until all are done, per command.
// ask: one such command and the wait for it. step: a product of two vectors, its sum over all
// ranks, and the wait for that. "raw" is the job without, "troupe" the one with.
#include <mpi.h>

#include <chrono>
#include <filesystem>
#include <string>
#include <vector>

#include <troupe/troupe.hpp>

#include "comparison.hpp"
#include "report_file.hpp"

namespace troupe::bench {
namespace {

using Clock = std::chrono::steady_clock;

std::vector<OptionSpec> option_specs() {
  return {{"repetitions", OptionType::integer, "9", "N", "pairs of measurements", {}, "1", "1000"},
          {"tells", OptionType::integer, "200000", "N", "commands of a measurement", {}, "1"},
          {"asks", OptionType::integer, "10000", "N", "waits of a measurement", {}, "1"},
          {"json", OptionType::text, "", "FILE", "write the results as JSON"}};
}

double us_each(Clock::time_point start, std::int64_t count) {
  return std::chrono::duration<double, std::micro>(Clock::now() - start).count() /
         static_cast<double>(count);
}

struct Measured {
  double tell = 0, ask = 0, step = 0;  ///< microseconds
};

Measured measure(Runtime& runtime) {
  auto& device = runtime.device();
  auto& world = runtime.world();
  const auto tells = runtime.config().integer("tells"), asks = runtime.config().integer("asks");
  const auto x = device.alloc<float>(256), y = device.alloc<float>(256), s = device.alloc<float>(1);
  device.fill(x, 1.0f), device.fill(y, 0.0f);
  const auto tell = [&](std::int64_t count) {
    for (std::int64_t i = 1; i < count; ++i) device.blas().axpy(1.0f, x, y);
    device.blas().axpy(1.0f, x, y).get();
  };
  const auto step = [&] {
    device.blas().dot(x, y, s);
    world.all_reduce(s, ReduceOp::max).get();
  };
  Measured measured;
  tell(tells / 10 + 1), step();
  world.barrier();
  auto start = Clock::now();
  tell(tells);
  measured.tell = us_each(start, tells);
  world.barrier();
  start = Clock::now();
  for (std::int64_t i = 0; i < asks; ++i) device.blas().axpy(1.0f, x, y).get();
  measured.ask = us_each(start, asks);
  world.barrier();
  start = Clock::now();
  for (std::int64_t i = 0; i < asks; ++i) step();
  measured.step = us_each(start, asks);
  return measured;
}

/// One job within this one.
Measured run(std::vector<std::string> arguments, bool seen, const std::string& folder) {
  if (seen)
    arguments.insert(arguments.end(), {"--trace", folder + "/trace.json", "--metrics",
                                       folder + "/metrics.prom", "--log-level", "warn"});
  std::vector<char*> argv;
  for (auto& argument : arguments) argv.push_back(argument.data());
  argv.push_back(nullptr);
  Runtime runtime(static_cast<int>(arguments.size()), argv.data(), option_specs());
  return measure(runtime);
}

int run_all(const std::vector<std::string>& arguments, const Config& config) {
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  const auto folder =
      (std::filesystem::temp_directory_path() / ("trace_bench." + std::to_string(::getppid())))
          .string();
  const auto file = rank == 0 ? app::check_report_file(config.text("json")) : Result<void>();
  int usable = file.ok() ? 1 : 0;
  MPI_Bcast(&usable, 1, MPI_INT, 0, MPI_COMM_WORLD);
  if (!file.ok()) std::fprintf(stderr, "trace_bench: %s\n", file.error().message.c_str());
  if (usable == 0) return kExitUsage;
  Comparison tell{"traced tell", "us", {}, {}}, ask{"traced ask", "us", {}, {}},
      step{"traced step", "us", {}, {}};
  for (std::int64_t pair = 0; pair < config.integer("repetitions"); ++pair) {
    for (const bool seen : {pair % 2 == 0, pair % 2 != 0}) {
      const auto measured = run(arguments, seen, folder);
      const auto add = [seen](Comparison& line, double value) {
        (seen ? line.ours : line.raw).push_back(value);
      };
      add(tell, measured.tell), add(ask, measured.ask), add(step, measured.step);
    }
  }
  std::error_code ignored;
  std::filesystem::remove_all(folder, ignored);
  if (rank != 0) return kExitSuccess;
  print("without (raw) and with --trace and --metrics (troupe)", {tell, ask, step});
  const auto written = write_json(config.text("json"), {tell, ask, step});
  if (written.ok()) return kExitSuccess;
  std::fprintf(stderr, "trace_bench: %s\n", written.error().message.c_str());
  return kExitUsage;
}

}  // namespace
}  // namespace troupe::bench

int main(int argc, char** argv) {
  using namespace troupe;
  const auto config = Config::parse(argc, argv, bench::option_specs());
  if (!config.ok()) {
    std::fprintf(stderr, "trace_bench: %s\n", config.error().message.c_str());
    return kExitUsage;
  }
  // It outlives the jobs within.
  int provided = 0;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
  int status = kExitFailure;
  try {
    status = bench::run_all({argv, argv + argc}, *config);
  } catch (const Exception& e) {
    std::fprintf(stderr, "trace_bench: %s\n", e.what());
    MPI_Abort(MPI_COMM_WORLD, status);
  }
  MPI_Finalize();
  return status;
}
