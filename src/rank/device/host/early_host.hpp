#pragma once

#include <memory>
#include <utility>

#include "rank/device/flight/flight_recorder.hpp"
#include "rank/device/host/host_link.hpp"

namespace troupe::rank_process {

/// A device host that a process starts while it waits to become a rank, which may never happen. It
/// becomes the rank's first one: the rank does not wait for a context to be made. One thread.
class EarlyHost {
 public:
  /// Starts it. The thread that calls this has to live as long as the process. Errors: io, and
  /// whatever else keeps a process from starting.
  static Result<std::unique_ptr<EarlyHost>> start(HostLaunch launch,
                                                  FlightRecorder::Options flight);

  /// It is the host that would be started now, and it lives.
  [[nodiscard]] bool suits(const HostLaunch& launch, const FlightRecorder::Options& flight) const;

  /// The flight recorder's, and the host itself. Each can be taken once.
  [[nodiscard]] ipc::SharedMemory take_segment() { return std::move(segment_); }
  [[nodiscard]] std::shared_ptr<HostLink> take_link() { return std::exchange(link_, nullptr); }

 private:
  EarlyHost(HostLaunch launch, FlightRecorder::Options flight, ipc::SharedMemory segment)
      : launch_(std::move(launch)), flight_(std::move(flight)), segment_(std::move(segment)) {}

  HostLaunch launch_;
  FlightRecorder::Options flight_;
  ipc::SharedMemory segment_;
  std::shared_ptr<HostLink> link_;
};

/// The launch of a device host beside such a flight recorder.
[[nodiscard]] HostLaunch launch_beside(HostLaunch launch, const FlightRecorder::Options& flight,
                                       int segment_fd);

}  // namespace troupe::rank_process
