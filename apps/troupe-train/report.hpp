#pragma once

#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>
#include <troupe/recovery.hpp>

#include "check.hpp"
#include "options.hpp"

namespace troupe::train {

struct Report {
  std::string engine;
  std::vector<std::string> devices;  ///< of all ranks
  int final_ranks = 0;               ///< those left at the end
  std::size_t text_bytes = 0;
  double seconds = 0;                ///< of all steps that this job has made, recoveries included
  std::int64_t steps_done = 0;       ///< of these; those that were repeated count once
  std::int64_t restarted_from = -1;  ///< the step of a saved state; -1: from the beginning
  /// Steps and seconds behind the first line of progress, when all is warmed up; 0: there were no
  /// two lines.
  std::int64_t later_steps = 0;
  double later_seconds = 0;
  std::vector<float> losses;              ///< of every step, means over all ranks
  std::vector<float> gradient_norms;      ///< of every step, before they are clipped
  std::vector<std::uint64_t> parameters;  ///< a hash of each rank's, at the end
  std::optional<GradientCheck> check;
  std::vector<Recovery> recoveries;
  std::vector<Corruption> corruptions;

  [[nodiscard]] bool finite() const;
  [[nodiscard]] bool learnt() const { return losses.back() < losses.front(); }
  [[nodiscard]] bool same_parameters() const;
  /// One step shows no learning.
  [[nodiscard]] bool right() const;
  /// Warmed up if there is a figure of that.
  [[nodiscard]] double seconds_of_step() const;
  /// Of all ranks, warmed up if there is a figure of that; 0 where nothing was done.
  [[nodiscard]] double tokens_per_second(const Options& options) const;
};

std::string to_text(const Report& report, const Options& options);
nlohmann::json to_json(const Report& report, const Options& options);

}  // namespace troupe::train
