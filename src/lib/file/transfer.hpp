#pragma once

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>

#include <troupe/lib/file.hpp>

#include "common/ipc/unique_fd.hpp"

/// What both engines need to move bytes between memory that the processor sees and a file.
namespace troupe::file {

/// Which way the bytes go: into the file, or out of it.
enum class Direction { write, read };
template <Operation Op>
inline constexpr Direction direction_of =
    std::is_same_v<Op, Write> ? Direction::write : Direction::read;

/// How far a transfer came.
struct Moved {
  std::uint64_t bytes = 0;
  int error = 0;  ///< errno; 0: all has been moved
};

/// The path in a record's inline bytes; check_parts() has held.
template <Operation Op>
std::string path_in(const Op& op, std::span<const std::byte> data) {
  return {reinterpret_cast<const char*>(data.data()), op.path_bytes};
}

/// Opens a file for one direction; `more`: further flags. An invalid descriptor, and errno.
inline UniqueFd open(const std::string& path, Direction direction, int more = 0) {
  const int flags = direction == Direction::write ? O_WRONLY | O_CREAT : O_RDONLY;
  return UniqueFd(::open(path.c_str(), flags | O_CLOEXEC | O_NONBLOCK | more, 0666));
}

/// Moves bytes between `memory` and the file, from `offset` on, until all are moved, the file ends
/// (ENODATA) or something fails. The caller holds back SIGXFSZ.
inline Moved move(int fd, Direction direction, std::byte* memory, std::uint64_t bytes,
                  std::uint64_t offset) {
  constexpr std::uint64_t kMost = std::uint64_t{1} << 30;  // of one call
  Moved moved;
  while (moved.bytes < bytes) {
    const auto count = static_cast<std::size_t>(std::min(kMost, bytes - moved.bytes));
    const auto at = static_cast<off_t>(offset + moved.bytes);
    const auto done = direction == Direction::write ? ::pwrite(fd, memory + moved.bytes, count, at)
                                                    : ::pread(fd, memory + moved.bytes, count, at);
    if (done < 0 && errno == EINTR) continue;
    if (done < 0) return {moved.bytes, errno};
    if (done == 0) return {moved.bytes, direction == Direction::write ? ENOSPC : ENODATA};
    moved.bytes += static_cast<std::uint64_t>(done);
  }
  return moved;
}

inline void put_words(Done& done, const std::string& words) {
  std::memset(done.text, 0, sizeof done.text);
  words.copy(done.text, sizeof done.text - 1);
}

/// Notes how far a transfer from `offset` on came. Of a long path its end is told.
inline void note(Done& done, const Moved& moved, const std::string& path, std::uint64_t offset) {
  done.bytes = moved.bytes, done.error = moved.error;
  if (moved.error == 0) return;
  constexpr std::size_t kMostOfPath = 40;
  const auto where =
      path.size() <= kMostOfPath ? path : "..." + path.substr(path.size() - kMostOfPath);
  put_words(done, where + " at byte " + std::to_string(offset + moved.bytes) + ": " +
                      (moved.error == ENODATA ? "it ends there" : std::strerror(moved.error)));
}

}  // namespace troupe::file
