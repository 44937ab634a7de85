#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <troupe/error.hpp>

namespace troupe {

/// What a trace holds.
struct TraceSummary {
  int ranks = 0;                 ///< whose parts it was made of
  std::uint64_t commands = 0;    ///< in it
  std::uint64_t lost = 0;        ///< commands and GPU activities that passed too fast to be kept
  std::uint64_t recoveries = 0;  ///< as rank 0 has them
  std::uint64_t arrows = 0;      ///< between the ranks of a collective
};

/// Makes one trace, JSON in the trace-event format that ui.perfetto.dev opens, of the parts that
/// the ranks of a job have written because of --trace. All times are on rank 0's clock. The parts
/// stay. Errors name the file: io (it cannot be read or written), invalid (it is no part of a
/// trace; parts of different jobs; two of one rank).
Result<TraceSummary> merge_trace(const std::vector<std::string>& parts, const std::string& file);

}  // namespace troupe
