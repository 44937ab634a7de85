#pragma once

#include "common/wire/control.hpp"
#include "rank/device/host/host_table.hpp"

namespace troupe::rank_process {

struct DeviceParts;

/// Hears device hosts: answers go to whoever has asked, the rest to those whom it concerns. The
/// DeviceActor's turns.
class HostNews {
 public:
  explicit HostNews(DeviceParts& parts) : parts_(parts) {}

  void hear(HostId host, wire::FromDeviceHost message);

 private:
  void on(HostId host, wire::from_host::Ready said);
  void on(HostId host, const wire::from_host::LibraryOpened& said);
  void on(HostId host, const wire::from_host::KindRecurs& said);
  void on(HostId host, wire::from_host::PlansMade said);
  void on(HostId host, const wire::from_host::Fatal& said);
  void on(HostId host, const wire::from_host::CommunicatorBroken& said);

  DeviceParts& parts_;
};

}  // namespace troupe::rank_process
