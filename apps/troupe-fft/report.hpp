#pragma once

#include <string>
#include <vector>

#include <nlohmann/json.hpp>
#include <troupe/recovery.hpp>

#include "options.hpp"

namespace troupe::fft3 {

/// An error and what it may be, beside the size of the elements.
struct Judgement {
  double error = 0, tolerance = 0;
  [[nodiscard]] bool right() const { return error <= tolerance; }
};

struct Report {
  int ranks = 0;
  Triple grid{};  ///< in space; of the spectrum: 1 and the first two
  std::string engine;
  std::vector<std::string> devices;  ///< of all ranks
  /// Of the runs that this job has made, in order, each that of the slowest rank, on rank 0; of
  /// those that were repeated the last time. Seconds.
  std::vector<double> times;
  double seconds = 0;                ///< of all of these, commits and recoveries included
  std::int64_t restarted_from = -1;  ///< runs of a saved state; -1: from the beginning
  std::uint64_t memory_bytes = 0;    ///< the most that a rank holds
  Judgement there_and_back;          ///< of the array after all runs
  Judgement spectrum;                ///< of one more transform
  std::vector<Recovery> recoveries;
  std::vector<Corruption> corruptions;

  [[nodiscard]] bool right() const { return there_and_back.right() && spectrum.right(); }
  /// The mean time of one transform; 0 where nothing was done.
  [[nodiscard]] double seconds_each() const;
  [[nodiscard]] double flops_per_second(const Options& options) const;
};

std::string to_text(const Report& report, const Options& options);
nlohmann::json to_json(const Report& report, const Options& options);

}  // namespace troupe::fft3
