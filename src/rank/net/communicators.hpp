#pragma once

#include <mpi.h>

#include <string>
#include <vector>

#include "rank/net/host_group.hpp"
#include "rank/net/mpi_session.hpp"

namespace troupe::rank_process {

/// One for a group's host collectives, one for what goes on beside the program.
struct HostGroup::Communicators {
  MPI_Comm host = MPI_COMM_NULL;
  MPI_Comm background = MPI_COMM_NULL;
  [[nodiscard]] MPI_Comm host_or_throw() const;
};

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
  MPI_Request ending = MPI_REQUEST_NULL;  ///< see MpiSession::all_have_ended()
  MPI_Comm checks = MPI_COMM_NULL;
  /// For making groups alone. Open MPI sends what MPI_Comm_create_group exchanges with the tag that
  /// it is given, so on a communicator that a transport probes the messages for a rank that is late
  /// would be taken for the transport's, and lost.
  MPI_Comm groups = MPI_COMM_NULL;
};

std::vector<std::string> gather_text_over(MPI_Comm communicator, const std::string& text);

}  // namespace troupe::rank_process
