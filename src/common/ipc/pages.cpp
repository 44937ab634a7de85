#include "common/ipc/pages.hpp"

#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <string_view>

#include "common/ipc/system_error.hpp"

namespace troupe::ipc {
namespace {

constexpr std::uint64_t kPiece = std::uint64_t{256} << 20;  ///< taken at once

/// A line "key: N kB" of /proc/meminfo, in bytes.
std::uint64_t memory_info(std::string_view key) {
  std::ifstream file("/proc/meminfo");
  for (std::string word; file >> word;) {
    if (std::uint64_t number = 0; word == key && file >> number) return number * 1024;
    std::getline(file, word);
  }
  return 0;
}

std::string sized(const std::string& what, std::uint64_t bytes) {
  return what + " of " + std::to_string(bytes) + " bytes";
}

Result<void> look_for(const std::string& what, std::uint64_t bytes, std::uint64_t more) {
  const auto available = available_memory(), kept = total_memory() / 16;
  if (available == 0 || (more <= available && kept <= available - more)) return {};
  return Error{Errc::out_of_memory, 0,
               sized(what, bytes) + ", with " + std::to_string(available) +
                   " available, of which " + std::to_string(kept) + " stay free"};
}

}  // namespace

std::uint64_t total_memory() {
  return memory_info("MemTotal:");
}

std::uint64_t available_memory() {
  return memory_info("MemAvailable:");
}

Result<void> check_file_size(const std::string& what, std::uint64_t bytes) {
  rlimit limit{};
  if (::getrlimit(RLIMIT_FSIZE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY ||
      bytes <= limit.rlim_cur)
    return {};
  return Error{Errc::out_of_memory, EFBIG,
               sized(what, bytes) + " is shared memory, and so a file: above the limit of " +
                   std::to_string(limit.rlim_cur) + " bytes (RLIMIT_FSIZE; see `ulimit -f`)"};
}

Result<void> take_pages(int fd, const std::string& what, std::uint64_t bytes, Look look) {
  if (auto allowed = check_file_size(what, bytes); !allowed) return allowed;
  if (look == Look::first) {
    if (auto room = look_for(what, bytes, bytes); !room) return room;
  }
  if (::ftruncate(fd, static_cast<::off_t>(bytes)) != 0) return system_error("ftruncate");
  // In pieces, because other ranks of this host take theirs at the same time: all together may not
  // fit.
  for (std::uint64_t done = 0; done < bytes;) {
    if (look == Look::first) {
      if (auto room = look_for(what, bytes, bytes - done); !room) return room;
    }
    const auto piece = std::min(bytes - done, kPiece);
    const int error =
        ::posix_fallocate(fd, static_cast<::off_t>(done), static_cast<::off_t>(piece));
    if (error == EINTR) continue;
    if (error != 0) return system_error("posix_fallocate of " + sized(what, bytes), error);
    done += piece;
  }
  return {};
}

}  // namespace troupe::ipc
