#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>

#include <troupe/lib/channel.hpp>
#include <troupe/lib/memory.hpp>

#include "device_host/device_host.hpp"

// The operations that the reactor carries out itself: no library's half has them.

namespace troupe::host {

/// What is done for each: carry_out() if it needs no lane, run() on its lane, or either, as the
/// command says.
struct DeviceHost::Own {
  static Step carry_out(DeviceHost& host, const memory::Nop&, Source source);
  /// The faults of a process come at once, those of a GPU when its stream gets there.
  static std::optional<Step> carry_out(DeviceHost& host, const memory::Fault& op, Source source);
  static Step carry_out(DeviceHost& host, const memory::LibraryFault& op, Source source);
  static Step carry_out(DeviceHost& host, const memory::Prepare&, Source source);
  static Step carry_out(DeviceHost& host, const channel::Invite& op, Source source);
  static Step carry_out(DeviceHost& host, const channel::Connect& op, Source source);
  static Step carry_out(DeviceHost& host, const channel::Join& op, Source source);
  static Step carry_out(DeviceHost& host, const channel::Send& op, Source source);
  static Step carry_out(DeviceHost& host, const channel::Receive& op, Source source);
  static Step carry_out(DeviceHost& host, const channel::Drop& op, Source source) {
    return host.drop_channel(op.number, source);
  }
  static Step transfer(DeviceHost& host, std::uint64_t number, const Operand& range, Source source);

  /// The order among the queues is all there is to a fence.
  static Result<void> run(DeviceHost&, const memory::Fence&, const Call&) { return {}; }
  static Result<void> run(DeviceHost&, const channel::Settle&, const Call&) { return {}; }
  static Result<void> run(DeviceHost& host, const memory::Fault& op, const Call& call);

