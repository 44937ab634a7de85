// Random programs against an oracle, with faults: searches for wrong answers.
//
//   troupe-torture --minutes 60                    starts jobs of 1 to 8 ranks itself
//   mpirun -n N troupe-torture --seed S ...        one job

#include <cstdio>
#include <cstdlib>
#include <filesystem>

#include <sys/resource.h>

#include "driver.hpp"
#include "job.hpp"

namespace {

/// Whether some launcher has started this process as a rank.
bool is_rank() {
  for (const char* name : {"OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK"}) {
    if (std::getenv(name) != nullptr) return true;
  }
  return false;
}

/// Few descriptors are one of the things to be got along with.
void limit_descriptors(std::int64_t most) {
  rlimit limit{};
  if (most == 0 || ::getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = static_cast<rlim_t>(most);
  (void)::setrlimit(RLIMIT_NOFILE, &limit);
}

}  // namespace

int main(int argc, char** argv) {
  using namespace troupe;
  // The job's own defaults: it lives on what the budget is there to stop.
  ::setenv("TROUPE_RESTART_BUDGET", "100000", 0);
  ::setenv("TROUPE_LOG_LEVEL", "off", 0);
  ::setenv("TROUPE_FLIGHT_DIR", "none", 0);
  const auto asked = Config::parse(argc, argv, torture::this_program().options);
  if (asked.ok() && !asked->wants_help() && !asked->wants_version() && !asked->wants_print()) {
    if (!is_rank())
      return torture::drive(*asked, std::filesystem::read_symlink("/proc/self/exe").string());
    limit_descriptors(asked->integer("descriptors"));
  }
  return run_program(argc, argv, torture::this_program(), torture::run_job, torture::check_options);
}
