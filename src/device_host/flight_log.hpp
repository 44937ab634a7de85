#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string_view>

#include "common/core/ticks.hpp"
#include "common/ipc/shared_memory.hpp"
#include "common/wire/flight_layout.hpp"

namespace troupe::host {

/// The device host's pen in the rank's flight recorder. The reactor's thread only; a few stores an
/// operation.
class FlightLog {
 public:
  /// Takes the descriptor of the rank's segment.
  static Result<FlightLog> open(int fd) {
    UniqueFd owned(fd);
    auto head = ipc::SharedMemory::map(UniqueFd(::dup(owned.get())), sizeof(wire::FlightHeader));
    if (!head) return head.error();
    const auto header = *reinterpret_cast<const wire::FlightHeader*>(head->data());
    if (header.version != wire::kFlightVersion || (header.capacity & (header.capacity - 1)) != 0 ||
        (header.activities & (header.activities - 1)) != 0)
      return Error{Errc::invalid, 0, "the flight recorder's segment is malformed"};
    auto segment = ipc::SharedMemory::map(std::move(owned),
                                          wire::flight_bytes(header.capacity, header.activities));
    if (!segment) return segment.error();
    FlightLog log;
    log.segment_ = std::move(*segment);
    log.capacity_ = header.capacity;
    log.activities_ = header.activities;
    return log;
  }

  /// What is issued from now on is issued now: once a round of the reactor, not once an operation.
  void stamp() noexcept { now_ = ticks(); }
  void issued(std::uint64_t ticket, std::uint32_t opcode = 0) noexcept {
    if (capacity_ == 0) return;
    auto& slot = slot_of(ticket);
    slot.ticket.store(0, std::memory_order_relaxed);
    slot.issued.store(now_, std::memory_order_relaxed);
    slot.completed.store(0, std::memory_order_relaxed);
    slot.queue.store(wire::flight_word(opcode, 0), std::memory_order_relaxed);
    slot.ticket.store(ticket, std::memory_order_release);
  }
  /// It stands on the queue with this index.
  void queued(std::uint64_t ticket, std::size_t queue) noexcept {
    if (capacity_ == 0) return;
    auto& word = slot_of(ticket).queue;
    const auto opcode = wire::opcode_in(word.load(std::memory_order_relaxed));
    word.store(wire::flight_word(opcode, static_cast<std::uint32_t>(queue + 1)),
               std::memory_order_relaxed);
  }
  /// The tickets [first, first + count) were found done now.
  void completed(std::uint64_t first, std::uint32_t count) noexcept {
    if (capacity_ == 0) return;
    const auto now = ticks();
    for (auto ticket = first; ticket < first + count; ++ticket) {
      auto& slot = slot_of(ticket);
      if (slot.ticket.load(std::memory_order_relaxed) == ticket)
        slot.completed.store(now, std::memory_order_relaxed);
    }
  }

  /// Whether the rank wants to know what the GPU does.
  [[nodiscard]] bool traces_gpu() const noexcept { return activities_ != 0; }
  /// Any thread; as long as this lives.
  [[nodiscard]] wire::HostTimes& times() const noexcept {
    return *reinterpret_cast<wire::HostTimes*>(segment_.data() + wire::kHostTimesOffset);
  }
  /// What the GPU did. Any thread. Without room for it, it is counted.
  void activity(std::uint64_t ticket, std::int64_t begin, std::int64_t end, std::uint32_t stream,
                std::string_view name) noexcept {
    if (activities_ == 0) return;
    auto* const ring_at = segment_.data() + wire::activities_offset(capacity_);
    auto& ring = *reinterpret_cast<wire::ActivityRing*>(ring_at);
    auto* const slots = reinterpret_cast<wire::ActivitySlot*>(ring_at + sizeof ring);
    auto at = ring.claimed.load(std::memory_order_relaxed);
    do {
      if (at - ring.read.load(std::memory_order_acquire) >= activities_) {
        ring.dropped.fetch_add(1, std::memory_order_relaxed);
        return;
      }
    } while (!ring.claimed.compare_exchange_weak(at, at + 1, std::memory_order_relaxed));
    auto& slot = slots[at & (activities_ - 1)];
    slot.ticket = ticket;
    slot.begin = begin;
    slot.end = end;
    slot.stream = stream;
    slot.kind = 0;
    const auto length = std::min(name.size(), sizeof slot.name - 1);
    std::memcpy(slot.name, name.data(), length);
    slot.name[length] = 0;
    slot.number.store(at + 1, std::memory_order_release);
  }

 private:
  FlightLog() = default;

  [[nodiscard]] wire::FlightSlot& slot_of(std::uint64_t ticket) const noexcept {
    auto* const slots =
        reinterpret_cast<wire::FlightSlot*>(segment_.data() + wire::kFlightDataOffset);
    return slots[ticket & (capacity_ - 1)];
  }

  ipc::SharedMemory segment_;
  std::uint64_t capacity_ = 0;
  std::uint64_t activities_ = 0;
  std::uint64_t now_ = 0;
};

}  // namespace troupe::host
