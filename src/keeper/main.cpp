// troupe-keeper SPARES SILENCE WAIT BUDGET WINDOW STANDBY REFUGES PROGRAM NAME [ARGUMENT...]:
// starts PROGRAM, with NAME for its argv[0], as a rank of a job, and lives as long as the job does.
// Launchers (mpirun, srun) start keepers; users do not: a program replaces itself by one with
// --on-rank-loss respawn. Times are in nanoseconds; see Arguments.
//
// A launcher ends the job when a process dies that it has started itself. So that is this one: it
// speaks MPI at the begin, when keepers tell one another where they are, and at the end. Their
// ranks speak TCP, and so do the keepers. A keeper passes on what the launcher sends (signals) and
// what becomes of its rank (the exit status).
//
// A rank that a signal ends is started again, once it has asked for that, with the same number.
// With STANDBY 1 a second process of the program has waited for that moment, with a device host of
// its own, and takes the place of the first. A rank whose keeper is lost, with its node, is started
// at one of the spare places: see Council. With REFUGES 1 each keeper starts another one, whose
// place has no GPU, for ranks that find no spare place.
//
// Exit status: the rank's; 0 at a place without one; 2 if the rank cannot be started; 75 if it has
// died more often than it may, or is lost and has no other place.
#include <mpi.h>

#include <cstdio>

#include "common/ipc/descriptors.hpp"
#include "keeper/keeper.hpp"

int main(int argc, char** argv) {
  auto arguments = troupe::keeper::parse(argc, argv);
  if (!arguments) {
    std::fprintf(
        stderr,
        "usage: troupe-keeper SPARES SILENCE WAIT BUDGET WINDOW STANDBY REFUGES PROGRAM NAME "
        "[ARGUMENT...]\n");
    return troupe::keeper::kExitUsage;
  }
  troupe::ipc::fill_standard_descriptors();
  // A refuge is no process of the launcher's.
  if (arguments->beside != 0) return troupe::keeper::Keeper(std::move(*arguments)).run();
  int provided = 0;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &provided);
  return troupe::keeper::Keeper(std::move(*arguments)).run();
}
