#pragma once

#include <mpi.h>

#include <mutex>
#include <utility>
#include <vector>

#include "rank/net/mpi_session.hpp"

namespace troupe::rank {

/// The duplicates of MPI_COMM_WORLD: one for all ranks' host collectives and those of groups, one
/// for the world's messages, one for what goes on beside the program.
struct MpiSession::Communicators {
  MPI_Comm all = MPI_COMM_NULL;
  MPI_Comm host = MPI_COMM_NULL;  ///< `all`, or the adopted group's; MPI_COMM_NULL: outside
  [[nodiscard]] MPI_Comm host_or_throw() const;
  /// Made and perhaps adopted. They live to the end: a member may still be about to use one.
  std::mutex mutex;
  std::vector<std::pair<MPI_Comm, std::vector<int>>> groups;
  MPI_Comm node = MPI_COMM_NULL;
  MPI_Comm world = MPI_COMM_NULL;
  MPI_Comm tokens = MPI_COMM_NULL;
  MPI_Comm bulk = MPI_COMM_NULL;
  MPI_Comm background = MPI_COMM_NULL;
};

}  // namespace troupe::rank
