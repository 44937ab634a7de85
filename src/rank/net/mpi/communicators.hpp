#pragma once

#include <mpi.h>

#include "rank/net/mpi/mpi_session.hpp"

namespace troupe::rank_process {

/// Those of this node, and the duplicates of MPI_COMM_WORLD for what speaks on its own thread: one
/// for the world's messages, two for those and the bytes of tokens, one for actors' messages, one
/// for the collective check, one for the end of the job, one for making groups.
struct MpiSession::Communicators {
  MPI_Comm node = MPI_COMM_NULL;
  MPI_Comm world = MPI_COMM_NULL;
  MPI_Comm tokens = MPI_COMM_NULL;
  MPI_Comm bulk = MPI_COMM_NULL;
  MPI_Comm actors = MPI_COMM_NULL;
  MPI_Comm end = MPI_COMM_NULL;
  MPI_Request ending = MPI_REQUEST_NULL;  ///< see Session::all_have_ended()
  MPI_Comm checks = MPI_COMM_NULL;
  /// For making groups alone. Open MPI sends what MPI_Comm_create_group exchanges with the tag that
  /// it is given, so on a communicator that a transport probes the messages for a rank that is late
  /// would be taken for the transport's, and lost.
  MPI_Comm groups = MPI_COMM_NULL;
};

}  // namespace troupe::rank_process
