#pragma once

#include <mpi.h>

#include <vector>

namespace troupe::rank_process {

/// What is waited for. Of bulk data MPI moves a part at each look, so the pauses in between stay
/// short: with pauses of a millisecond it moves 0.1 GB/s.
enum class Awaited { message, data };

/// Waits for all of the requests, and lets others run meanwhile: it looks for them for a moment, if
/// there are cores enough for all ranks of the host, and then sleeps between looks. MPI's own
/// waiting would spin, or yield: a process that does nothing but yield keeps others of the core
/// from running for seconds on some kernels (seen with Linux 6.18).
void wait_for(std::vector<MPI_Request>& requests, Awaited what = Awaited::message);

/// From now on nobody looks without sleeping: there are fewer cores than ranks.
void share_cores() noexcept;

}  // namespace troupe::rank_process
