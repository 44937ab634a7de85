#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include <troupe/error.hpp>

#include "common/ipc/unique_fd.hpp"

/// The words between a keeper and the rank that it has started.
namespace troupe::keeper {

/// An address of IPv4 and its network, in the byte order of the network.
struct NetworkAddress {
  std::uint32_t address = 0;
  std::uint32_t mask = 0;
};

/// Where a place of the job is: a keeper and the rank that it has started. All keepers tell it to
/// all others.
struct Card {
  static constexpr std::size_t kAddresses = 8;

  std::array<char, 64> host{};  ///< its name, for messages
  std::array<NetworkAddress, kAddresses> addresses{};
  std::uint32_t address_count = 0;
  std::uint16_t port = 0;  ///< where the rank listens, in the byte order of the network
  std::uint16_t reserved = 0;
  std::int32_t node = 0, local_rank = 0, local_size = 1;  ///< see rank_process::Session
  std::int32_t reserved_too = 0;
  /// The same on places that reach one another by the loopback address, and on no others.
  std::array<std::uint64_t, 3> network{};
};

/// A rank's knowledge when it starts.
struct Job {
  std::int32_t rank = 0;
  std::uint32_t incarnation = 0;          ///< how often the keeper has started it before
  std::array<std::uint64_t, 2> cookie{};  ///< secret, the same for the whole job
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
  kStart = 6      ///< what the first rank of this place has heard from others while it started
};
/// The variable of the environment by which a rank knows that a keeper has started it.
inline constexpr const char* kEnvironment = "LIBTROUPE_KEEPER";

/// A rank's message to its keeper.
struct FromRank {
  enum class Kind : std::uint32_t {
    goodbye,  ///< it ends together with all others: MPI is to be finalised
    abort,    ///< all ranks are to end at once
    respawn,  ///< it is to be started again if a signal ends it
    leave     ///< no more
  };
  Kind kind{};
  std::int32_t status = 0;   ///< the exit status; respawn: how often, within `time_ns`
  std::int64_t time_ns = 0;  ///< goodbye: how long to wait for MPI_Finalize; 0: for ever
};

}  // namespace troupe::keeper
