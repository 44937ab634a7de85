#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include <troupe/error.hpp>

namespace troupe::ipc {

/// Everything in a file or memfd, from its start, wherever its position is. Errors: io.
Result<std::vector<std::byte>> read_whole(int fd);
/// Writes at the file's position. Errors: io.
Result<void> write_whole(int fd, std::span<const std::byte> bytes);

}  // namespace troupe::ipc
