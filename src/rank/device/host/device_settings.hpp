#pragma once

#include <chrono>
#include <string>

#include "rank/device/flight/flight_recorder.hpp"
#include "rank/device/health/health_log.hpp"
#include "rank/device/host/host_link.hpp"

namespace troupe::rank_process {

/// The settings of a DeviceActor; they outlive it.
struct DeviceSettings {
  HostLaunch launch;
  bool standby = true;
  /// It will be told when its world is active: no standby is raised before.
  bool in_world = false;
  std::chrono::nanoseconds heartbeat_timeout = std::chrono::seconds(3);
  std::chrono::nanoseconds op_timeout{0};  ///< 0: none
  std::chrono::nanoseconds start_timeout = std::chrono::seconds(60);
  /// Hears of slabs that are made, with their descriptors, and given up.
  std::function<void(std::uint32_t region, std::uint64_t bytes, int memory)> slab_made = {};
  std::function<void(std::uint32_t region)> slab_dropped = {};
  FlightRecorder* flight = nullptr;  ///< dumps what led to a fault
  HealthLog* health = nullptr;       ///< what the GPU says of its health
  std::string tuning_file;           ///< what measurements have found; empty: it is not kept
  int restart_budget = 3;
  std::chrono::nanoseconds restart_window = std::chrono::seconds(60);
  /// When the budget is spent the world is asked to end the run, and gets one device host more to
  /// do it with.
  bool asks_to_stop = false;
};

}  // namespace troupe::rank_process
