#include "rank/device/host/host_actions.hpp"

#include <cstdio>
#include <cstdlib>
#include <utility>
#include <variant>

#include "common/core/log.hpp"
#include "rank/device/host/device_actor.hpp"
#include "rank/device/host/host_signs.hpp"
#include "rank/device/host/order_requests.hpp"

namespace troupe::rank_process {

namespace to_host = wire::to_host;
namespace from_host = wire::from_host;

namespace {

const Error kReformed{Errc::world_reformed, 0, "the world is re-formed: call World::wait_active()"};

std::uint32_t count(const std::vector<std::uint32_t>& buffers) {
  return static_cast<std::uint32_t>(buffers.size());
}

}  // namespace

Result<void> HostActions::start(HostId host, Start as) {
  auto& parts = parts_;
  if (as == Start::standby)
    parts.standby_memory.before(parts.serving().get(), parts.memory.slab_bytes());
  if (auto first = std::exchange(parts.first, nullptr)) {
    parts.port.hosts().attach(first);
    parts.links.adopt(std::move(first));
    return {};
  }
  const auto spawn = [&]() -> Result<void> {
    auto made = HostLink::create(parts.settings.launch, host);
    if (!made) return made.error();
    parts.libraries.name_modules(**made);
    if (as == Start::first) parts.port.hosts().attach(*made);
    return parts.links.spawn(std::move(*made), as == Start::standby);
  };
  auto started = spawn();
  if (started.ok()) return started;
  if (as == Start::standby) log::warn("device", "no standby: {}", started.error().to_string());
  if (as == Start::revival) log::info("device", "no new start: {}", started.error().to_string());
  return started;
}

void HostActions::halt(HostId host) {
  parts_.links.at(host)->header().halts.fetch_add(1);
}

Result<void> HostActions::carry_out(HostId host, const DeviceOrder& order) {
  return ask_for(parts_.requests, *parts_.links.at(host), order,
                 [&parts = parts_, host, order](auto outcome) {
                   parts.protocol.answered(host, order, std::move(outcome));
                 });
}

void HostActions::resume(HostId host) {
  const auto& link = *parts_.links.at(host);
  (void)wire::send_control(link.socket(), to_host::Resume{link.header().halts.load()});
}

void HostActions::promote(HostId host) {
  const auto& next = parts_.links.at(host);
  parts_.memory.give(*next);
  (void)parts_.requests.ask(
      *next, to_host::Promote{next->header().halts.load()},
      [&parts = parts_, host](const Result<from_host::Done>& answer) {
        parts.protocol.promoted(host, answer.ok() ? Result<void>() : answer.error(), parts.now());
      },
      HostRequests::IfLost::forget);
}

void HostActions::serves(HostId host) {
  parts_.memory.make_wanted(parts_.links.at(host));
}

void HostActions::settle() {
  const auto settled = parts_.port.hosts().settle_in_place(kReformed);
  parts_.tell(DeviceLoss{"", count(settled.lost_buffers), {}});
}

void HostActions::hand_over(HostId old, HostId next) {
  parts_.requests.fail(old, {Errc::device_lost, 0, "the device host is replaced"});
  const auto settled = parts_.port.hosts().move_to(parts_.links.at(next), kReformed);
  parts_.tell(DeviceLoss{"", count(settled.lost_buffers), {}});
  log::debug("device", "device host {} hands over: {} commands go on", old, settled.resubmitted);
}

void HostActions::mourn(HostId host, const DeviceFault& fault) {
  if (parts_.settings.launch.in_process) {
    std::fprintf(stderr,
                 "troupe: the device host thread: %s; with isolation = thread this ends the rank\n",
                 fault.error.to_string().c_str());
    std::_Exit(1);
  }
  log::info("device", "device host {} is lost: {}", host, fault.error.to_string());
  parts_.requests.fail(host, host_died(fault.error));
}

void HostActions::kill(HostId host) {
  parts_.links.at(host)->kill();
}

void HostActions::bury(HostId old, HostId next, const DeviceFault& fault) {
  const auto ending = parts_.links.at(old)->try_reap().value_or("its process has ended");
  inherit(old, next, fault, ending, parts_.now() - fault.detected_at);
  leave(old);
}

void HostActions::outlive(HostId old, HostId next, const DeviceFault& fault) {
  inherit(old, next, fault, "its context is dead", {});
}

void HostActions::inherit(HostId old, HostId next, const DeviceFault& fault,
                          const std::string& ending, std::chrono::nanoseconds end) {
  const auto& links = parts_.links;
  const auto kind =
      fault.kind.empty() ? fault_kind_of(links.at(old)->header(), ending) : fault.kind;
  const auto settled = parts_.port.hosts().move_to(links.at(next), host_died(fault.error));
  parts_.tell(DeviceLoss{kind, count(settled.lost_buffers), end});
  log::info(
      "device",
      "device host {} ({}): {} commands failed, {} buffers lost, {} commands go on ({} again)", old,
      ending, settled.failed, settled.lost_buffers.size(), settled.resubmitted, settled.repeated);
}

void HostActions::leave(HostId host) {
  parts_.libraries.forget(host);
  parts_.links.leave(host);
}

void HostActions::drop_standby(HostId host, const Error& lost) {
  log::warn("device", "the standby died: {}", lost.to_string());
  parts_.libraries.lost(host);
  drop(host);
}

void HostActions::drop_successor(HostId host, const Error& lost) {
  log::info("device", "device host {}, a successor, is lost: {}", host, lost.to_string());
  parts_.libraries.lost(host);
  drop(host);
}

/// Requests that still wait for this host fail: it will not answer.
void HostActions::drop(HostId host) {
  parts_.requests.fail(host, {Errc::device_lost, 0, "the device host is given up"});
  kill(host);
  leave(host);
}

void HostActions::dismiss(HostId host) {
  parts_.requests.fail(host, {Errc::stopped, 0, "the device is shut down"});
  parts_.links.dismiss(host);
}

void HostActions::give_up(const Error& error) {
  log::debug("device", "the device is given up: {}", error.to_string());
  parts_.port.hosts().end(error);
  parts_.described->resolve(error);
  parts_.memory.give_up(error);
  parts_.requests.fail_all(error);
}

void HostActions::begin_again(HostId host) {
  parts_.port.hosts().begin_again(parts_.links.at(host));
}

void HostActions::disturbed(const std::string& what) {
  auto* const flight = parts_.settings.flight;
  if (flight != nullptr && !std::exchange(disturbed_, true)) flight->dump(what);
}

void HostActions::report(DeviceEvent event) {
  const auto serving = parts_.serving();
  const auto slabs = parts_.memory.slab_bytes();
  if (auto* const fault = std::get_if<DeviceFault>(&event);
      fault != nullptr && fault->struck_at == TimePoint{}) {
    const auto host = parts_.links.find(parts_.protocol.hosts().active());
    fault->struck_at = host ? struck_at(host->header(), fault->detected_at) : fault->detected_at;
  }
  if (std::holds_alternative<DeviceExhausted>(event))
    log::warn("device", "the restart budget is spent: the run ends with the next commit");
  const auto* const done = std::get_if<DeviceDone>(&event);
  if (done != nullptr && done->formation != 0 && done->order == DeviceDone::Order::connect &&
      done->outcome.ok()) {
    return parts_.standby_memory.after(serving.get(), slabs, [this, event](auto bytes) {
      measured(bytes);
      parts_.tell(event);
    });
  }
  const auto* const standby = std::get_if<DeviceStandby>(&event);
  const bool raised = standby != nullptr && standby->ready;
  parts_.tell(std::move(event));
  if (raised)
    parts_.standby_memory.after(serving.get(), slabs, [this](auto bytes) { measured(bytes); });
}

void HostActions::measured(std::optional<std::uint64_t> bytes) {
  if (bytes) parts_.tell(DeviceStandbyMemory{*bytes});
}

}  // namespace troupe::rank_process
