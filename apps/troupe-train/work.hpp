#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include <troupe/ordered_fault.hpp>
#include <troupe/troupe.hpp>

#include "options.hpp"
#include "progress.hpp"

namespace troupe::train {

/// What stays from the beginning of the job to its end, however many ranks are left. The same on
/// all ranks, but for the faults.
struct Work {
  Runtime* runtime;
  const Options* options;
  std::vector<std::uint8_t> text;
  std::int64_t sequences;  ///< of a step, of all ranks together
  FaultsOfRank faults;     ///< this rank's
  std::shared_ptr<Progress> progress;
};

}  // namespace troupe::train
