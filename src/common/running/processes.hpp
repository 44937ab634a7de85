#pragma once

#include <string>
#include <vector>

#include <troupe/error.hpp>

#include "common/ipc/unique_fd.hpp"

/// What /proc tells of other processes.
namespace troupe::running {

/// The processes of this user.
std::vector<int> own_processes();
/// The descriptors of a process that lead to memory which was made with this label (see
/// ipc::SharedMemory), opened to be read. Empty where the process is gone, or may not be looked at.
std::vector<UniqueFd> shared_memory_of(int pid, const std::string& label);
/// Its arguments, separated by spaces; empty: it is gone.
std::string command_line(int pid);
/// As ps shows it: 'R', 'S', 'T' and so on; 0: it is gone.
char state_of(int pid);

}  // namespace troupe::running
