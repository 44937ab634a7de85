#pragma once

#include <cstddef>
#include <functional>
#include <vector>

namespace troupe::rank_process {

/// Messages of one kind between this rank and the others. They move only while they are looked at:
/// whoever owns this calls receive() and advance() again and again. One thread.
class Messages {
 public:
  using Arrived = std::function<void(int rank, int tag, std::vector<std::byte> bytes)>;

  virtual ~Messages() = default;

  /// Puts a message on its way; messages to one rank arrive in order.
  virtual void send(int rank, int tag, std::vector<std::byte> bytes) = 0;
  /// Calls `arrived` with each message that has come. True if there was one.
  virtual bool receive(const Arrived& arrived) = 0;
  /// Lets go of what has been sent.
  virtual void advance() = 0;
  /// Some messages are still on their way.
  [[nodiscard]] virtual bool sending() const = 0;
  /// True once all ranks call it, again and again: whatever they have sent can be received then.
  virtual bool all_leave() = 0;
  /// all_leave() has been called, and was not true yet.
  [[nodiscard]] virtual bool leaves() const = 0;
};

}  // namespace troupe::rank_process
