#pragma once

#include <atomic>
#include <cstdint>

/// What a device host tells the flight recorder: when it issued each operation and when it found it
/// done. The segment belongs to the rank and outlives every device host; the rank keeps the rest of
/// a record in its own memory, so that neither writes where the other does.
namespace troupe::wire {

struct FlightHeader {
  std::uint64_t version;
  std::uint64_t capacity;  ///< slots that follow, a power of two; 0: nothing is recorded
};

/// One operation, in the slot of its ticket modulo the capacity. Times are ticks() of this node.
struct FlightSlot {
  std::atomic<std::uint64_t> ticket;     ///< stored last; 0: empty
  std::atomic<std::uint64_t> issued;     ///< given to the engine
  std::atomic<std::uint64_t> completed;  ///< its batch was found done; 0: not yet
  std::uint64_t reserved;
};
static_assert(sizeof(FlightSlot) == 32);

inline constexpr std::uint64_t kFlightVersion = 1;
inline constexpr std::uint64_t kFlightDataOffset = 64;
static_assert(sizeof(FlightHeader) <= kFlightDataOffset);

inline std::uint64_t flight_bytes(std::uint64_t capacity) noexcept {
  return kFlightDataOffset + capacity * sizeof(FlightSlot);
}

}  // namespace troupe::wire
