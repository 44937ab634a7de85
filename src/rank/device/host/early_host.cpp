#include "rank/device/host/early_host.hpp"

#include <poll.h>

#include <utility>

#include "common/ipc/descriptors.hpp"
#include "rank/device/host/host_table.hpp"

namespace troupe::rank_process {

HostLaunch launch_beside(HostLaunch launch, const FlightRecorder::Options& flight, int segment_fd) {
  launch.flight_fd = segment_fd;
  launch.tells_at_end = flight.activities != 0;
  return launch;
}

Result<std::unique_ptr<EarlyHost>> EarlyHost::start(HostLaunch launch,
                                                    FlightRecorder::Options flight) {
  ipc::raise_descriptor_limit();  // device hosts inherit it
  auto segment = FlightRecorder::make_segment(flight);
  if (!segment) return segment.error();
  launch = launch_beside(std::move(launch), flight, segment->fd());
  auto link = HostLink::create(launch, HostTable::kFirst);
  if (!link) return link.error();
  // As a standby it prepares all that it can without others.
  if (auto spawned = (*link)->spawn(true); !spawned) return spawned.error();
  std::unique_ptr<EarlyHost> host(
      new EarlyHost(std::move(launch), std::move(flight), std::move(*segment)));
  host->link_ = std::move(*link);
  return host;
}

bool EarlyHost::suits(const HostLaunch& launch, const FlightRecorder::Options& flight) const {
  pollfd end{link_->pidfd(), POLLIN, 0};
  return launch_beside(launch, flight, segment_.fd()) == launch_ &&
         flight.records == flight_.records && flight.slots == flight_.slots &&
         flight.activities == flight_.activities && ::poll(&end, 1, 0) == 0;
}

}  // namespace troupe::rank_process
