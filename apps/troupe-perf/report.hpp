#pragma once

#include <optional>
#include <string>
#include <vector>

#include <troupe/recovery.hpp>

#include "options.hpp"

namespace troupe::perf {

/// The calls of one size, out of place or in place.
struct Measured {
  bool done = false;        ///< false: this cannot be done so
  double microseconds = 0;  ///< of one call
  Bandwidth bandwidth;
  std::int64_t wrong = -1;  ///< elements, over all ranks; -1: not looked at
};

struct Row {
  Call call;
  std::int64_t bytes = 0;
  Measured out_of_place, in_place;
  Measured peer_out_of_place, peer_in_place;
  std::int64_t repeated = 0;  ///< measurements that a fault has spoilt, and that were done again
  std::vector<Recovery> recoveries;  ///< from the faults meanwhile
};

/// What all rows have in common.
struct Setting {
  std::string engine;
  int ranks = 1, group = 1;
  std::vector<std::string> devices;  ///< a line for each rank
};

/// What one run has found.
struct Report {
  std::vector<Row> rows;
  double seconds = 0;  ///< that all rows took, with warm-up, checks and recoveries
  /// As nccl-tests count them: measurements with wrong elements.
  [[nodiscard]] std::int64_t failures() const;
  /// GB/s, of all measurements that were done.
  [[nodiscard]] double average_bus() const;
};

/// The lines above the table, the table's lines and those below it: as nccl-tests has them, column
/// for column, with the peer's columns behind. All that is no row begins with '#'.
std::string heading(const Setting& setting, const Options& options);
std::string to_text(const Row& row, const Options& options);
std::string footing(const Report& report, const Options& options);

/// Writes all of it, with the keys of nccl-tests' JSON and more. Errors: io.
Result<void> write_json(const std::string& path, const Report& report, const Setting& setting,
                        const Options& options);

}  // namespace troupe::perf
