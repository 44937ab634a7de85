// What ranks use of a core while they have nothing to do, their device hosts included.
//
//   mpirun -n N idle_bench [--seconds S] [--json FILE]
//
// The figures are those of the machine's scheduler and depend on what else runs on it: a benchmark,
// no test.
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include <troupe/runtime.hpp>

#include "world_bench.hpp"

namespace troupe::bench {
namespace {

std::vector<OptionSpec> option_specs() {
  return {
      {"seconds",
       OptionType::integer,
       "3",
       "S",
       "how long the ranks are idle, each time",
       {},
       "1",
       "600"},
      {"repetitions", OptionType::integer, "3", "N", "of everything", {}, "1", "1000"},
      {"json", OptionType::text, "", "FILE", "write the results as JSON"},
  };
}

/// The processes that this one has started: its device hosts.
std::vector<pid_t> children() {
  std::vector<pid_t> found;
  for (const auto& thread : std::filesystem::directory_iterator("/proc/self/task")) {
    std::ifstream file(thread.path() / "children");
    for (pid_t pid = 0; file >> pid;) found.push_back(pid);
  }
  return found;
}

/// CPU time that a process has used, all its threads together.
double cpu_seconds(pid_t pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/stat");
  std::string line;
  if (!std::getline(file, line)) return 0;
  // pid (name) state …: the name may hold anything, so count from its end.
  std::istringstream rest(line.substr(line.rfind(')') + 2));
  std::string field;
  for (int i = 3; i < 14; ++i) rest >> field;  // fields 14 and 15 follow
  double user = 0, system = 0;
  rest >> user >> system;
  return (user + system) / static_cast<double>(::sysconf(_SC_CLK_TCK));
}

double sum(const std::vector<pid_t>& processes) {
  double seconds = 0;
  for (const auto pid : processes) seconds += cpu_seconds(pid);
  return seconds;
}

int run(Runtime& runtime) {
  require_report_file(runtime);
  using Clock = std::chrono::steady_clock;
  auto& world = runtime.world();
  Comparison rank{"an idle rank", "% of a core", {}, {}};
  Comparison hosts{"its idle device hosts", "% of a core", {}, {}};
  const auto time = std::chrono::seconds(runtime.config().integer("seconds"));
  std::this_thread::sleep_for(std::chrono::seconds(1));  // the standby has come up
  for (std::int64_t i = 0; i < runtime.config().integer("repetitions"); ++i) {
    world.barrier();
    const auto started = children();
    const double rank_before = cpu_seconds(::getpid()), hosts_before = sum(started);
    const auto start = Clock::now();
    std::this_thread::sleep_for(time);
    const double seconds = std::chrono::duration<double>(Clock::now() - start).count();
    // The mean of all ranks.
    double rank_share = 0, hosts_share = 0;
    for (const auto used : world.gather_values(cpu_seconds(::getpid()) - rank_before))
      rank_share += used;
    for (const auto used : world.gather_values(sum(started) - hosts_before)) hosts_share += used;
    const double percent = 100 / seconds / world.size();
    rank.ours.push_back(percent * rank_share);
    hosts.ours.push_back(percent * hosts_share);
  }
  report(runtime, "idle ranks", {rank, hosts});
  return 0;
}

}  // namespace
}  // namespace troupe::bench

int main(int argc, char** argv) {
  using namespace troupe;
  ::setenv("TROUPE_LOG_LEVEL", "warn", 0);  // the table says it all
  const Program program{"idle_bench", "Measures what idle ranks use of a core.",
                        bench::option_specs()};
  return run_program(argc, argv, program, bench::run);
}
