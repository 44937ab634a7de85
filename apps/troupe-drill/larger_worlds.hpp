#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "report.hpp"

namespace troupe::drill {

/// A recovery as it would be in a world of more ranks: the protocol simulated message by message,
/// the devices' work taking as long as was measured here.
struct LargerWorld {
  memory::FaultKind kind{};
  int ranks = 0;
  double total_ms = 0;    ///< as Recovery::total_ms
  double control_ms = 0;  ///< of it, messages on their way and being handled
  std::uint64_t messages = 0, most_at_one_rank = 0;
};

/// One for each of options.world_sizes and each series of faults that come alone.
std::vector<LargerWorld> simulate(const std::vector<Series>& series, const Options& options);
std::string to_text(const std::vector<LargerWorld>& worlds);

}  // namespace troupe::drill
