#pragma once

#include <string>

#include <troupe/corruption.hpp>

#include "rank/world/world_core.hpp"

namespace troupe::rank_process {

/// Where a rank is, as it tells the others.
struct Place {
  char gpu[64] = {}, host[64] = {};
};
[[nodiscard]] Place place_of(WorldCore& core);
/// Keeps what was found, and says it in the log of the run's first rank. All members call it, with
/// the same.
void tell_corruption(WorldCore& core, Corruption found);

}  // namespace troupe::rank_process
