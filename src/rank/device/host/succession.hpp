#pragma once

#include "rank/device/host/device_course.hpp"
#include "rank/device/host/restart_limits.hpp"

namespace troupe::rank_process {

/// Replaces the host that a device has lost: a successor is chosen within the limits, the lost one
/// is killed and buried, or outlived where its context is dead, and the successor gets the commands
/// and the memory. Pure: see DeviceProtocol.
class Succession {
 public:
  /// `asks_to_stop`: when a limit is passed the world is asked to end the run, once, and the device
  /// goes on.
  Succession(HostTable& hosts, DeviceActions& actions, DeviceCourse& course, RestartLimits limits,
             bool asks_to_stop)
      : hosts_(hosts),
        actions_(actions),
        course_(course),
        limits_(limits),
        asks_to_stop_(asks_to_stop) {}

  [[nodiscard]] RestartLimits& limits() noexcept { return limits_; }
  /// `passed`: by what limit, if one was passed. False: the device is given up for that.
  bool survives(const std::optional<Error>& passed);
  /// A host is about to take the place of the lost one. Returns the same.
  bool spend_restart(TimePoint now);
  /// Does what has become possible.
  void advance(TimePoint now);
  /// Ends the hosts that have handed over.
  void end_retired();

 private:
  bool choose(TimePoint now);
  void bury();

  HostTable& hosts_;
  DeviceActions& actions_;
  DeviceCourse& course_;
  RestartLimits limits_;
  bool asks_to_stop_;
};

}  // namespace troupe::rank_process
