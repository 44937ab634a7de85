#pragma once

#include <string>
#include <vector>

#include <nlohmann/json.hpp>
#include <troupe/distributed/layout.hpp>
#include <troupe/recovery.hpp>

#include "check.hpp"

namespace troupe::gemm {

struct Report {
  int ranks = 0;
  Pair grid{};
  distributed::Layout a, b, c;
  std::string engine;
  std::vector<std::string> devices;  ///< of all ranks
  /// Of the repetitions that this job has made, in order, each that of the slowest rank, on rank 0;
  /// of those that were repeated the last time. Seconds.
  std::vector<double> times;
  double seconds = 0;                ///< of all of these, commits and recoveries included
  std::int64_t restarted_from = -1;  ///< repetitions of a saved state; -1: from the beginning
  Judgement residual;                ///< by Freivalds' check
  std::optional<Judgement> elements;
  std::vector<Recovery> recoveries;
  std::vector<Corruption> corruptions;

  [[nodiscard]] bool right() const { return residual.right() && (!elements || elements->right()); }
};

std::string to_text(const Report& report, const Options& options);
nlohmann::json to_json(const Report& report, const Options& options);

}  // namespace troupe::gemm
