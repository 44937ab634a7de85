#pragma once

#include <string>
#include <vector>

#include <nlohmann/json.hpp>
#include <troupe/recovery.hpp>

#include "options.hpp"

namespace troupe::heat {

struct Report {
  Domain domain;  ///< rank 0's
  std::string engine;
  std::vector<std::string> devices;  ///< of all ranks
  double seconds = 0;                ///< of all steps that this job has made, recoveries included
  std::int64_t steps = 0;            ///< after which the solution is compared
  std::int64_t steps_done = 0;       ///< of these; those that were repeated count once
  std::int64_t restarted_from = -1;  ///< the step of a saved state; -1: from the beginning
  double largest_error = 0;          ///< at any point, from the exact solution of the scheme
  double tolerance = 0;
  std::vector<Recovery> recoveries;  ///< iterations are steps in time
  std::vector<Corruption> corruptions;

  [[nodiscard]] bool right() const { return largest_error <= tolerance; }
  /// Of all ranks; 0 where nothing was done.
  [[nodiscard]] double points_per_second() const;
  /// Of a rank: each point read once and written once, as a kernel that reads its neighbours from
  /// caches does.
  [[nodiscard]] double bytes_per_second(const Options& options) const;
};

std::string to_text(const Report& report, const Options& options);
nlohmann::json to_json(const Report& report, const Options& options);

}  // namespace troupe::heat
