#pragma once

#include <cstddef>
#include <cstdint>

#include <troupe/lib/operation.hpp>

namespace troupe::host {

/// Each lane has two: the one that it is named after, and a detour for commands that must not stand
/// behind one that waits for other ranks. One lane, whose library says that its commands may
/// overlap, has side queues beside them. What is queued on one queue executes in order; an engine
/// may put all detours on one stream.
struct Queue {
  static constexpr std::uint8_t kSides = 3;  ///< side queues
  static constexpr std::size_t kWays = 2 + kSides;

  Lane lane{};
  bool detour = false;
  std::uint8_t side = 0;  ///< from 1: which side queue

  Queue() = default;
  constexpr Queue(Lane of, bool by_detour = false) : lane(of), detour(by_detour) {}
  static constexpr Queue aside(Lane of, std::uint8_t side) noexcept {
    Queue queue(of);
    queue.side = side;
    return queue;
  }
  constexpr bool operator==(const Queue& other) const noexcept { return index() == other.index(); }

  [[nodiscard]] constexpr std::size_t index() const noexcept {
    if (side != 0) return 2 * kLaneCount + side - 1;
    return static_cast<std::size_t>(lane) + (detour ? kLaneCount : 0);
  }
  /// Among the queues of its lane.
  [[nodiscard]] constexpr std::size_t way() const noexcept {
    return side != 0 ? 1u + side : detour ? 1 : 0;
  }
  /// Which lane a side queue is of, its index does not tell: it comes as one of the first.
  static constexpr Queue at(std::size_t index) noexcept {
    if (index >= 2 * kLaneCount)
      return aside(Lane{}, static_cast<std::uint8_t>(index - 2 * kLaneCount + 1));
    return {static_cast<Lane>(index % kLaneCount), index >= kLaneCount};
  }
};
inline constexpr std::size_t kQueueCount = 2 * kLaneCount + Queue::kSides;

}  // namespace troupe::host
