#pragma once

#include <optional>

#include "rank/device/host/device_course.hpp"

namespace troupe::rank_process {

/// The standby of a device: it is raised, takes part in standby worlds, and may be lost, which
/// costs nothing else. Pure: see DeviceProtocol.
class DeviceStandbys {
 public:
  /// `wanted`: there are standbys at all.
  DeviceStandbys(HostTable& hosts, DeviceActions& actions, DeviceCourse& course, bool wanted)
      : hosts_(hosts), actions_(actions), course_(course), wanted_(wanted) {}

  void raise(TimePoint now);
  /// The same, if one has died or did not start.
  void raise_again(TimePoint now) {
    if (not_before_) raise(now);
  }
  /// Tells the world that one is ready, if it is.
  void report();
  void lost(HostId host, const Error& error, TimePoint now);
  /// Has it carry out an order of a standby world.
  void prepare(const DeviceOrder& order);
  void answered(HostId host, const DeviceOrder& order, DeviceCourse::Outcome outcome);

 private:
  HostTable& hosts_;
  DeviceActions& actions_;
  DeviceCourse& course_;
  bool wanted_;
  std::optional<TimePoint> not_before_;  ///< one has died, or did not start
};

}  // namespace troupe::rank_process
