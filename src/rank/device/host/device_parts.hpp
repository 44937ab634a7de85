#pragma once

#include <memory>
#include <string>

#include <troupe/actor/actor.hpp>
#include <troupe/future.hpp>

#include "rank/device/commands/command_port.hpp"
#include "rank/device/host/device_memory.hpp"
#include "rank/device/host/device_messages.hpp"
#include "rank/device/host/device_protocol.hpp"
#include "rank/device/host/device_settings.hpp"
#include "rank/device/host/host_actions.hpp"
#include "rank/device/host/host_checks.hpp"
#include "rank/device/host/host_links.hpp"
#include "rank/device/host/host_news.hpp"
#include "rank/device/host/host_requests.hpp"
#include "rank/device/host/library_use.hpp"
#include "rank/device/host/standby_memory.hpp"

namespace troupe::rank_process {

class DeviceActor;

/// The parts of a DeviceActor. They call each other by this; what they hold is their own.
struct DeviceParts {
  DeviceParts(const DeviceSettings& its_settings, CommandPort& its_port,
              std::shared_ptr<Promise<std::string>> its_described,
              Context<DeviceActor> its_context);

  [[nodiscard]] TimePoint now() const { return context.now(); }
  [[nodiscard]] ActorRef<DeviceActor> self() const { return context.self(); }
  /// The host that serves; nullptr: none just now.
  [[nodiscard]] HostLinks::Link serving() const { return links.find(protocol.hosts().serving()); }
  /// The hosts that may serve one day.
  [[nodiscard]] LibraryUse::Heirs heirs() const { return links.of(protocol.hosts().heirs()); }
  /// The world is told this, if there is one.
  void tell(DeviceEvent event) {
    if (listener) listener(std::move(event));
  }

  const DeviceSettings& settings;
  /// The first host, if it has been started before the rank was one; nullptr once it is in links.
  HostLinks::Link first = {};
  CommandPort& port;
  std::shared_ptr<Promise<std::string>> described;
  Context<DeviceActor> context;
  DeviceListener listener;
  HostRequests requests;  ///< what hosts were asked
  DeviceMemory memory;
  LibraryUse libraries;
  StandbyMemory standby_memory;
  HostLinks links;      ///< the processes
  HostActions actions;  ///< what the protocol decides is carried out by
  DeviceProtocol protocol;
  HostNews news;      ///< what hosts say
  HostChecks checks;  ///< on hosts that say nothing
};

}  // namespace troupe::rank_process
