#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include <troupe/error.hpp>

#include "common/ipc/unique_fd.hpp"

/// The words between a keeper and the rank that it has started. A job has a *place*, which is a
/// keeper, for each rank, and spare ones behind them (--spares). Where it may go on with fewer GPUs
/// (--on-loss shrink) there are as many refuges behind those, one beside each place: a rank that is
/// lost, and has no spare place, goes there, and is a spectator from then on.
namespace troupe::keeper {

/// An address of IPv4 and its network, in the byte order of the network.
struct NetworkAddress {
  std::uint32_t address = 0;
  std::uint32_t mask = 0;
};

/// Where a place of the job is. All keepers tell it to all others.
struct Card {
  static constexpr std::size_t kAddresses = 8;

  std::array<char, 64> host{};  ///< its name, for messages
  std::array<NetworkAddress, kAddresses> addresses{};
  std::uint32_t address_count = 0;
  std::uint16_t port = 0;         ///< where its rank listens, in the byte order of the network
  std::uint16_t keeper_port = 0;  ///< and the keeper itself
  std::int32_t place = 0;
  std::uint32_t moves = 0;  ///< of the rank that it is the card of, when that came to this place
  /// See rank_process::Session. Spare places count among those of a node.
  std::int32_t node = 0, local_rank = 0, local_size = 1;
  std::uint32_t refuge = 0;  ///< 1: there is no GPU for a rank here
  /// The same on places that reach one another by the loopback address, and on no others.
  std::array<std::uint64_t, 3> network{};
};

/// A rank is started so often at one place at most, and at so many places: its processes are told
/// apart by 12 bits (see Runtime, where buffers' generations begin).
inline constexpr std::uint32_t kMostStarts = 128, kMostPlaces = 32;

/// The number of a process of a rank: how often the rank has been given to another place, and has
/// been started at this one before. Later processes have greater numbers.
constexpr std::uint32_t incarnation_of(std::uint32_t moves, std::uint32_t starts) noexcept {
  return moves * kMostStarts + starts;
}
/// How often the rank had been given to another place.
constexpr std::uint32_t moves(std::uint32_t incarnation) noexcept {
  return incarnation / kMostStarts;
}

/// A rank's knowledge when it starts.
struct Job {
  static constexpr std::int32_t kSpare = -1;

  std::int32_t rank = 0;            ///< kSpare: it waits to become one; see ToRank::seat
  std::uint32_t incarnation = 0;    ///< see incarnation_of()
  std::uint32_t deaths = 0;         ///< how often its process has died before
  std::uint32_t several_hosts = 0;  ///< 1: not all places are on one node
  /// Slabs that the rank's process before has left: so many ToRank::slab follow.
  std::uint32_t slabs = 0;
  /// How many cores the place's rank has to itself, as its process before has said; 0: not known.
  std::uint32_t cores = 0;
  std::array<std::uint64_t, 2> cookie{};  ///< secret, the same for the whole job
  Card own{};                             ///< of the place that the process is at
  std::vector<Card> cards{};              ///< by rank

  [[nodiscard]] int size() const noexcept { return static_cast<int>(cards.size()); }
  [[nodiscard]] const Card& card() const { return cards[static_cast<std::size_t>(rank)]; }
};

/// As a file without a name, and back. Errors: io, out_of_memory; invalid for what no keeper has
/// written.
Result<UniqueFd> write_job(const Job& job);
Result<Job> read_job(int fd);

/// The descriptors of a rank that a keeper has started.
enum Descriptor : int {
  kLine = 3,      ///< a socket with the keeper at its other end
  kListener = 4,  ///< the socket on which the rank listens; the keeper keeps it, too
  kJob = 5,       ///< write_job()
  kStart = 6,     ///< what the rank's first process has heard from others while it started
  kEstate = 7     ///< what it leaves to the one that is started in its place
};
/// The variable of the environment by which a rank knows that a keeper has started it.
inline constexpr const char* kEnvironment = "LIBTROUPE_KEEPER";

/// A rank's message to its keeper.
struct FromRank {
  enum class Kind : std::uint32_t {
    goodbye,  ///< it ends together with all others: MPI is to be finalised
    abort,    ///< all ranks are to end at once
    respawn,  ///< it is to be started again if a signal ends it; it has so many cores to itself
    leave,    ///< no more
    alive,    ///< the answer to ToRank::ping
    release,  ///< it cannot go on at this place: it is to be started at a spare one
    slab,  ///< a slab of its device's memory, whose descriptor comes along, is to be kept for the
           ///< process after it
    drop,  ///< no more
    taken  ///< nor what processes before it have left
  };
  Kind kind{};
  std::int32_t status = 0;   ///< goodbye, abort: the exit status
  std::int64_t time_ns = 0;  ///< goodbye: how long to wait for MPI_Finalize; 0: for ever
  std::uint32_t region = 0;  ///< slab, drop: which
  std::uint64_t bytes = 0;   ///< slab
  std::uint32_t cores = 0;   ///< respawn
};

/// A keeper's message to its rank.
struct ToRank {
  enum class Kind : std::uint32_t {
    ping,  ///< to be answered with FromRank::alive
    seat,  ///< this process, which has waited for that, is a rank now: write_job() comes along
    move,  ///< that rank is at the place of that card now
    keep,  ///< the answer to FromRank::release: there is no spare place
    slab   ///< what a process before it has left, with its descriptor
  };
  Kind kind{};
  std::int32_t rank = 0;
  Card card{};
  std::uint32_t incarnation = 0, region = 0;  ///< slab: of which process
  std::uint64_t bytes = 0;                    ///< slab
};

}  // namespace troupe::keeper
