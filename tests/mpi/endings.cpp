#include <unistd.h>

#include <csignal>

#include <mpi.h>

#include "mpi_tests.hpp"

namespace troupe::test {
namespace {

/// Rank 2 stands still from here on, and a device host is lost: no order to halt is answered by
/// all.
void stop_one(Context& c) {
  c.world().barrier();
  if (c.rank() == 2) ::kill(::getpid(), SIGSTOP);
  if (c.first()) c.device().inject(memory::FaultKind::kill);
}

bool stands_in_finalize = false;

}  // namespace
}  // namespace troupe::test

/// In the place of MPI's: after MPI's part one rank stands still in it, as some versions do.
extern "C" int MPI_Finalize() {
  const int outcome = PMPI_Finalize();
  while (troupe::test::stands_in_finalize) ::pause();
  return outcome;
}

namespace troupe::test {

/// A rank that does not come back from MPI_Finalize ends with the status of its program.
TROUPE_MPI_CASE(endless_finalize) {
  stands_in_finalize = c.rank() == c.world().size() - 1;
}

/// A job that has ended ends, although a rank does not answer.
TROUPE_MPI_CASE(silent_rank) {
  stop_one(c);
  while (c.world().wait_active().ok()) std::this_thread::sleep_for(1ms);
  const auto nop = c.world().device(Rank(2)).nop();  // of a rank that will never answer
  c.require(nop.wait_for(kDeadline), "what is asked of a silent rank does not resolve");
  throw CollectiveException(c.world().wait_active().error());
}

/// The same in a run, whose ranks meet when the world ends.
TROUPE_MPI_CASE(silent_rank_in_run) {
  auto data = c.device().alloc<double>(1000);
  c.device().fill(data, 1.0);
  Checkpoint state(c.device());
  state.add("data", data);
  RunOptions options;
  options.resized = [] {};
  c.world().run(
      state,
      [&](std::int64_t step) {
        if (step == 3) stop_one(c);
        c.world().all_reduce(data, ReduceOp::max).get();
        return Step::again;
      },
      options);
}

}  // namespace troupe::test
