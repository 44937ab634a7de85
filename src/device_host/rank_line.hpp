#pragma once

#include <optional>
#include <utility>

#include "common/ipc/socket.hpp"
#include "common/wire/control.hpp"

namespace troupe::host {

/// The device host's end of the socket to its rank. The reactor's thread only.
class RankLine {
 public:
  explicit RankLine(ipc::Socket socket) : socket_(std::move(socket)) {}

  /// A rank that cannot be told is as good as gone.
  void send(const wire::FromHost& message, std::uint64_t request = 0) {
    if (!wire::send_control(socket_, message, request).ok()) gone_ = true;
  }
  /// For what may be long. Errors: it could not be sent for want of a descriptor.
  Result<void> try_send(const wire::FromHost& message, std::uint64_t request = 0) {
    auto sent = wire::send_control(socket_, message, request);
    gone_ = gone_ || sent.code() == Errc::stopped;
    return gone_ ? Result<void>() : sent;
  }
  /// The next message; nothing if there is none now.
  std::optional<wire::FromRank> receive() {
    auto message = wire::receive_from_rank(socket_);
    gone_ = gone_ || !message.ok();
    return message.ok() ? std::move(*message) : std::nullopt;
  }

  /// The rank has ended, or sends nonsense.
  [[nodiscard]] bool gone() const noexcept { return gone_; }
  [[nodiscard]] int fd() const noexcept { return socket_.fd(); }

 private:
  ipc::Socket socket_;
  bool gone_ = false;
};

}  // namespace troupe::host
