#include "lib/kernel/compiler/compile.hpp"

#include <signal.h>

#include <cstdlib>

#include "common/ipc/descriptors.hpp"
#include "common/ipc/process.hpp"
#include "common/ipc/scratch_folder.hpp"
#include "common/ipc/whole_file.hpp"

// troupe-compile RANK: compiles one job, see compile_job.hpp. Exits with 0 if there is an outcome,
// also that of a source that does not compile.

int main(int argc, char** argv) {
  using namespace troupe;
  if (argc != 2) return 2;
  ipc::fill_standard_descriptors();
  ipc::ignore_job_signals();
  const auto bytes = ipc::read_whole(wire::kCompileJobFd);
  if (!bytes) return 2;
  const auto job = wire::decode_job(*bytes);
  if (!job) return 2;
  ipc::die_with_rank(std::atoi(argv[1]), [folder = job->folder] {
    ::kill(0, SIGTERM);  // the compilers; this process ignores it
    if (!folder.empty()) ipc::remove_folder(folder);
  });
  const auto outcome = job->engine == "cpu" ? compile::for_cpu(*job) : compile::for_cuda(*job);
  return ipc::write_whole(wire::kCompileOutcomeFd, wire::encode(outcome)).ok() ? 0 : 2;
}
