#pragma once

#include <mpi.h>

#include "rank/net/mpi_session.hpp"

namespace troupe::rank {

/// The duplicates of MPI_COMM_WORLD: one for host collectives, one for the world's messages, one
/// for what goes on beside the program.
struct MpiSession::Communicators {
  MPI_Comm host = MPI_COMM_NULL;
  MPI_Comm node = MPI_COMM_NULL;
  MPI_Comm world = MPI_COMM_NULL;
  MPI_Comm background = MPI_COMM_NULL;
};

}  // namespace troupe::rank
