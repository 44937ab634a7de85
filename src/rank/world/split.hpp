#pragma once

#include <memory>
#include <string>

#include "rank/world/groups.hpp"

namespace troupe::rank_process {

class WorldCore;

/// What a rank says when a communicator is split.
struct SplitChoice {
  int colour = 0;
  int key = 0;
  std::uint32_t communicator = wire::kWorld;  ///< which is split
  std::string name{};  ///< of the call, for whoever wonders what it waits for
};

/// Splits the ranks of `parent`, as Collectives::split says. nullptr: this rank is in none of the
/// groups. All ranks of `parent`, from the program's thread. Throws Exception.
///
/// First they wait until all of them have come to it, by way of rank 0 (see SplitOrder): what can
/// never be ends the world. MPI processes live as long as the job, so then the ranks agree over MPI
/// what to do, step by step, whatever happens to their device hosts: who is in the group; that all
/// device hosts are there, in one epoch; that all have connected. A fault on the way leads back to
/// the second step once the world is active again. A re-formation that begins meanwhile forms the
/// group too as soon as all of its ranks know of it, so that it makes no difference when exactly
/// the program has it.
std::shared_ptr<GroupHandle> split(WorldCore& core, const HostGroup& parent,
                                   const SplitChoice& choice);

}  // namespace troupe::rank_process
