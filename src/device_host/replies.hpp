#pragma once

#include <atomic>
#include <cstdint>
#include <cstring>
#include <deque>
#include <string>

#include <troupe/error.hpp>

#include "common/ipc/doorbell.hpp"
#include "common/ipc/ring.hpp"
#include "common/wire/record.hpp"

namespace troupe::host {

/// The replies of a device host on their way to the rank: into the ring while it has room, queued
/// here until then. What is to be sent after the rank has halted the host, until it resumes, is
/// dropped: a peer may have given the communicator up, and what its dying kernels still send must
/// not be taken for a result. The reactor's thread only.
class Replies {
 public:
  /// `halts`: PortHeader::halts.
  Replies(ipc::RingProducer ring, ipc::Doorbell bell, const std::atomic<std::uint32_t>& halts)
      : ring_(ring), bell_(std::move(bell)), halts_(halts), resumed_(halts.load()) {}

  /// The rank has the host go on after so many halts.
  void resume(std::uint32_t halts) { resumed_ = halts; }
  /// The rank has halted the host since.
  [[nodiscard]] bool halted() const { return halts_.load(std::memory_order_acquire) != resumed_; }

  /// Tickets [first, first + count) ended like this. `spoilt`: they had begun, and what they were
  /// to write is not to be used.
  void send(std::uint64_t first, std::uint32_t count, const Result<void>& outcome,
            bool spoilt = false) {
    bool wake = false;
    if (!flush() || !write(first, count, outcome, spoilt, wake))
      waiting_.push_back({first, count, outcome, spoilt});
    if (wake) bell_.ring();
  }
  /// Somebody of the rank looks for them, and need not be woken.
  [[nodiscard]] bool awaited() const noexcept { return !ring_.consumer_sleeps(); }
  /// True once nothing waits for room.
  bool flush() {
    bool wake = false;
    for (; !waiting_.empty(); waiting_.pop_front()) {
      const auto& [first, count, outcome, spoilt] = waiting_.front();
      if (!write(first, count, outcome, spoilt, wake)) break;
    }
    if (wake) bell_.ring();
    return waiting_.empty();
  }

 private:
  struct Reply {
    std::uint64_t first;
    std::uint32_t count;
    Result<void> outcome;
    bool spoilt;
  };

  bool write(std::uint64_t first, std::uint32_t count, const Result<void>& outcome, bool spoilt,
             bool& wake) {
    if (halted()) return true;  // seen after the end of what it tells of
    const std::string_view text =
        outcome.ok() ? std::string_view{}
                     : std::string_view(outcome.error().message).substr(0, wire::kMaxReplyText);
    auto room = ring_.reserve(sizeof(wire::ReplyHeader) + text.size());
    if (!room.ok())
      return true;  // the rank's side is nonsense: it will end us, nothing to say it with
    if (room->empty()) return false;
    const wire::ReplyHeader header{first,
                                   count,
                                   static_cast<std::uint32_t>(outcome.code()),
                                   outcome.ok() ? 0 : outcome.error().native,
                                   static_cast<std::uint16_t>(text.size()),
                                   spoilt ? wire::kSpoilt : std::uint16_t{0}};
    std::memcpy(room->data(), &header, sizeof header);
    if (!text.empty()) std::memcpy(room->data() + sizeof header, text.data(), text.size());
    wake |= ring_.commit();
    return true;
  }

  ipc::RingProducer ring_;
  ipc::Doorbell bell_;
  const std::atomic<std::uint32_t>& halts_;
  std::uint32_t resumed_;
  std::deque<Reply> waiting_;
};

}  // namespace troupe::host
