#pragma once

#include <utility>

#include <troupe/clock.hpp>

#include "common/ipc/ring.hpp"
#include "common/ipc/shared_memory.hpp"
#include "common/wire/port_layout.hpp"

namespace troupe::host {

/// The memory that a device host shares with its rank: the header, and the data of both rings.
class Port {
 public:
  /// Errors: invalid if the rank is of another version of troupe, or knows other operations.
  static Result<Port> open(UniqueFd segment);

  [[nodiscard]] wire::PortHeader& header() const {
    return *reinterpret_cast<wire::PortHeader*>(segment_.data());
  }
  [[nodiscard]] const wire::HostSettings& settings() const { return header().settings; }
  [[nodiscard]] ipc::RingConsumer commands() const {
    return {&header().command, segment_.data() + wire::kPortDataOffset, header().command_capacity};
  }
  [[nodiscard]] ipc::RingProducer replies() const {
    return {&header().reply, segment_.data() + wire::kPortDataOffset + header().command_capacity,
            header().reply_capacity};
  }

  void beat(TimePoint now) const {
    header().heartbeat_ns.store(now.count(), std::memory_order_release);
  }
  /// The command leaves the ring, whatever becomes of it.
  void note_taken(std::uint64_t ticket) const {
    auto& newest = header().issued_ticket;
    if (ticket > newest.load(std::memory_order_relaxed))
      newest.store(ticket, std::memory_order_release);
  }

 private:
  explicit Port(ipc::SharedMemory segment) : segment_(std::move(segment)) {}

  ipc::SharedMemory segment_;
};

}  // namespace troupe::host
