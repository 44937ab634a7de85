#pragma once

#include <span>
#include <vector>

namespace troupe::rank_process {

/// For every rank the one that keeps a copy of its part: a permutation without fixed points (but
/// for a single rank), and a rank of another node wherever no node has more than half of the ranks.
///
/// The ranks, sorted by node, form a ring; the copy goes as many places on as the largest node has
/// ranks. `node_of` names the node of each rank by any number.
std::vector<int> partners(std::span<const int> node_of);

}  // namespace troupe::rank_process
