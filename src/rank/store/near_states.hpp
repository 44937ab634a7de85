#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "rank/store/generations.hpp"
#include "rank/store/memory_state.hpp"

namespace troupe::rank_process {

/// The parts of states that this rank gives from the folder of its node (SaveOptions::local), of
/// step `wanted`, or of all if that is negative.
///
/// A node's folder is one of Generations in which a state has only the parts of the node's ranks,
/// and copies of other nodes' parts; its manifest is that of the whole state. Parts make one state
/// if their manifests are the same.
///
/// Every part that lies on a node is given by one of its ranks: by the one that has saved it, if it
/// is there, else in turn. `nodes`: of each rank of the group the node; this one is `rank` of them.
/// A part that cannot be read costs a line of log.
std::vector<HeldPart> near_parts(const Generations& folder, std::int64_t wanted,
                                 std::span<const int> nodes, int rank);

/// The HeldPart::state of a state's parts.
std::uint32_t state_of(const Manifest& manifest);

}  // namespace troupe::rank_process
