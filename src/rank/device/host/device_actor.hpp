#pragma once

#include <memory>
#include <string>

#include <troupe/actor/actor.hpp>

#include "rank/device/host/device_parts.hpp"
#include "rank/device/host/early_host.hpp"

namespace troupe::rank_process {

/// The stable address of a rank's GPU: it has device hosts started, watched and replaced, and keeps
/// what must outlive them. What is to be done about them DeviceProtocol decides; HostActions does
/// it. This gives each of its parts what it is told.
class DeviceActor
    : public Actor<DeviceActor, DeviceOrder, device_message::FromHost, device_message::HostClosed,
                   device_message::HostExited, device_message::Look, device_message::Listen,
                   device_message::MakeSlab, device_message::MapPinned, device_message::DropRegion,
                   device_message::ShareSlab, device_message::MapForeign, device_message::AskMemory,
                   device_message::AskLibraries, device_message::KindsRecur,
                   device_message::ContributeGroup, device_message::ConnectGroup,
                   device_message::DropGroup, device_message::Health, device_message::ProbeOver,
                   device_message::Suffer, device_message::WorldActive, device_message::RunProgress,
                   device_message::GiveUp, device_message::Revive, device_message::ShutDown> {
 public:
  /// `described` is resolved with the JSON description once the first host is ready, or with its
  /// error. `early`: has the first host, if that has been started before; nullptr: it has not.
  DeviceActor(DeviceSettings settings, CommandPort* port,
              std::shared_ptr<Promise<std::string>> described, std::shared_ptr<EarlyHost> early);

  void on_start() override;
  void on_stop(const Error& reason) noexcept override;

  void on(const DeviceOrder& order);
  void on(device_message::FromHost from);
  void on(device_message::HostClosed closed);
  void on(device_message::HostExited exited);
  void on(device_message::Look);
  void on(device_message::Listen listen);
  void on(const device_message::MakeSlab& make);
  void on(const device_message::MapPinned& map);
  void on(device_message::DropRegion drop);
  void on(const device_message::ShareSlab& share);
  void on(const device_message::MapForeign& map);
  void on(const device_message::AskMemory& ask);
  void on(const device_message::AskLibraries& ask);
  void on(device_message::KindsRecur recur);
  void on(const device_message::ContributeGroup& order);
  void on(const device_message::ConnectGroup& order);
  void on(device_message::DropGroup order);
  void on(const device_message::Health& said);
  void on(const device_message::ProbeOver& over) { parts_->checks.on(over); }
  void on(device_message::Suffer suffer);
  void on(device_message::WorldActive);
  void on(device_message::RunProgress progress) { parts_->protocol.progress(progress.in_run); }
  void on(const device_message::GiveUp& left) { parts_->protocol.give_up(left.why); }
  void on(device_message::Revive);
  bool on(device_message::ShutDown);

 private:
  DeviceSettings settings_;
  CommandPort* port_;
  std::shared_ptr<Promise<std::string>> described_;
  std::shared_ptr<EarlyHost> early_;
  std::unique_ptr<DeviceParts> parts_;  ///< from on_start() on
};

}  // namespace troupe::rank_process
