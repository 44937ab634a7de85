#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <troupe/actor/actor.hpp>

#include "rank/device/commands/command_port.hpp"
#include "rank/device/health/health_log.hpp"
#include "rank/device/host/device_memory.hpp"
#include "rank/device/host/device_messages.hpp"
#include "rank/device/host/device_protocol.hpp"
#include "rank/device/host/host_link.hpp"
#include "rank/device/host/host_requests.hpp"
#include "rank/device/host/library_use.hpp"
#include "rank/device/host/operation_watch.hpp"
#include "rank/device/host/silence_watch.hpp"
#include "rank/device/host/standby_memory.hpp"
#include "rank/device/host/watcher.hpp"

namespace troupe::rank_process {

/// What a DeviceActor needs beside its messages; outlives it.
struct DeviceSettings {
  HostLaunch launch;
  bool standby = true;
  /// It will be told when its world is active: no standby is raised before.
  bool in_world = false;
  std::chrono::nanoseconds heartbeat_timeout = std::chrono::seconds(3);
  std::chrono::nanoseconds op_timeout{0};  ///< 0: none
  std::chrono::nanoseconds start_timeout = std::chrono::seconds(60);
  FlightRecorder* flight = nullptr;  ///< dumps what led to a fault
  HealthLog* health = nullptr;       ///< what the GPU says of its health
  std::string tuning_file;           ///< what measurements have found; empty: it is not kept
  int restart_budget = 3;
  std::chrono::nanoseconds restart_window = std::chrono::seconds(60);
  /// When the budget is spent the world is asked to end the run, and gets one device host more to
  /// do it with.
  bool asks_to_stop = false;
};

/// The stable address of a rank's GPU: spawns and watches its device hosts, and keeps what must
/// outlive them. What is to be done about them DeviceProtocol decides; here are the processes,
/// sockets and memory that its actions are about, and what the rank asks of whichever host serves.
class DeviceActor
    : public Actor<DeviceActor, DeviceOrder, device_message::FromHost, device_message::HostClosed,
                   device_message::HostExited, device_message::Look, device_message::Listen,
                   device_message::MakeSlab, device_message::MapPinned, device_message::DropRegion,
                   device_message::ShareSlab, device_message::MapForeign, device_message::AskMemory,
                   device_message::AskLibraries, device_message::KindsRecur,
                   device_message::ContributeGroup, device_message::ConnectGroup,
                   device_message::DropGroup, device_message::Health, device_message::ProbeOver,
                   device_message::Suffer, device_message::WorldActive, device_message::RunProgress,
                   device_message::GiveUp, device_message::Revive, device_message::ShutDown>,
      private DeviceActions {
 public:
  /// `described` is resolved with the JSON description once the first host is ready, or with its
  /// error.
  DeviceActor(DeviceSettings settings, CommandPort* port,
              std::shared_ptr<Promise<std::string>> described);

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
  void on(const device_message::ProbeOver& over);
  void on(device_message::Suffer suffer);
  void on(device_message::WorldActive);
  void on(device_message::RunProgress progress) { protocol_.progress(progress.in_run); }
  void on(device_message::GiveUp left) { protocol_.give_up(left.why); }
  void on(device_message::Revive);
  bool on(device_message::ShutDown);

 private:
  using Link = std::shared_ptr<HostLink>;

  // What the protocol decides.
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

  // What a host says of itself. All else are answers.
  void hear(HostId id, wire::from_host::Ready said);
  void hear(HostId id, wire::from_host::LibraryOpened said);
  void hear(HostId id, wire::from_host::KindRecurs said);
  void hear(HostId id, wire::from_host::PlansMade said);
  void hear(HostId id, wire::from_host::Fatal said);
  void hear(HostId id, wire::from_host::CommunicatorBroken said);

  [[nodiscard]] const Link& link(HostId host) const { return links_.at(host); }
  /// nullptr: nullopt.
  [[nodiscard]] Link link(std::optional<HostId> host) const;
  /// The reason for its end that the host has left behind; mostly empty.
  [[nodiscard]] std::string last_words(HostId host) const;
  [[nodiscard]] LibraryUse::Heirs heirs() const;
  Result<void> spawn(HostId host, Start as);
  void tell(DeviceEvent event);
  void hear(const HealthEvent& event, unsigned processes);
  void probe(const std::string& sign, bool shared);
  /// The next host has the commands of the lost one from now on. `ending`: of the process, in
  /// words.
  void inherit(HostId old, HostId next, const DeviceFault& fault, const std::string& ending,
               std::chrono::nanoseconds end);
  void measured(std::optional<std::uint64_t> bytes);
  void look_at_signs();
  void leave(HostId host);
  void reap();

  DeviceSettings settings_;
  CommandPort* port_;
  std::shared_ptr<Promise<std::string>> described_;
  std::unique_ptr<Watcher> watcher_;
  DeviceListener listener_;
  DeviceProtocol protocol_;
  std::uint64_t probe_ = 0;       ///< the number of the one that is under way
  std::map<HostId, Link> links_;  ///< of the hosts that the protocol knows
  HostRequests requests_;
  DeviceMemory memory_;
  LibraryUse libraries_;
  StandbyMemory standby_memory_;
  SilenceWatch silence_;
  OperationWatch operations_;
  std::vector<Link> dismissed_;
  std::vector<Link> ending_;  ///< of hosts that the protocol has left; not reaped yet
  bool disturbed_ = false;    ///< what led to it is recorded
};

}  // namespace troupe::rank_process
