#pragma once

#include <string>
#include <vector>

#include <troupe/troupe.hpp>

#include "drill.hpp"
#include "options.hpp"

namespace troupe::drill {

struct LargerWorld;

/// The outcomes of one attack, of at least one repetition.
struct Series {
  Attack attack;
  std::vector<Outcome> outcomes;
  bool back = false;  ///< not of the loss, but of the return of the lost ranks

  [[nodiscard]] bool kept_intact() const;
  [[nodiscard]] double median(double Recovery::*time) const;
};

/// What all series of a report have in common.
struct Setting {
  int ranks = 0;
  std::string engine, device;
  std::string policy;  ///< the settings that decide on the recovery: "standby world"
};

/// The settings that decide on the way of a recovery.
std::string policy_of(const Config& config);

/// The lines above the table.
std::string heading(const Setting& setting, const Options& options);
/// A series as two lines of the table: medians, and below them the largest.
std::string to_text(const Series& series);
/// What GPUs have said of their health, a line each.
std::string to_text(const std::vector<HealthEvent>& health);
/// Writes everything as JSON, each series on a line of its own. Errors: io.
Result<void> write_json(const std::vector<Series>& series,
                        const std::vector<LargerWorld>& simulated,
                        const std::vector<HealthEvent>& health, const Setting& setting,
                        const Options& options);

}  // namespace troupe::drill
