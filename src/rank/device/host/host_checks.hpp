#pragma once

#include <string>

#include <troupe/gpu_health.hpp>

#include "rank/device/host/device_messages.hpp"
#include "rank/device/host/operation_watch.hpp"
#include "rank/device/host/silence_watch.hpp"

namespace troupe::rank_process {

struct DeviceParts;

/// Finds out that a device host is lost which does not say so itself: its heartbeat stands still,
/// its shared memory holds nonsense, its operations do not end, or the GPU says something and the
/// host gives no sign of life. The DeviceActor's turns.
class HostChecks {
 public:
  /// How often the DeviceActor looks, at these and at its deadlines.
  static constexpr auto kLookEvery = std::chrono::milliseconds(100);

  explicit HostChecks(DeviceParts& parts);

  void start(TimePoint now) { silence_.start(now); }
  /// At what hosts that say nothing show.
  void look();
  /// The GPU has said something.
  void on(const device_message::Health& said);
  void on(const device_message::ProbeOver& over);

 private:
  /// The sign may be of another process on the GPU, or of a device host that is lost already: the
  /// host that serves shows whether it is meant. In a dead context nothing that is launched
  /// ends, and some launches do not return. Processes that share a GPU take turns of milliseconds.
  void probe(const std::string& sign, bool shared);

  DeviceParts& parts_;
  SilenceWatch silence_;
  OperationWatch operations_;
  std::uint64_t probe_ = 0;  ///< the number of the one that is under way
};

}  // namespace troupe::rank_process
