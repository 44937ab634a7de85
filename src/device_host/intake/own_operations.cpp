#include "device_host/intake/own_operations.hpp"

#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

namespace troupe::host {

template <class... Operations>
std::optional<Step> OwnOperations::carry_out_one_of(const Source& source) {
  std::optional<Step> step;
  const auto try_one = [&](const auto* op) {
    if (op != nullptr) step = carry_out(source, *op);
    return op != nullptr;
  };
  (void)(try_one(source.command->as<Operations>()) || ...);
  return step;
}

std::optional<Step> OwnOperations::carry_out(const Source& source) {
  // Only the lane of memory and that of channels have them.
  return carry_out_one_of<memory::Nop, memory::Fault, memory::LibraryFault, memory::Prepare,
                          channel::Invite, channel::Connect, channel::Join, channel::Send,
                          channel::Receive, channel::Drop>(source);
}

std::optional<Result<void>> OwnOperations::run(const wire::Command& command, const Call& call) {
  // The order among the queues is all there is to a fence.
  if (command.as<memory::Fence>() != nullptr || command.as<channel::Settle>() != nullptr)
    return Result<void>();
  const auto* const fault = command.as<memory::Fault>();
  if (fault == nullptr) return std::nullopt;
  suffer(fault->kind);
  return core_->engine->suffer(fault->kind, call.queue());
}

Step OwnOperations::carry_out(const Source& source, const memory::Nop&) {
  core_->note_issued(source.command->header());
  return outcomes_->answered(source.command->header().ticket, {});
}

std::optional<Step> OwnOperations::carry_out(const Source& source, const memory::Fault& op) {
  using enum memory::FaultKind;
  const auto kind = op.kind;
  if (kind != kill && kind != segv && kind != hang && kind != exit && kind != device_failure)
    return std::nullopt;
  core_->note_issued(source.command->header());
  suffer(kind);
  return Step::ended;
}

Step OwnOperations::carry_out(const Source& source, const memory::LibraryFault& op) {
  core_->note_issued(source.command->header());
  if (op.wrong != 0)
    return outcomes_->answered(source.command->header().ticket,
                               core_->engine->order_wrong_products(op.wrong));
  const auto lane = known_library_lane(op.name());
  if (lane) (*libraries_)[*lane].fails_next = true;
  return outcomes_->answered(
      source.command->header().ticket,
      lane ? Result<void>()
           : Error{Errc::invalid, 0, "there is no library " + std::string(op.name())});
}

Step OwnOperations::carry_out(const Source& source, const memory::Prepare&) {
  const auto ticket = source.command->header().ticket;
  core_->note_issued(source.command->header());
  auto one = Preparation::of_record(source.command->parts().data);
  if (!one.ok()) return outcomes_->answered(ticket, one.error());
  preparations_->prepare_for(ticket, std::move(*one));
  return Step::queued;
}

Step OwnOperations::carry_out(const Source& source, const channel::Invite& op) {
  auto* const cell = mappings_->addresses().find(op.invitation);
  return work_on_channel(source, op.number, false, [cell](ChannelEnd& end) -> Result<void> {
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

Step OwnOperations::carry_out(const Source& source, const channel::Connect& op) {
  return work_on_channel(source, op.number, {}, [](ChannelEnd& end) { return end.connect({}); });
}

Step OwnOperations::carry_out(const Source& source, const channel::Join& op) {
  const auto data = source.command->parts().data;
  return work_on_channel(source, op.number, true,
                         [invitation = std::vector<std::byte>(data.begin(), data.end())](
                             ChannelEnd& end) { return end.connect(invitation); });
}

Step OwnOperations::carry_out(const Source& source, const channel::Send& op) {
  return transfer(source, op.number, op.source);
}

Step OwnOperations::carry_out(const Source& source, const channel::Receive& op) {
  return transfer(source, op.number, op.destination);
}

Step OwnOperations::transfer(const Source& source, std::uint64_t number, const Operand& range) {
  return work_on_channel(source, number, {},
                         [data = mappings_->addresses().find(range), bytes = range.bytes](
                             ChannelEnd& end) { return end.transfer(data, bytes); });
}

Step OwnOperations::carry_out(const Source& source, const channel::Drop& op) {
  core_->note_issued(source.command->header());
  formation_->channels().drop(op.number, !set_aside_->empty());
  formation_->channels().bury(core_->helpers);
  return outcomes_->answered(source.command->header().ticket, {});
}

Result<void> OwnOperations::make_channel_end(std::uint64_t number, bool receives) {
  auto end = core_->engine->collectives().make_channel_end(receives);
  if (!end.ok()) return end.error();
  return formation_->channels().add(number, std::move(*end));
}

Step OwnOperations::work_on_channel(const Source& source, std::uint64_t number,
                                    std::optional<bool> makes,
                                    std::function<Result<void>(ChannelEnd&)> work) {
  const auto ticket = source.command->header().ticket;
  if (libraries_->opening_goes_first()) {
    if (!source.from_ring || set_aside_->full()) return Step::blocked;
    // It holds up nobody, least of all what gives the channel up that the opening waits for.
    set_aside_->add(ticket, source.record, source.command->operands(), false);
    core_->port.note_taken(ticket);
    return Step::queued;
  }
  core_->note_issued(source.command->header());
  auto& channels = formation_->channels();
  const auto made = makes ? make_channel_end(number, *makes) : Result<void>();
  const auto end = made.ok() ? channels.find(number) : Result<Channels::EndPtr>(made.error());
  if (!end.ok()) return outcomes_->answered(ticket, end.error());
  const bool started =
      channels.start([this, ticket, end = *end, work = std::move(work)]() -> Helpers::Finish {
        return [this, ticket, outcome = work(*end)] {
          if (core_->life.lost() || core_->life.lose_if_dead(outcome)) return;
          outcomes_->hold(ticket, outcome);
        };
      });
  if (started) return Step::queued;
  return outcomes_->answered(ticket,
                             Error{Errc::would_block, 0, "the device host has too much under way"});
}

void OwnOperations::on(std::uint64_t, const wire::to_host::Suffer& order) {
  suffer(order.kind);
  if (core_->life.lost()) return;
  auto& engine = *core_->engine;
  if ((*libraries_)[Lane::memory].state == LaneActor::State::ready)
    (void)engine.suffer(order.kind, Lane::memory);
  if (auto mark = engine.mark(Lane::memory); mark.ok()) {
    behind_fault_.emplace(engine, *mark);
  } else {
    core_->life.lose(mark.error());
  }
}

Result<void> OwnOperations::look_for_fault() {
  if (!behind_fault_) return {};
  const auto reached = core_->engine->reached(behind_fault_->get());
  if (reached.ok() && !*reached) return {};
  behind_fault_.reset();
  return reached.ok() ? Result<void>() : reached.error();
}

void OwnOperations::suffer(memory::FaultKind kind) {
  auto& header = core_->port.header();
  header.fault_kind.store(static_cast<std::uint32_t>(kind), std::memory_order_relaxed);
  header.fault_ns.store(SteadyClock::time().count(), std::memory_order_release);
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
      core_->life.lose({Errc::device_failed, 0, "the device has failed, as was ordered"});
      break;
    default: break;  // a sticky one: the engine's
  }
}

}  // namespace troupe::host
