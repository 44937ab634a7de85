#pragma once

#include <optional>
#include <string>

namespace troupe::rank_process {

/// The function of MPI that the process's main thread is in just now ("MPI_Allreduce"): the
/// outermost, which the program has called. Nothing if it is in none, or does not answer within 100
/// ms.
///
/// The thread is asked by SIGURG, which does nothing where nobody handles it; a handler of the
/// program's is put back. System calls that no signal restarts, such as poll, return EINTR there:
/// so this is only for a program that has stood still for long. Any thread but the main one.
[[nodiscard]] std::optional<std::string> mpi_call_of_main_thread();

}  // namespace troupe::rank_process
