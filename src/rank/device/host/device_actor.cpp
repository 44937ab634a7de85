#include "rank/device/host/device_actor.hpp"

#include <utility>

#include <troupe/actor/patient_tell.hpp>

#include "common/core/log.hpp"
#include "rank/device/host/order_requests.hpp"

namespace troupe::rank_process {

using namespace device_message;
namespace to_host = wire::to_host;
namespace from_host = wire::from_host;

DeviceParts::DeviceParts(const DeviceSettings& its_settings, CommandPort& its_port,
                         std::shared_ptr<Promise<std::string>> its_described,
                         Context<DeviceActor> its_context)
    : settings(its_settings),
      port(its_port),
      described(std::move(its_described)),
      context(its_context),
      memory(&requests, settings),
      libraries(&requests, settings.tuning_file),
      standby_memory(&requests),
      links(port),
      actions(*this),
      protocol({.standby = settings.standby,
                .in_world = settings.in_world,
                .start_timeout = settings.start_timeout,
                .drain_timeout = settings.heartbeat_timeout,
                .restart_budget = settings.restart_budget,
                .restart_window = settings.restart_window,
                .asks_to_stop = settings.asks_to_stop},
               &actions),
      news(*this),
      checks(*this) {}

DeviceActor::DeviceActor(DeviceSettings settings, CommandPort* port,
                         std::shared_ptr<Promise<std::string>> described,
                         std::shared_ptr<EarlyHost> early)
    : settings_(std::move(settings)),
      port_(port),
      described_(std::move(described)),
      early_(std::move(early)) {}

void DeviceActor::on_start() {
  parts_ = std::make_unique<DeviceParts>(settings_, *port_, described_, context());
  // Not kept by the actor: the link's thread has the actor's address, and may be the last to have
  // it.
  if (early_) parts_->first = early_->take_link();
  parts_->libraries.load();
  // A full mailbox is only a matter of time: the watcher may wait for it.
  const auto tell = [self = context().self()](const auto& message) {
    (void)tell_patiently(self, message);
  };
  const auto watching = parts_->links.start(
      {.message =
           [tell](std::uint64_t link, wire::FromDeviceHost message) {
             tell(FromHost{link, std::make_shared<wire::FromDeviceHost>(std::move(message))});
           },
       .closed = [tell](std::uint64_t link) { tell(HostClosed{link}); },
       .exited = [tell](std::uint64_t link) { tell(HostExited{link}); }});
  if (!watching.ok()) return parts_->protocol.give_up(watching.error());
  parts_->checks.start(context().now());
  parts_->protocol.start(context().now());
  context().schedule(HostChecks::kLookEvery, Look{});
}

void DeviceActor::on_stop(const Error&) noexcept {
  if (!parts_) return;
  parts_->requests.clear();
  parts_->links.clear();
}

// What becomes of hosts

void DeviceActor::on(FromHost from) {
  parts_->news.hear(from.link, std::move(*from.message));
}

void DeviceActor::on(HostClosed closed) {
  parts_->protocol.closed(closed.link, context().now(), parts_->links.last_words(closed.link));
}

void DeviceActor::on(HostExited exited) {
  if (parts_->links.was_wrapper(exited.link)) return;
  parts_->protocol.exited(exited.link, context().now(), parts_->links.last_words(exited.link));
}

void DeviceActor::on(Look) {
  context().schedule(HostChecks::kLookEvery, Look{});
  parts_->links.reap();
  parts_->checks.look();
  parts_->protocol.tick(context().now());
}

void DeviceActor::on(const Health& said) {
  parts_->checks.on(said);
  if (said.heard) said.heard->resolve({});
}

void DeviceActor::on(Suffer suffer) {
  if (const auto host = parts_->links.find(parts_->protocol.hosts().active()))
    (void)wire::send_control(host->socket(), to_host::Suffer{suffer.kind});
}

// The world

void DeviceActor::on(Listen listen) {
  parts_->listener = std::move(listen.listener);
  parts_->protocol.listen();
  for (auto& library : parts_->libraries.opened()) parts_->tell(DeviceLibrary{std::move(library)});
}

void DeviceActor::on(const DeviceOrder& order) {
  if (!parts_->protocol.order(order, context().now())) {
    log::error("device", "an order of round {} that does not fit what the device is at",
               order.round);
  }
}

void DeviceActor::on(WorldActive) {
  parts_->protocol.world_active(context().now());
}

void DeviceActor::on(Revive) {
  parts_->links.reap();
  // A host that is still ending may write to the memory that a new one would use. Do nothing: the
  // world asks again after rejoin_after.
  if (!parts_->links.all_reaped()) return;
  parts_->protocol.revive(context().now());
}

bool DeviceActor::on(ShutDown) {
  parts_->protocol.shut_down();
  parts_->links.await_dismissed();
  parts_->port.hosts().end(*parts_->protocol.failure());
  return true;
}

// Requests of the rank to the host that serves

void DeviceActor::on(const AskMemory& ask) {
  auto& parts = *parts_;
  const auto host = parts.serving();
  if (parts.protocol.failure() || !host) {
    ask.told->resolve(parts.protocol.failure().value_or(
        Error{Errc::device_lost, 0, "there is no device host just now"}));
    return;
  }
  (void)parts.requests.ask(*host, to_host::TellMemoryUse{},
                           [&parts, ask](const Result<from_host::MemoryUse>& answer) {
                             if (!answer.ok()) {
                               ask.told->resolve(answer.error());
                               return;
                             }
                             std::vector<MemoryUse> all;
                             for (const auto& [cause, bytes] : answer->parts)
                               all.push_back({cause, bytes});
                             const auto standby = parts.standby_memory.bytes();
                             if (parts.protocol.hosts().standby() && standby != 0)
                               all.push_back({"standby", standby});
                             all.push_back({"free", answer->free});
                             ask.told->resolve(std::move(all));
                           });
}

/// What has been opened is told ahead of the answer.
void DeviceActor::on(const AskLibraries& ask) {
  auto& parts = *parts_;
  const auto tell = [&parts, ask] { ask.told->resolve(parts.libraries.opened()); };
  const auto host = parts.links.find(parts.protocol.hosts().beating());
  if (parts.protocol.failure() || !host) return tell();
  (void)parts.requests.ask(*host, to_host::TellLibraries{},
                           [tell](const Result<from_host::Done>&) { tell(); });
}

void DeviceActor::on(KindsRecur recur) {
  parts_->libraries.kinds_recur(std::move(recur), parts_->heirs());
}

// Memory

void DeviceActor::on(const MakeSlab& make) {
  if (const auto& failure = parts_->protocol.failure()) return (void)make.made->resolve(*failure);
  parts_->memory.make(make, parts_->serving());
}

void DeviceActor::on(const MapPinned& map) {
  if (const auto& failure = parts_->protocol.failure()) return (void)map.mapped->resolve(*failure);
  parts_->memory.map(map, parts_->links.find(parts_->protocol.hosts().with_memory()));
}

void DeviceActor::on(const MapForeign& map) {
  if (const auto& failure = parts_->protocol.failure()) return (void)map.mapped->resolve(*failure);
  parts_->memory.map(map, parts_->links.find(parts_->protocol.hosts().with_memory()));
}

void DeviceActor::on(const ShareSlab& share) {
  parts_->memory.share(share);
}

void DeviceActor::on(DropRegion drop) {
  parts_->memory.drop(drop.region,
                      parts_->links.find(parts_->protocol.hosts().with_memory()).get());
}

// Groups, which are formed beside the work of the host that serves

void DeviceActor::on(const ContributeGroup& order) {
  ask_for(parts_->requests, parts_->serving().get(), order);
}

void DeviceActor::on(const ConnectGroup& order) {
  ask_for(parts_->requests, parts_->serving().get(), order);
}

void DeviceActor::on(DropGroup order) {
  const auto& hosts = parts_->protocol.hosts();
  for (const auto& host :
       {parts_->links.find(hosts.active()), parts_->links.find(hosts.successor())}) {
    if (host) (void)wire::send_control(host->socket(), to_host::DropGroup{order.number});
  }
}

}  // namespace troupe::rank_process
