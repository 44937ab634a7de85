#pragma once

#include <cstdint>

namespace troupe::rank_process {

/// Options of runs that are rehearsed: see Rehearsal.
struct RehearsalOptions {
  double tolerance = 0;  ///< see compare()
  std::uint64_t seed = 1;
};

}  // namespace troupe::rank_process
