#pragma once

#include <string>

#include <troupe/error.hpp>

#include "rank/device/device_events.hpp"
#include "rank/device/device_order.hpp"
#include "rank/device/host/host_table.hpp"

namespace troupe::rank_process {

/// What DeviceProtocol asks to be done. Nothing here may call it back; what comes of an action
/// is told to it later. `->`: by which call.
class DeviceActions {
 public:
  enum class Start : std::uint8_t { first, successor, standby, revival };

  DeviceActions() = default;
  DeviceActions(const DeviceActions&) = delete;
  DeviceActions& operator=(const DeviceActions&) = delete;
  virtual ~DeviceActions() = default;

  /// Starts a process. -> ready, or it is lost
  virtual Result<void> start(HostId host, Start as) = 0;
  /// From now on the host begins nothing, and nothing that it answers is seen, until it is resumed
  /// or promoted; takes effect at once, whatever the host is at.
  virtual void halt(HostId host) = 0;
  /// Has the host carry out quiesce, contribute or connect. -> answered, unless the host
  /// cannot be asked.
  virtual Result<void> carry_out(HostId host, const DeviceOrder& order) = 0;
  /// After quiesce: go on.
  virtual void resume(HostId host) = 0;
  /// Gives it all memory and tells it to serve. -> promoted
  virtual void promote(HostId host) = 0;
  /// It serves from now on; what waited for that can be asked of it.
  virtual void serves(HostId host) = 0;
  /// The host that serves has drained: its commands are settled where they are.
  virtual void settle() = 0;
  /// Moves the commands to a standby that takes the place of a host in good health.
  virtual void hand_over(HostId old, HostId next) = 0;
  /// The host is lost: what was asked of it fails.
  virtual void mourn(HostId host, const DeviceFault& fault) = 0;
  /// Ends the process. -> exited
  virtual void kill(HostId host) = 0;
  /// Moves the commands of a lost host to the next one. The process has ended.
  virtual void bury(HostId old, HostId next, const DeviceFault& fault) = 0;
  /// The same where nothing of the host writes any more: it lives on until it is killed.
  virtual void outlive(HostId old, HostId next, const DeviceFault& fault) = 0;
  /// A host that never served is killed and forgotten, without waiting for its end: it was lost
  /// (the next ones shall not stumble over what it was preparing), or is needed no more.
  virtual void drop_standby(HostId host, const Error& lost) = 0;
  virtual void drop_successor(HostId host, const Error& lost) = 0;
  virtual void drop(HostId host) = 0;
  /// Ends a host together with the program, in good order.
  virtual void dismiss(HostId host) = 0;
  /// Commands, and whatever was asked of the device, fail with this from now on; until …
  virtual void give_up(const Error& error) = 0;
  /// … a new start has come up.
  virtual void begin_again(HostId host) = 0;
  /// Something is wrong: what led to it is worth recording. Once until all_is_well().
  virtual void disturbed(const std::string& what) = 0;
  virtual void all_is_well() = 0;
  /// To the world. A DeviceFault whose struck_at is not set struck the active host at a time that
  /// its shared memory may tell.
  virtual void report(DeviceEvent event) = 0;
};

}  // namespace troupe::rank_process
