#include "rank/device/host/device_actor.hpp"

#include <cstdio>
#include <cstdlib>
#include <utility>
#include <variant>

#include <troupe/actor/patient_tell.hpp>

#include "common/core/log.hpp"
#include "rank/device/health/xid.hpp"
#include "rank/device/host/host_signs.hpp"
#include "rank/device/host/order_requests.hpp"

namespace troupe::rank_process {

using namespace device_message;
namespace to_host = wire::to_host;
namespace from_host = wire::from_host;

namespace {

constexpr auto kLookEvery = std::chrono::milliseconds(100);  ///< at deadlines
/// A GPU that carries out anything for this rank alone has carried out a probe by then, and where
/// device hosts have cores of their own the answer is there.
constexpr auto kProbePatience = std::chrono::milliseconds(10);

const Error kReformed{Errc::world_reformed, 0, "the world is re-formed: call World::wait_active()"};

std::uint32_t count(const std::vector<std::uint32_t>& buffers) {
  return static_cast<std::uint32_t>(buffers.size());
}

}  // namespace

DeviceActor::DeviceActor(DeviceSettings settings, CommandPort* port,
                         std::shared_ptr<Promise<std::string>> described)
    : settings_(std::move(settings)),
      port_(port),
      described_(std::move(described)),
      protocol_({.standby = settings_.standby,
                 .in_world = settings_.in_world,
                 .start_timeout = settings_.start_timeout,
                 .drain_timeout = settings_.heartbeat_timeout,
                 .restart_budget = settings_.restart_budget,
                 .restart_window = settings_.restart_window,
                 .asks_to_stop = settings_.asks_to_stop},
                this),
      memory_(&requests_),
      libraries_(&requests_, settings_.tuning_file),
      standby_memory_(&requests_),
      silence_(2 * kLookEvery),
      operations_(settings_.op_timeout) {}

void DeviceActor::on_start() {
  libraries_.load();
  const auto self = context().self();
  // A full mailbox is only a matter of time: the watcher may wait for it.
  const auto tell = [self](const auto& message) { (void)tell_patiently(self, message); };
  auto watcher = Watcher::start(
      *port_,
      {.message =
           [tell](std::uint64_t link, wire::FromDeviceHost message) {
             tell(FromHost{link, std::make_shared<wire::FromDeviceHost>(std::move(message))});
           },
       .closed = [tell](std::uint64_t link) { tell(HostClosed{link}); },
       .exited = [tell](std::uint64_t link) { tell(HostExited{link}); }});
  if (!watcher) return protocol_.give_up(watcher.error());
  watcher_ = std::move(*watcher);
  silence_.start(context().now());
  protocol_.start(context().now());
  context().schedule(kLookEvery, Look{});
}

void DeviceActor::on_stop(const Error&) noexcept {
  watcher_.reset();
  requests_.clear();
  dismissed_.clear();
  links_.clear();
  ending_.clear();
}

DeviceActor::Link DeviceActor::link(std::optional<HostId> host) const {
  return host ? links_.at(*host) : nullptr;
}

LibraryUse::Heirs DeviceActor::heirs() const {
  LibraryUse::Heirs all;
  for (const auto host : protocol_.hosts().heirs()) all.push_back(link(host));
  return all;
}

// What becomes of hosts

Result<void> DeviceActor::start(HostId host, Start as) {
  if (as == Start::standby) {
    standby_memory_.before(link(protocol_.hosts().serving()).get(), memory_.slab_bytes());
  }
  auto started = spawn(host, as);
  if (started.ok()) return started;
  if (as == Start::standby) log::warn("device", "no standby: {}", started.error().to_string());
  if (as == Start::revival) log::info("device", "no new start: {}", started.error().to_string());
  return started;
}

Result<void> DeviceActor::spawn(HostId host, Start as) {
  auto made = HostLink::create(settings_.launch, host);
  if (!made) return made.error();
  libraries_.name_modules(**made);
  if (as == Start::first) port_->hosts().attach(*made);
  const bool standby = as == Start::standby;
  if (auto spawned = (*made)->spawn(standby); !spawned) return spawned;
  watcher_->add(*made);
  log::debug("device", "device host {} started as {} (pid {})", host,
             standby ? "standby" : "active", (*made)->pid());
  links_[host] = std::move(*made);
  return {};
}

void DeviceActor::on(FromHost from) {
  const auto state = protocol_.hosts().state_of(from.link);
  if (!state || state == HostState::retired) return;
  std::visit(
      [&]<class Kind>(Kind& said) {
        if constexpr (wire::kIsAnswer<Kind>) {
          requests_.answered(from.link, std::move(*from.message));
        } else {
          hear(from.link, std::move(said));
        }
      },
      from.message->message);
}

void DeviceActor::hear(HostId id, from_host::Ready said) {
  const auto& host = link(id);
  host->watch_life([self = context().self(), id] {
    (void)self.tell(HostClosed{id});  // the socket's end says it again
  });
  libraries_.warm_up(*host);
  libraries_.note_modules(*host);
  libraries_.lacks(host->header().unknown.text());
  port_->hosts().ready(*host);
  described_->resolve(std::move(said.description));  // the first one's counts
  protocol_.ready(id, context().now());
}

void DeviceActor::hear(HostId, from_host::LibraryOpened said) {
  if (auto news = libraries_.library_opened(said.library, heirs()))
    tell(DeviceLibrary{std::move(*news)});
}

void DeviceActor::hear(HostId, from_host::KindRecurs said) {
  libraries_.kind_recurs(said, heirs());
}

void DeviceActor::hear(HostId, from_host::PlansMade said) {
  libraries_.plans_made(std::move(said), heirs());
}

void DeviceActor::hear(HostId id, from_host::Fatal said) {
  const auto kind = fault_kind_of(link(id)->header(), std::string(to_string(said.error.code)));
  protocol_.fatal(id, kind, said.error, said.still, context().now());
}

void DeviceActor::hear(HostId id, from_host::CommunicatorBroken said) {
  protocol_.communicator_broken(id, said.what, context().now());
}

void DeviceActor::on(HostClosed closed) {
  protocol_.closed(closed.link, context().now(), last_words(closed.link));
}

void DeviceActor::on(HostExited exited) {
  const auto found = links_.find(exited.link);
  if (found != links_.end() && found->second->host_is_there())
    return watcher_->await_host(*found->second);  // it was its wrapper
  protocol_.exited(exited.link, context().now(), last_words(exited.link));
}

std::string DeviceActor::last_words(HostId host) const {
  const auto known = links_.find(host);
  return known == links_.end() ? "" : known->second->header().last_words.text();
}

void DeviceActor::on(Look) {
  context().schedule(kLookEvery, Look{});
  reap();
  look_at_signs();
  protocol_.tick(context().now());
}

/// What hosts that say nothing show.
void DeviceActor::look_at_signs() {
  const auto now = context().now();
  silence_.look(now);
  const auto host = protocol_.hosts().beating();
  if (!host || protocol_.failure()) return;
  const auto& header = link(*host)->header();
  const TimePoint beat(header.heartbeat_ns.load(std::memory_order_acquire));
  if (silence_.silent(beat) > settings_.heartbeat_timeout) {
    return protocol_.lost(*host, fault_kind_of(header, "hang"),
                          {Errc::timeout, 0, "its heartbeat stands still"}, now);
  }
  if (port_->corrupt()) {
    return protocol_.lost(*host, "corrupt", {Errc::internal, 0, "its shared memory holds nonsense"},
                          now);
  }
  const auto oldest = port_->retired();
  if (!protocol_.watches_operations() ||
      !operations_.late(oldest, port_->submitted(), silence_.seen()))
    return;
  const auto what =
      settings_.flight != nullptr ? settings_.flight->describe(oldest + 1) : std::string();
  const Error late{Errc::timeout, 0,
                   (what.empty() ? "an operation" : what) + " is past its deadline (op-timeout)"};
  log::warn("device", "{}", late.message);
  protocol_.overdue(late, now);
}

void DeviceActor::mourn(HostId host, const DeviceFault& fault) {
  if (settings_.launch.in_process) {
    std::fprintf(stderr,
                 "troupe: the device host thread: %s; with isolation = thread this ends the rank\n",
                 fault.error.to_string().c_str());
    std::_Exit(1);
  }
  log::info("device", "device host {} is lost: {}", host, fault.error.to_string());
  requests_.fail(host, {Errc::device_lost, fault.error.native,
                        "the device host died: " + fault.error.message});
}

void DeviceActor::kill(HostId host) {
  link(host)->kill();
}

void DeviceActor::bury(HostId old, HostId next, const DeviceFault& fault) {
  const auto ending = link(old)->try_reap().value_or("its process has ended");
  inherit(old, next, fault, ending, context().now() - fault.detected_at);
  leave(old);
}

/// The process has ended, or is killed and ends soon. Nothing waits for that: under load, or with
/// much memory to give back, it may take long.
void DeviceActor::leave(HostId host) {
  ending_.push_back(link(host));
  watcher_->remove(host);
  libraries_.forget(host);
  links_.erase(host);
  reap();
}

void DeviceActor::reap() {
  std::erase_if(ending_, [](const Link& link) { return link->try_reap().has_value(); });
}

void DeviceActor::outlive(HostId old, HostId next, const DeviceFault& fault) {
  inherit(old, next, fault, "its context is dead", {});
}

void DeviceActor::inherit(HostId old, HostId next, const DeviceFault& fault,
                          const std::string& ending, std::chrono::nanoseconds end) {
  const auto kind = fault.kind.empty() ? fault_kind_of(link(old)->header(), ending) : fault.kind;
  const auto settled = port_->hosts().move_to(
      link(next),
      {Errc::device_lost, fault.error.native, "the device host died: " + fault.error.message});
  tell(DeviceLoss{kind, count(settled.lost_buffers), end});
  log::info(
      "device",
      "device host {} ({}): {} commands failed, {} buffers lost, {} commands go on ({} again)", old,
      ending, settled.failed, settled.lost_buffers.size(), settled.resubmitted, settled.repeated);
}

void DeviceActor::drop_standby(HostId host, const Error& lost) {
  log::warn("device", "the standby died: {}", lost.to_string());
  libraries_.lost(host);
  drop(host);
}

void DeviceActor::drop_successor(HostId host, const Error& lost) {
  log::info("device", "device host {}, a successor, is lost: {}", host, lost.to_string());
  libraries_.lost(host);
  drop(host);
}

/// Whatever still waits for this host to answer is told that it will not.
void DeviceActor::drop(HostId host) {
  requests_.fail(host, {Errc::device_lost, 0, "the device host is given up"});
  link(host)->kill();
  leave(host);
}

void DeviceActor::hand_over(HostId old, HostId next) {
  requests_.fail(old, {Errc::device_lost, 0, "the device host is replaced"});
  const auto settled = port_->hosts().move_to(link(next), kReformed);
  tell(DeviceLoss{"", count(settled.lost_buffers), {}});
  log::debug("device", "device host {} hands over: {} commands go on", old, settled.resubmitted);
}

void DeviceActor::promote(HostId host) {
  const auto& next = link(host);
  memory_.give(*next);
  (void)requests_.ask(
      *next, to_host::Promote{next->header().halts.load()},
      [this, host](const Result<from_host::Done>& answer) {
        protocol_.promoted(host, answer.ok() ? Result<void>() : answer.error(), context().now());
      },
      HostRequests::IfLost::forget);
}

void DeviceActor::serves(HostId host) {
  memory_.make_wanted(link(host));
}

void DeviceActor::give_up(const Error& error) {
  log::debug("device", "the device is given up: {}", error.to_string());
  port_->hosts().end(error);
  described_->resolve(error);
  memory_.give_up(error);
  requests_.fail_all(error);
}

void DeviceActor::begin_again(HostId host) {
  port_->hosts().begin_again(link(host));
}

void DeviceActor::on(const Health& said) {
  hear(said.event, said.processes);
  if (said.heard) said.heard->resolve({});
}

void DeviceActor::hear(const HealthEvent& event, unsigned processes) {
  if (event.xid == kXidChannelReset) probe(event.text, processes > links_.size());
  if (!settings_.health->add(event)) return;
  if (settings_.flight != nullptr) settings_.flight->health_said(event);
  // A fault of the program, or the end of a device host, is told where it is overcome.
  if (event.kind == HealthKind::application)
    return log::debug("device", "the GPU says: {}", event.text);
  log::warn("device", "the GPU {}: {}", event.failing ? "is failing" : "says", event.text);
  if (event.failing && settings_.flight != nullptr)
    settings_.flight->dump("the GPU is failing: " + event.text);
  tell(DeviceHealth{event});
}

/// What the GPU says may be of another process on it, or of a device host that is lost already: the
/// host that serves shows whether it is meant. In a dead context nothing that is launched ends, and
/// some launches do not return. Processes that share a GPU take turns of milliseconds.
void DeviceActor::probe(const std::string& sign, bool shared) {
  const auto host = protocol_.hosts().serving();
  if (!host || protocol_.failure()) return;
  const auto probe = ++probe_;
  (void)requests_.ask(
      *link(*host), to_host::Probe{}, [this](const Result<from_host::Done>&) { ++probe_; },
      HostRequests::IfLost::forget);
  const bool prompt = settings_.launch.spin_us != 0 && !shared;
  context().schedule(prompt ? kProbePatience : settings_.heartbeat_timeout / 3,
                     ProbeOver{*host, probe, sign});
}

void DeviceActor::on(const ProbeOver& over) {
  const auto host = links_.find(over.host);
  if (probe_ != over.probe || host == links_.end()) return;
  const Error dead{Errc::device_lost, 0,
                   over.sign + "; and what is launched now is not carried out"};
  protocol_.lost(over.host, fault_kind_of(host->second->header(), "context lost"), dead,
                 context().now());
}

void DeviceActor::on(Suffer suffer) {
  if (const auto host = link(protocol_.hosts().active()))
    (void)wire::send_control(host->socket(), to_host::Suffer{suffer.kind});
}

// Orders

void DeviceActor::on(const DeviceOrder& order) {
  if (!protocol_.order(order, context().now())) {
    log::error("device", "an order of round {} that does not fit what the device is at",
               order.round);
  }
}

void DeviceActor::halt(HostId host) {
  link(host)->header().halts.fetch_add(1);
}

Result<void> DeviceActor::carry_out(HostId host, const DeviceOrder& order) {
  return ask_for(requests_, *link(host), order, [this, host, order](auto outcome) {
    protocol_.answered(host, order, std::move(outcome));
  });
}

void DeviceActor::resume(HostId host) {
  (void)wire::send_control(link(host)->socket(),
                           to_host::Resume{link(host)->header().halts.load()});
}

void DeviceActor::settle() {
  const auto settled = port_->hosts().settle_in_place(kReformed);
  tell(DeviceLoss{"", count(settled.lost_buffers), {}});
}

void DeviceActor::on(WorldActive) {
  protocol_.world_active(context().now());
}

void DeviceActor::on(Revive) {
  reap();
  // A host that is still ending may write to the memory that a new one would use. Do nothing: the
  // world asks again after rejoin_after.
  if (!ending_.empty()) return;
  protocol_.revive(context().now());
}

bool DeviceActor::on(ShutDown) {
  protocol_.shut_down();
  const auto since = SteadyClock::time();
  for (const auto& host : dismissed_) host->await_end(since);
  dismissed_.clear();
  links_.clear();
  ending_.clear();
  port_->hosts().end(*protocol_.failure());
  return true;
}

void DeviceActor::dismiss(HostId host) {
  const auto& dismissed = link(host);
  requests_.fail(host, {Errc::stopped, 0, "the device is shut down"});
  watcher_->remove(host);
  dismissed->dismiss();
  dismissed_.push_back(dismissed);
}

// News

void DeviceActor::on(Listen listen) {
  listener_ = std::move(listen.listener);
  protocol_.listen();
  for (auto& library : libraries_.opened()) tell(DeviceLibrary{std::move(library)});
}

void DeviceActor::disturbed(const std::string& what) {
  if (settings_.flight != nullptr && !std::exchange(disturbed_, true)) settings_.flight->dump(what);
}

void DeviceActor::report(DeviceEvent event) {
  const auto serving = link(protocol_.hosts().serving());
  const auto slabs = memory_.slab_bytes();
  if (auto* const fault = std::get_if<DeviceFault>(&event);
      fault != nullptr && fault->struck_at == TimePoint{}) {
    const auto host = link(protocol_.hosts().active());
    fault->struck_at = host ? struck_at(host->header(), fault->detected_at) : fault->detected_at;
  }
  if (std::holds_alternative<DeviceExhausted>(event))
    log::warn("device", "the restart budget is spent: the run ends with the next commit");
  const auto* const done = std::get_if<DeviceDone>(&event);
  if (done != nullptr && done->formation != 0 && done->order == DeviceDone::Order::connect &&
      done->outcome.ok()) {
    return standby_memory_.after(serving.get(), slabs, [this, event](auto bytes) {
      measured(bytes);
      tell(event);
    });
  }
  const auto* const standby = std::get_if<DeviceStandby>(&event);
  const bool raised = standby != nullptr && standby->ready;
  tell(std::move(event));
  if (raised) standby_memory_.after(serving.get(), slabs, [this](auto bytes) { measured(bytes); });
}

void DeviceActor::measured(std::optional<std::uint64_t> bytes) {
  if (bytes) tell(DeviceStandbyMemory{*bytes});
}

void DeviceActor::tell(DeviceEvent event) {
  if (listener_) listener_(std::move(event));
}

void DeviceActor::on(const AskMemory& ask) {
  const auto host = link(protocol_.hosts().serving());
  if (protocol_.failure() || !host) {
    ask.told->resolve(protocol_.failure().value_or(
        Error{Errc::device_lost, 0, "there is no device host just now"}));
    return;
  }
  (void)requests_.ask(*host, to_host::TellMemoryUse{},
                      [this, ask](const Result<from_host::MemoryUse>& answer) {
                        if (!answer.ok()) {
                          ask.told->resolve(answer.error());
                          return;
                        }
                        std::vector<MemoryUse> all;
                        for (const auto& [cause, bytes] : answer->parts)
                          all.push_back({cause, bytes});
                        if (protocol_.hosts().standby() && standby_memory_.bytes() != 0)
                          all.push_back({"standby", standby_memory_.bytes()});
                        all.push_back({"free", answer->free});
                        ask.told->resolve(std::move(all));
                      });
}

/// What has been opened is told ahead of the answer.
void DeviceActor::on(const AskLibraries& ask) {
  const auto tell = [this, ask] { ask.told->resolve(libraries_.opened()); };
  const auto host = link(protocol_.hosts().beating());
  if (protocol_.failure() || !host) return tell();
  (void)requests_.ask(*host, to_host::TellLibraries{},
                      [tell](const Result<from_host::Done>&) { tell(); });
}

void DeviceActor::on(KindsRecur recur) {
  libraries_.kinds_recur(std::move(recur), heirs());
}

// Memory

void DeviceActor::on(const MakeSlab& make) {
  if (protocol_.failure()) return (void)make.made->resolve(*protocol_.failure());
  memory_.make(make, link(protocol_.hosts().serving()));
}

void DeviceActor::on(const MapPinned& map) {
  if (protocol_.failure()) return (void)map.mapped->resolve(*protocol_.failure());
  memory_.map(map, link(protocol_.hosts().with_memory()));
}

void DeviceActor::on(const MapForeign& map) {
  if (protocol_.failure()) return (void)map.mapped->resolve(*protocol_.failure());
  memory_.map(map, link(protocol_.hosts().with_memory()));
}

void DeviceActor::on(const ShareSlab& share) {
  memory_.share(share);
}

void DeviceActor::on(DropRegion drop) {
  memory_.drop(drop.region, link(protocol_.hosts().with_memory()).get());
}

// Groups, which are formed beside the work of the host that serves

void DeviceActor::on(const ContributeGroup& order) {
  ask_for(requests_, link(protocol_.hosts().serving()).get(), order);
}

void DeviceActor::on(const ConnectGroup& order) {
  ask_for(requests_, link(protocol_.hosts().serving()).get(), order);
}

void DeviceActor::on(DropGroup order) {
  for (const auto& host : {link(protocol_.hosts().active()), link(protocol_.hosts().successor())}) {
    if (host) (void)wire::send_control(host->socket(), to_host::DropGroup{order.number});
  }
}

}  // namespace troupe::rank_process
