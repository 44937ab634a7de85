#pragma once

#include <map>
#include <string>
#include <vector>

#include <troupe/device.hpp>
#include <troupe/gpu_health.hpp>
#include <troupe/saved_state.hpp>
#include <troupe/world.hpp>

#include "rank/device/flight/flight_collector.hpp"

namespace troupe::rank_process {

/// What a rank's file of metrics tells.
struct Metrics {
  std::string job;
  int rank = 0;
  FlightCollector::Totals totals;
  std::uint64_t queue_depth = 0;  ///< commands that are not answered
  std::uint32_t epoch = 0;
  std::uint64_t commits = 0;
  std::vector<SavedCheckpoint> saved;  ///< of the run that is under way, or of the last one
  std::vector<Recovery> recoveries;
  std::int64_t verified = 0;  ///< intervals that were done twice (--verify)
  std::vector<Corruption> corruptions;
  double waiting_seconds = 0;  ///< the device's, in collectives and before them
  double idle_seconds = 0;     ///< without anything submitted
  double slowness = 0;  ///< own time, in own times of the median rank; 0: the rank is not slow
  std::vector<MemoryUse> memory;
  GpuHealth health{};
  std::map<HealthKind, std::uint64_t> health_events{};
};

/// As Prometheus reads it: the text format, version 0.0.4. docs/observing.md has the names.
[[nodiscard]] std::string to_prometheus(const Metrics& metrics);

/// The file of one rank: FILE with its number before the extension, "job.prom" being "job.3.prom".
[[nodiscard]] std::string metrics_file(const std::string& file, int rank);

}  // namespace troupe::rank_process
