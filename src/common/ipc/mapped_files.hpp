#pragma once

#include <sys/types.h>

#include <string>
#include <string_view>
#include <vector>

namespace troupe::ipc {

/// What NCCL calls its files in shared memory. It removes their names when a communicator is
/// destroyed; a process that is killed leaves them behind.
inline constexpr std::string_view kFilesOfNccl = "/dev/shm/nccl-";

/// The files with paths that begin so, which the process has mapped and which still have a name.
/// None if the process is gone.
std::vector<std::string> mapped_files(pid_t process, std::string_view prefix);

}  // namespace troupe::ipc
