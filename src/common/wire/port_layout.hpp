#pragma once

#include <atomic>
#include <cstdint>

#include <troupe/lib/operation.hpp>

#include "common/ipc/life_lock.hpp"
#include "common/ipc/ring.hpp"
#include "common/ipc/shared_counter.hpp"
#include "common/wire/host_options.hpp"
#include "common/wire/last_words.hpp"
#include "common/wire/library_stamps.hpp"
#include "common/wire/set_aside_tickets.hpp"
#include "common/wire/shm_names.hpp"
#include "common/wire/unknown_libraries.hpp"

namespace troupe::wire {

/// The start of the shared-memory segment between a rank and one incarnation of its device host;
/// the data of the command ring and then of the reply ring follow at kPortDataOffset. The rank
/// makes it, zero-filled.
struct PortHeader {
  std::uint64_t version;
  std::uint64_t command_capacity;  ///< bytes, a power of two
  std::uint64_t reply_capacity;    ///< bytes, a power of two
  HostSettings settings;           ///< written before the device host starts

  // Written by the device host, read by the rank.
  alignas(64) std::atomic<std::int64_t> heartbeat_ns;  ///< when the reactor last went round
  std::atomic<std::uint64_t> issued_ticket;            ///< everything above is still in the ring
  std::atomic<std::int64_t> fault_ns;                  ///< when an ordered fault struck; 0: none
  std::atomic<std::uint32_t> fault_kind;               ///< its memory::FaultKind

  ipc::LifeLock life;  ///< held by the reactor, from before `ready` on

  ipc::RingControl command;  ///< rank to host
  ipc::RingControl reply;    ///< host to rank

  /// How often the rank has stopped the host. Once it differs from what the newest promote or
  /// resume named, nothing that the host answers is seen, and it begins nothing more.
  alignas(64) std::atomic<std::uint32_t> halts;
  /// How often the host was told to give its communicators up.
  ipc::SharedCounter surrenders;

  /// The operations that the rank knows. Written before the device host starts, which ends if it
  /// knows others.
  LibraryStamps libraries;

  /// Written by the device host before `ready`: the process that was started may be its wrapper.
  std::atomic<std::int32_t> host_pid;

  ShmNames shm_names;  ///< of the device host's process

  SetAsideTickets set_aside;  ///< taken out of the ring, and not begun

  /// Libraries whose commands are set aside because they open or are at work: a bit each, by the
  /// rank's lanes. Written by the device host. While a bit is set, the rank lets no more than
  /// kCredits commands of that library be unanswered: what is stuck fills its own mailbox and
  /// nobody else's. The rank reads it with each command: in a line that is seldom written.
  alignas(64) std::atomic<std::uint32_t> held_up;
  UnknownLibraries unknown;

  LastWords last_words;
};
static_assert(kLaneCount <= 32);

/// Commands of a library that is held up. Of four such libraries all can be set aside.
inline constexpr std::uint32_t kCredits = SetAsideTickets::kCapacity / 4;

inline constexpr std::uint64_t kPortVersion = 14;
inline constexpr std::uint64_t kPortDataOffset = 20480;
static_assert(sizeof(PortHeader) <= kPortDataOffset);

inline std::uint64_t port_bytes(std::uint64_t command_capacity,
                                std::uint64_t reply_capacity) noexcept {
  return kPortDataOffset + command_capacity + reply_capacity;
}

}  // namespace troupe::wire
