#pragma once

#include <cstdint>
#include <string>

#include <troupe/checkpoint.hpp>
#include <troupe/saved_state.hpp>

#include "rank/net/host_group.hpp"

namespace troupe::rank_process {

/// What the state of a run takes, over all ranks of a group.
struct StateCosts {
  std::uint64_t whole = 0;    ///< bytes of all parts
  std::uint64_t part = 0;     ///< of the largest part
  std::uint64_t buffers = 0;  ///< in device memory, on the rank that has most of them
  int ranks = 0;
};

/// All of the group call it.
StateCosts measure_costs(const HostGroup& group, const Checkpoint& checkpoint);

/// One line: where the state is kept how often, and what that takes. `apart`: in pinned memory too.
std::string describe(const StateCosts& costs, const SaveOptions& save, bool apart);

}  // namespace troupe::rank_process
