#pragma once

#include <cstdint>
#include <memory>

namespace troupe::bench {

/// An actor of CAF in one of two processes, to which the other sends over CAF's io module (TCP,
/// this host's loopback). The host's side and the sender's are the same class in different
/// processes.
class RemoteCaf {
 public:
  /// The host's side: publishes the actor on a free port. Null where CAF is not installed, or the
  /// port cannot be opened.
  static std::unique_ptr<RemoteCaf> host();
  /// The sender's side. Null as above.
  static std::unique_ptr<RemoteCaf> connect(std::uint16_t port);
  virtual ~RemoteCaf() = default;

  [[nodiscard]] virtual std::uint16_t port() const = 0;
  /// Sends as many messages of 64 bytes, and waits until the actor has had them all.
  virtual void tell(std::int64_t count) = 0;
  /// Asks as many questions of 64 bytes, one after the other.
  virtual void ask(std::int64_t count) = 0;
};

}  // namespace troupe::bench
