#pragma once

#include <chrono>
#include <optional>
#include <string>

#include "rank/device/host/device_actions.hpp"

namespace troupe::rank_process {

struct DeviceParts;

/// Carries out what DeviceProtocol decides: on processes, their sockets and shared memory, and on
/// the rank's commands and memory. The DeviceActor's turns.
class HostActions final : public DeviceActions {
 public:
  explicit HostActions(DeviceParts& parts) : parts_(parts) {}

  Result<void> start(HostId host, Start as) override;
  void halt(HostId host) override;
  Result<void> carry_out(HostId host, const DeviceOrder& order) override;
  void resume(HostId host) override;
  void promote(HostId host) override;
  void serves(HostId host) override;
  void settle() override;
  void hand_over(HostId old, HostId next) override;
  void mourn(HostId host, const DeviceFault& fault) override;
  void kill(HostId host) override;
  void bury(HostId old, HostId next, const DeviceFault& fault) override;
  void outlive(HostId old, HostId next, const DeviceFault& fault) override;
  void drop_standby(HostId host, const Error& lost) override;
  void drop_successor(HostId host, const Error& lost) override;
  void drop(HostId host) override;
  void dismiss(HostId host) override;
  void give_up(const Error& error) override;
  void begin_again(HostId host) override;
  void disturbed(const std::string& what) override;
  void all_is_well() override { disturbed_ = false; }
  void report(DeviceEvent event) override;

 private:
  /// The next host has the commands of the lost one from now on. `ending`: of the process, in
  /// words.
  void inherit(HostId old, HostId next, const DeviceFault& fault, const std::string& ending,
               std::chrono::nanoseconds end);
  void leave(HostId host);
  /// Tells how much memory the standby takes, if that is known.
  void measured(std::optional<std::uint64_t> bytes);

  DeviceParts& parts_;
  bool disturbed_ = false;  ///< what led to it is recorded
};

}  // namespace troupe::rank_process
