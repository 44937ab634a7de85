#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace troupe::rank_process {

/// A host collective of the program's.
struct HostCall {
  std::uint32_t communicator = 0;     ///< the number of a group; 0: the world
  std::uint64_t number = 0;           ///< among those of these ranks of it, from 1
  std::vector<std::int32_t> ranks{};  ///< of the job
  std::string name{};                 ///< "split of group 3 (host collective 7)"
  std::string kind{};                 ///< "split", with what else has to be the same on all ranks

  /// True if both are one collective, each as a rank sees it.
  [[nodiscard]] bool is_same(const HostCall& other) const {
    return communicator == other.communicator && number == other.number && ranks == other.ranks &&
           kind == other.kind;
  }
  friend bool operator==(const HostCall&, const HostCall&) = default;
};

/// Why a rank's program waits for other ranks, as far as it matters to them.
enum class Awaits : std::uint32_t { other, end_of_run, host_call, end_of_program };

}  // namespace troupe::rank_process
