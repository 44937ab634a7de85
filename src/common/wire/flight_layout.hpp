#pragma once

#include <atomic>
#include <cstdint>

/// What a device host tells the flight recorder: when it issued each operation and when it found it
/// done; and, for a trace, what the GPU did. The segment belongs to the rank and outlives every
/// device host; the rank keeps the rest of a record in its own memory, so that neither writes where
/// the other does.
namespace troupe::wire {

struct FlightHeader {
  std::uint64_t version;
  std::uint64_t capacity;  ///< slots that follow, a power of two; 0: nothing is recorded
  std::uint64_t
      activities;  ///< slots of the ring behind them, a power of two; 0: GPU work is not traced
};

/// What a rank shows of itself to other processes, such as troupe-top. It writes a field when that
/// changes, on the way of nothing that is fast; nobody waits for anybody.
struct FlightBoard {
  std::int32_t rank, size;                ///< this and what follows up to `pid` stays as it is
  std::int64_t began_ns;                  ///< SteadyClock
  char job[64];                           ///< cut, ended by 0
  std::atomic<std::int32_t> pid;          ///< of the rank; stored when what is above is there
  std::atomic<std::int32_t> described;    ///< stored when `device` is there
  char device[96];                        ///< its name, cut, ended by 0
  std::atomic<std::int32_t> host_pid;     ///< of the device host that has the rank's commands
  std::atomic<std::uint32_t> active;      ///< whether the world is
  std::atomic<std::uint64_t> host_since;  ///< when it got them, in ticks
  std::atomic<std::uint32_t> epoch, recoveries;
  std::atomic<std::uint64_t> held_bytes;  ///< of slabs
};

/// The time that a rank's device hosts have spent so far: they add, one after another or, around a
/// death, two at a time; the rank reads. Nanoseconds.
struct HostTimes {
  /// In collectives: their own work, and waiting for other ranks on the device. Where not all are
  /// timed, each of those that are stands for several.
  std::atomic<std::uint64_t> in_collectives;
  std::atomic<std::uint64_t> collectives;  ///< for which the time above stands
  /// The device had nothing to do, because other ranks of this host had not come to a collective.
  std::atomic<std::uint64_t> meeting;
  /// It had nothing to do, because the rank had submitted nothing.
  std::atomic<std::uint64_t> idle;
};

/// One operation, in the slot of its ticket modulo the capacity. Times are ticks() of this node.
struct FlightSlot {
  std::atomic<std::uint64_t> ticket;     ///< stored last; 0: empty
  std::atomic<std::uint64_t> issued;     ///< given to the engine
  std::atomic<std::uint64_t> completed;  ///< its batch was found done; 0: not yet
  std::atomic<std::uint64_t> queue;      ///< see queue_in() and opcode_in()
};
static_assert(sizeof(FlightSlot) == 32);

/// A ring that device hosts write, one after another or, around a death, two at a time; the rank
/// reads. A writer that dies in the middle leaves a slot that is never filled.
struct alignas(64) ActivityRing {
  std::atomic<std::uint64_t> claimed;  ///< slots that writers have taken so far
  alignas(64) std::atomic<std::uint64_t> read;
  std::atomic<std::uint64_t> dropped;  ///< for which there was no room
};

/// What the GPU did for the operation with this ticket, in the slot of its number modulo the
/// capacity. Times are nanoseconds of SteadyClock.
struct ActivitySlot {
  std::atomic<std::uint64_t> number;  ///< from 1, stored last
  std::uint64_t ticket;
  std::int64_t begin, end;
  std::uint32_t stream, kind;
  char name[88];  ///< cut, ended by 0
};
static_assert(sizeof(ActivitySlot) == 128);

/// The index of its queue, from 1; 0: it was on none.
constexpr std::uint32_t queue_in(std::uint64_t word) noexcept {
  return static_cast<std::uint32_t>(word);
}
constexpr std::uint32_t opcode_in(std::uint64_t word) noexcept {
  return static_cast<std::uint32_t>(word >> 32);
}
constexpr std::uint64_t flight_word(std::uint32_t opcode, std::uint32_t queue) noexcept {
  return std::uint64_t{opcode} << 32 | queue;
}

/// Of the shared memory, as it shows in /proc.
inline constexpr const char* kFlightLabel = "troupe-flight";
inline constexpr std::uint64_t kFlightVersion = 4;
inline constexpr std::uint64_t kFlightBoardOffset = 64;
inline constexpr std::uint64_t kHostTimesOffset = 320;
inline constexpr std::uint64_t kFlightDataOffset = 512;
static_assert(sizeof(FlightHeader) <= kFlightBoardOffset);
static_assert(kFlightBoardOffset + sizeof(FlightBoard) <= kHostTimesOffset);
static_assert(kHostTimesOffset + sizeof(HostTimes) <= kFlightDataOffset);

/// Where the ring of activities is.
inline std::uint64_t activities_offset(std::uint64_t capacity) noexcept {
  const auto end = kFlightDataOffset + capacity * sizeof(FlightSlot);
  return (end + 63) / 64 * 64;
}

inline std::uint64_t flight_bytes(std::uint64_t capacity, std::uint64_t activities) noexcept {
  return activities_offset(capacity) +
         (activities != 0 ? sizeof(ActivityRing) + activities * sizeof(ActivitySlot) : 0);
}

}  // namespace troupe::wire
