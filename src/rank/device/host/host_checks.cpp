#include "rank/device/host/host_checks.hpp"

#include "common/core/log.hpp"
#include "rank/device/health/xid.hpp"
#include "rank/device/host/device_actor.hpp"
#include "rank/device/host/host_signs.hpp"

namespace troupe::rank_process {

using namespace device_message;

namespace {

/// A GPU that carries out anything for this rank alone has carried out a probe by then, and where
/// device hosts have cores of their own the answer is there.
constexpr auto kProbePatience = std::chrono::milliseconds(10);

}  // namespace

HostChecks::HostChecks(DeviceParts& parts)
    : parts_(parts), silence_(2 * kLookEvery), operations_(parts.settings.op_timeout) {}

void HostChecks::look() {
  const auto now = parts_.now();
  silence_.look(now);
  auto& protocol = parts_.protocol;
  const auto host = protocol.hosts().beating();
  if (!host || protocol.failure()) return;
  const auto& header = parts_.links.at(*host)->header();
  const TimePoint beat(header.heartbeat_ns.load(std::memory_order_acquire));
  if (silence_.silent(beat) > parts_.settings.heartbeat_timeout) {
    return protocol.lost(*host, fault_kind_of(header, "hang"),
                         {Errc::timeout, 0, "its heartbeat stands still"}, now);
  }
  if (parts_.port.corrupt()) {
    return protocol.lost(*host, "corrupt", {Errc::internal, 0, "its shared memory holds nonsense"},
                         now);
  }
  const auto oldest = parts_.port.retired();
  if (!protocol.watches_operations() ||
      !operations_.late(oldest, parts_.port.submitted(), silence_.seen()))
    return;
  auto* const flight = parts_.settings.flight;
  const auto what = flight != nullptr ? flight->describe(oldest + 1) : std::string();
  const Error late{Errc::timeout, 0,
                   (what.empty() ? "an operation" : what) + " is past its deadline (op-timeout)"};
  log::warn("device", "{}", late.message);
  protocol.overdue(late, now);
}

void HostChecks::on(const Health& said) {
  const auto& event = said.event;
  if (event.xid == kXidChannelReset) probe(event.text, said.processes > parts_.links.count());
  auto* const flight = parts_.settings.flight;
  if (!parts_.settings.health->add(event)) return;
  if (flight != nullptr) flight->health_said(event);
  // A fault of the program, or the end of a device host, is told where it is overcome.
  if (event.kind == HealthKind::application)
    return log::debug("device", "the GPU says: {}", event.text);
  log::warn("device", "the GPU {}: {}", event.failing ? "is failing" : "says", event.text);
  if (event.failing && flight != nullptr) flight->dump("the GPU is failing: " + event.text);
  parts_.tell(DeviceHealth{event});
}

void HostChecks::probe(const std::string& sign, bool shared) {
  const auto host = parts_.protocol.hosts().serving();
  if (!host || parts_.protocol.failure()) return;
  const auto probe = ++probe_;
  (void)parts_.requests.ask(
      *parts_.links.at(*host), wire::to_host::Probe{},
      [this](const Result<wire::from_host::Done>&) { ++probe_; }, HostRequests::IfLost::forget);
  const bool prompt = parts_.settings.launch.spin_us != 0 && !shared;
  parts_.context.schedule(prompt ? kProbePatience : parts_.settings.heartbeat_timeout / 3,
                          ProbeOver{*host, probe, sign});
}

void HostChecks::on(const ProbeOver& over) {
  const auto host = parts_.links.known(over.host);
  if (probe_ != over.probe || !host) return;
  const Error dead{Errc::device_lost, 0,
                   over.sign + "; and what is launched now is not carried out"};
  parts_.protocol.lost(over.host, fault_kind_of(host->header(), "context lost"), dead,
                       parts_.now());
}

}  // namespace troupe::rank_process
