#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include <troupe/error.hpp>

#include "common/ipc/unique_fd.hpp"

namespace troupe::ipc {

/// A message and the descriptor that may come with it.
struct Packet {
  std::vector<std::byte> bytes;
  UniqueFd fd;
  bool fd_lost = false;  ///< one came along, and this process may have no more of them
};

/// One end of a Unix socket pair that keeps message boundaries and passes file descriptors. The end
/// of the peer process, however it came, is seen as Errc::stopped.
class Socket {
 public:
  /// Larger messages go through a memfd.
  static constexpr std::size_t kMaxPacket = 32 * 1024;

  Socket() = default;
  explicit Socket(UniqueFd fd) : fd_(std::move(fd)) {}
  static Result<std::pair<Socket, Socket>> make_pair();

  /// Sends one message; `fd` (or -1) is duplicated into the receiver. Blocks while the socket is
  /// full.
  Result<void> send(std::span<const std::byte> bytes, int fd = -1) const;
  /// The next message; nullopt if there is none now.
  Result<std::optional<Packet>> receive() const;

  [[nodiscard]] int fd() const noexcept { return fd_.get(); }
  void close() { fd_.reset(); }
  [[nodiscard]] int release() { return fd_.release(); }

 private:
  UniqueFd fd_;
};

}  // namespace troupe::ipc
