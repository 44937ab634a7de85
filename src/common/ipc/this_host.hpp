#pragma once

#include <array>

namespace troupe::ipc {

/// Names the host. A process that reads the same shares the kernel with this one, sees it under its
/// number, and is on the same host for the network and for NCCL (NCCL_HOSTID). No name of a file or
/// of the network: two containers on one machine have different ones. Not terminated by a zero.
std::array<char, 128> this_host();

}  // namespace troupe::ipc
