#pragma once

#include <mpi.h>

#include "rank/net/mpi_session.hpp"

namespace troupe::rank {

/// The duplicates of MPI_COMM_WORLD: one for host collectives, one for each kind of message.
struct MpiSession::Communicators {
  MPI_Comm host = MPI_COMM_NULL;
  MPI_Comm node = MPI_COMM_NULL;
  MPI_Comm world = MPI_COMM_NULL;
  MPI_Comm tokens = MPI_COMM_NULL;
  MPI_Comm bulk = MPI_COMM_NULL;
};

}  // namespace troupe::rank
