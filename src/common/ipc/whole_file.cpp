#include "common/ipc/whole_file.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "common/ipc/system_error.hpp"

namespace troupe::ipc {

Result<std::vector<std::byte>> read_whole(int fd) {
  struct stat info {};
  if (::fstat(fd, &info) != 0) return system_error("fstat");
  std::vector<std::byte> bytes(static_cast<std::size_t>(info.st_size));
  std::size_t got = 0;
  while (got < bytes.size()) {
    const auto step = ::pread(fd, bytes.data() + got, bytes.size() - got, static_cast<off_t>(got));
    if (step < 0 && errno == EINTR) continue;
    if (step < 0) return system_error("pread");
    if (step == 0) break;  // it has become shorter
    got += static_cast<std::size_t>(step);
  }
  bytes.resize(got);
  return bytes;
}

Result<void> write_whole(int fd, std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const auto step = ::write(fd, bytes.data(), bytes.size());
    if (step < 0 && errno == EINTR) continue;
    if (step < 0) return system_error("write");
    bytes = bytes.subspan(static_cast<std::size_t>(step));
  }
  return {};
}

}  // namespace troupe::ipc