  template <Operation Op>
  static constexpr OwnOperation entry() {
    OwnOperation own{opcode_of<Op>, nullptr, nullptr};
    if constexpr (requires(DeviceHost & host, const Op& op) {
                    carry_out(host, op, Source::ring);
                  }) {
      own.carry_out = [](DeviceHost& host, Source source) -> std::optional<Step> {
        return carry_out(host, *host.command_.as<Op>(), source);
      };
    }
    if constexpr (requires(DeviceHost & host, const Op& op, const Call& call) {
                    run(host, op, call);
                  }) {
      own.run = [](DeviceHost& host, const Call& call) {
        return run(host, *host.command_.as<Op>(), call);
      };
    }
    return own;
  }
};

const DeviceHost::OwnOperation* DeviceHost::own_operation(std::uint32_t opcode) {
  static constexpr std::array kOperations{
      Own::entry<memory::Nop>(),      Own::entry<memory::Fence>(),
      Own::entry<memory::Fault>(),    Own::entry<memory::LibraryFault>(),
      Own::entry<memory::Prepare>(),  Own::entry<channel::Invite>(),
      Own::entry<channel::Connect>(), Own::entry<channel::Join>(),
      Own::entry<channel::Settle>(),  Own::entry<channel::Send>(),
      Own::entry<channel::Receive>(), Own::entry<channel::Drop>()};
  for (const auto& own : kOperations) {
    if (own.opcode == opcode) return &own;
  }
  return nullptr;
}

DeviceHost::Step DeviceHost::Own::carry_out(DeviceHost& host, const memory::Nop&, Source source) {
  const auto ticket = host.command_.header().ticket;
  host.note_issued(host.command_.header());
  return host.answered(ticket, source, {});
}

std::optional<DeviceHost::Step> DeviceHost::Own::carry_out(DeviceHost& host,
                                                           const memory::Fault& op, Source) {
  using enum memory::FaultKind;
  const auto kind = op.kind;
  if (kind != kill && kind != segv && kind != hang && kind != exit && kind != device_failure)
    return std::nullopt;
  host.note_issued(host.command_.header());
  host.suffer(kind);
  return Step::ended;
}

Result<void> DeviceHost::Own::run(DeviceHost& host, const memory::Fault& op, const Call& call) {
  host.suffer(op.kind);
  return host.engine_->suffer(op.kind, call.queue());
}

DeviceHost::Step DeviceHost::Own::carry_out(DeviceHost& host, const memory::LibraryFault& op,
                                            Source source) {
  const auto ticket = host.command_.header().ticket;
  host.note_issued(host.command_.header());
  const auto lane = known_library_lane(op.name());
  if (lane) host.actors_[*lane].fails_next = true;
  return host.answered(
      ticket, source,
      lane ? Result<void>()
           : Error{Errc::invalid, 0, "there is no library " + std::string(op.name())});
}

DeviceHost::Step DeviceHost::Own::carry_out(DeviceHost& host, const memory::Prepare&,
                                            Source source) {
  const auto ticket = host.command_.header().ticket;
  host.note_issued(host.command_.header());
  auto one = Preparation::of_record(host.command_.parts().data);
  if (!one.ok()) return host.answered(ticket, source, one.error());
  (*one)->ticket = ticket;
  host.preparations_.push_back(std::move(*one));
  host.take(source);
  return Step::queued;
}

DeviceHost::Step DeviceHost::Own::carry_out(DeviceHost& host, const channel::Invite& op,
                                            Source source) {
  auto* const cell = host.addresses_.find(op.invitation);
  return host.work_on_channel(op.number, source, false, [cell](ChannelEnd& end) -> Result<void> {
    const auto invitation = end.invite();
    if (!invitation.ok()) return invitation.error();
    channel::Invitation written;
    if (invitation->size() > written.bytes.size())
      return Error{Errc::internal, 0, "the invitation to a channel is too long"};
    written.length = invitation->size();
    std::copy(invitation->begin(), invitation->end(), written.bytes.begin());
    std::memcpy(cell, &written, sizeof written);
    return {};
  });
}

DeviceHost::Step DeviceHost::Own::carry_out(DeviceHost& host, const channel::Connect& op,
                                            Source source) {
  return host.work_on_channel(op.number, source, {},
                              [](ChannelEnd& end) { return end.connect({}); });
}

DeviceHost::Step DeviceHost::Own::carry_out(DeviceHost& host, const channel::Join& op,
                                            Source source) {
  const auto data = host.command_.parts().data;
  return host.work_on_channel(op.number, source, true,
                              [invitation = std::vector<std::byte>(data.begin(), data.end())](
                                  ChannelEnd& end) { return end.connect(invitation); });
}

DeviceHost::Step DeviceHost::Own::transfer(DeviceHost& host, std::uint64_t number,
                                           const Operand& range, Source source) {
  return host.work_on_channel(number, source, {},
                              [data = host.addresses_.find(range), bytes = range.bytes](
                                  ChannelEnd& end) { return end.transfer(data, bytes); });
}

DeviceHost::Step DeviceHost::Own::carry_out(DeviceHost& host, const channel::Send& op,
                                            Source source) {
  return transfer(host, op.number, op.source, source);
}

DeviceHost::Step DeviceHost::Own::carry_out(DeviceHost& host, const channel::Receive& op,
                                            Source source) {
  return transfer(host, op.number, op.destination, source);
}

void DeviceHost::suffer(memory::FaultKind kind) {
  header().fault_kind.store(static_cast<std::uint32_t>(kind), std::memory_order_relaxed);
  header().fault_ns.store(SteadyClock::time().count(), std::memory_order_release);
  switch (kind) {
    case memory::FaultKind::kill: ::raise(SIGKILL); break;
    case memory::FaultKind::segv:
      ::signal(SIGSEGV, SIG_DFL);
      ::raise(SIGSEGV);
      break;
    case memory::FaultKind::hang:
      for (;;) ::pause();
    case memory::FaultKind::exit: ::_exit(wire::kExitFaultDrill);
    case memory::FaultKind::device_failure:
      return lose({Errc::device_failed, 0, "the device has failed, as was ordered"});
    default: break;  // a sticky one: the engine's
  }
}

}  // namespace troupe::host
