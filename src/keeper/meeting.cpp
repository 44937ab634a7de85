#include "keeper/meeting.hpp"

#include <mpi.h>

#include <sys/random.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include "common/ipc/system_error.hpp"
#include "keeper/keeper.hpp"
#include "keeper/place.hpp"

namespace troupe::keeper {

void end_before_start(const Error& error) {
  std::fprintf(stderr, "troupe-keeper: %s\n", error.to_string().c_str());
  MPI_Abort(MPI_COMM_WORLD, kExitUsage);
  std::_Exit(kExitUsage);
}

Job meet(int listener, int own, int spares) {
  Job job;
  int size = 1;
  MPI_Comm_rank(MPI_COMM_WORLD, &job.rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  if (spares >= size) {
    if (job.rank == 0) {
      std::fprintf(stderr,
                   "troupe-keeper: spares = %d: the job has %d processes, and none is left\n",
                   spares, size);
    }
    MPI_Finalize();
    std::exit(kExitUsage);
  }
  auto card = need(describe_place(listener, own));
  card.place = job.rank;
  MPI_Comm node = MPI_COMM_NULL;
  MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node);
  MPI_Comm_rank(node, &card.local_rank);
  MPI_Comm_size(node, &card.local_size);
  card.node = job.rank;
  MPI_Bcast(&card.node, 1, MPI_INT, 0, node);
  MPI_Comm_free(&node);
  job.cards.resize(static_cast<std::size_t>(size));
  MPI_Allgather(&card, sizeof card, MPI_BYTE, job.cards.data(), sizeof card, MPI_BYTE,
                MPI_COMM_WORLD);
  const bool one_node = std::all_of(job.cards.begin(), job.cards.end(),
                                    [&](const Card& other) { return other.node == card.node; });
  job.several_hosts = one_node ? 0 : 1;
  if (::getrandom(job.cookie.data(), sizeof job.cookie, 0) != sizeof job.cookie)
    end_before_start(ipc::system_error("getrandom"));
  MPI_Bcast(job.cookie.data(), static_cast<int>(job.cookie.size()), MPI_UINT64_T, 0,
            MPI_COMM_WORLD);
  return job;
}

}  // namespace troupe::keeper
