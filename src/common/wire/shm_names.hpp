#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace troupe::wire {

/// What NCCL calls its files in shared memory, for mkstemp(3). It removes their names when a
/// communicator is destroyed; a process that is killed leaves them behind.
inline constexpr std::string_view kShmPattern = "/dev/shm/nccl-XXXXXX";

/// The last kCapacity names of that kind which a device host has made; the rank removes them after
/// its end. Written by the device host's threads, read by the rank; zero-filled memory holds none.
class ShmNames {
 public:
  static constexpr std::size_t kCapacity = 512;

  /// Notes a path that mkstemp(3) has made; of another pattern: does nothing.
  void note(std::string_view path) noexcept;
  /// All that are noted, as paths; what cannot be a name is left out, for the memory may hold
  /// anything.
  [[nodiscard]] std::vector<std::string> paths() const;

 private:
  static constexpr std::size_t kSuffix = 6;
  using Name = std::array<std::atomic<char>, kSuffix>;

  std::atomic<std::uint64_t> noted_;
  std::array<Name, kCapacity> names_;
};

}  // namespace troupe::wire
