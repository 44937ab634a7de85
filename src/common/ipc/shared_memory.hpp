#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include <troupe/error.hpp>

#include "common/ipc/pages.hpp"
#include "common/ipc/unique_fd.hpp"

namespace troupe::ipc {

/// An anonymous shared-memory segment (memfd), mapped read-write. It has no name in any file
/// system: nothing is left behind however its processes end.
class SharedMemory {
 public:
  SharedMemory() = default;
  SharedMemory(SharedMemory&& other) noexcept;
  SharedMemory& operator=(SharedMemory&& other) noexcept;
  ~SharedMemory();

  /// Makes a zero-filled segment whose pages are really there: memory that does not fit is an error
  /// here, not a SIGBUS later. No process can change its size. `label` shows in /proc/PID/maps.
  static Result<SharedMemory> create(const std::string& label, std::size_t bytes,
                                     Look look = Look::never);
  /// Maps a segment received from another process; fails if it is shorter than `bytes`.
  static Result<SharedMemory> map(UniqueFd fd, std::size_t bytes);
  /// True if a descriptor's file can never become shorter, as create() makes them: to read a
  /// mapping of one that does is a SIGBUS. Ask this of segments of processes that are not trusted.
  static bool keeps_size(int fd) noexcept;

  [[nodiscard]] std::byte* data() const noexcept { return data_; }
  [[nodiscard]] std::size_t size() const noexcept { return size_; }
  [[nodiscard]] int fd() const noexcept { return fd_.get(); }

 private:
  UniqueFd fd_;
  std::byte* data_ = nullptr;
  std::size_t size_ = 0;
};

}  // namespace troupe::ipc
