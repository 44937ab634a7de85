#pragma once

#include <cstddef>

#include <troupe/lib/operation.hpp>

namespace troupe::host {

/// Each lane has two: the one that it is named after, and a detour for commands that must not stand
/// behind one that waits for other ranks. What is queued on one queue executes in order; an engine
/// may put all detours on one stream.
struct Queue {
  Lane lane{};
  bool detour = false;

  Queue() = default;
  constexpr Queue(Lane of, bool by_detour = false) : lane(of), detour(by_detour) {}
  constexpr bool operator==(const Queue&) const = default;

  [[nodiscard]] constexpr std::size_t index() const noexcept {
    return static_cast<std::size_t>(lane) + (detour ? kLaneCount : 0);
  }
  static constexpr Queue at(std::size_t index) noexcept {
    return {static_cast<Lane>(index % kLaneCount), index >= kLaneCount};
  }
};
inline constexpr std::size_t kQueueCount = 2 * kLaneCount;

}  // namespace troupe::host
