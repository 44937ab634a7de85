#pragma once

#include <string>

#include <troupe/corruption.hpp>

#include "rank/world/world_core.hpp"

namespace troupe::rank_process {

/// A text that ranks tell one another, cut off behind 63 bytes.
struct ShortText {
  char text[64] = {};
  void put(const std::string& from) { text[from.copy(text, sizeof text - 1)] = 0; }
};
/// Where a rank is, as it tells the others.
struct Place {
  char gpu[64] = {}, host[64] = {};
};
[[nodiscard]] Place place_of(WorldCore& core);
/// Keeps what was found, and says it in the log of the run's first rank. All members call it, with
/// the same.
void tell_corruption(WorldCore& core, Corruption found);

}  // namespace troupe::rank_process
