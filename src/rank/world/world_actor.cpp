#include "rank/world/world_actor.hpp"

#include <algorithm>
#include <utility>
#include <variant>

#include "common/core/log.hpp"

namespace troupe::rank_process {

using namespace world_message;

namespace {

/// How often deadlines are looked at: many times in a phase, seldom enough to cost nothing.
std::chrono::nanoseconds look_every(std::chrono::nanoseconds phase_timeout) {
  return std::clamp<std::chrono::nanoseconds>(phase_timeout / 256, std::chrono::milliseconds(5),
                                              std::chrono::milliseconds(100));
}

/// Rank 0 says it to one rank, not by the tree.
bool is_for_one_rank(const SupervisorMessage& message) {
  return std::holds_alternative<from_supervisor::SplitAgreed>(message) ||
         std::holds_alternative<from_supervisor::AskCall>(message) ||
         std::holds_alternative<from_supervisor::Slow>(message);
}

}  // namespace

WorldParts::WorldParts(WorldCore& its_core, std::shared_ptr<VerificationBuffers> buffers,
                       Context<WorldActor> its_context)
    : core(its_core),
      context(its_context),
      trace(core.options().collector),
      actions(*this),
      member(core.mpi().rank(), &actions, core.mpi().respawns().incarnation() > 0,
             core.mpi().respawns().in_refuge()),
      relay(
          {.rank = core.mpi().rank(),
           .tree = {.size = core.mpi().size()},
           .phase_timeout = core.options().phase_timeout},
          [this](int to, const RankMessage& message) {
            if (to != WorldRelay::kToSupervisor) return core.send(to, message);
            leader ? leader->hear(message) : tell_leader(core, message);
          },
          [this](int to, const SupervisorMessage& message) { core.send(to, message); },
          [this](const SupervisorMessage& message) { member.receive(message); }),
      leading(*this),
      leadership(core.mpi().rank(), core.mpi().size(), core.mpi().respawns().incarnation(),
                 &leading),
      formations(*this),
      verification(*this, std::move(buffers)),
      progress(*this) {
  if (core.mpi().rank() == 0 && core.mpi().respawns().incarnation() == 0) leader.emplace(*this);
}

void WorldActor::on_start() {
  parts_ = std::make_unique<WorldParts>(*core_, buffers_, context());
  look_every_ = look_every(core_->options().phase_timeout);
}

void WorldActor::on(Begin) {
  if (parts_->leader) parts_->leader->start();  // it leads from the first process of all on
  parts_->leadership.begin();
  tell_library({"engine", core_->device().info().libraries});
  context().schedule(look_every_, Deadline{});
}

void WorldActor::on(Deadline) {
  if (parts_->leader) parts_->leader->tick();
  parts_->relay.tick(context().now());
  parts_->progress.look();
  parts_->actions.look();
  context().schedule(look_every_, Deadline{});
}

void WorldActor::on(const FromNetwork& message) {
  const auto decoded = decode_world_message(message.bytes);
  if (!decoded.ok()) return log::error("world", "{}", decoded.error().to_string());
  if (const auto* const for_leader = std::get_if<ForLeader>(&*decoded)) {
    // Else it is for one that has died: whoever leads next asks anew.
    if (parts_->leader) parts_->leader->hear(for_leader->said);
    return;
  }
  if (const auto* const of_rank = std::get_if<RankMessage>(&*decoded)) {
    if (const auto* const joined = std::get_if<from_rank::Joined>(of_rank))
      return parts_->leadership.on(*joined);
    return parts_->relay.up(*of_rank);
  }
  const auto& said = std::get<SupervisorMessage>(*decoded);
  if (is_for_one_rank(said)) return parts_->actions.pass_on(said);
  if (const auto* const order = std::get_if<from_supervisor::Order>(&said)) {
    log::debug("world", "round {}: {}", order->round, to_string(order->phase));
    if (order->round < parts_->member.round()) return;
    if (!parts_->leadership.learn(*order)) return;
  }
  parts_->relay.down(said, context().now());
  parts_->trace.at(parts_->member.phase());
}

// The device

void WorldActor::on(const FromDevice& event) {
  const auto& said = event.event;
  if (const auto* memory = std::get_if<DeviceStandbyMemory>(&said))
    return core_->status().standbys().set_memory(memory->bytes);
  if (const auto* opened = std::get_if<DeviceLibrary>(&said)) return tell_library(opened->library);
  if (const auto* standby = std::get_if<DeviceStandby>(&said))
    core_->status().standbys().set_ready(standby->ready);
  if (const auto* failed = std::get_if<DeviceFailed>(&said)) {
    parts_->actions.note_failure(failed->error);
    if (core_->mpi().respawns().expected() && !std::exchange(asks_for_place_, true)) {
      // Where there is a spare place this process ends, and the rank goes on there.
      return core_->mpi().respawns().release(
          [actor = core_->actor(), event] { (void)actor.tell(event); });
    }
  }
  if (const auto* health = std::get_if<DeviceHealth>(&said); health && health->event.failing)
    consider_leaving(health->event.text);
  parts_->member.device_event(said);
}

void WorldActor::consider_leaving(const std::string& text) {
  const auto& options = core_->options();
  if ((!options.leaves_failing && !options.replaces_failing) || core_->status().health().failing())
    return;
  core_->status().health().set_failing(text);
  if (options.replaces_failing) return;
  if (core_->mpi().size() == 1) return log::warn("world", "the GPU stays: it is the only one");
  if (!options.shrink)
    log::warn("world", "the GPU stays: on-health = shrink wants on-loss = shrink");
}

/// Straight to the leader: it is rare, and at the end of the program nobody relays any more.
void WorldActor::tell_library(const OpenedLibrary& library) {
  if (library.stands_on.empty()) return;
  tell_leader(*core_, from_rank::Library{core_->mpi().rank(), library});
}

// The program

bool WorldActor::counts(std::uint32_t epoch, std::uint32_t run) const {
  const auto& member = parts_->member;
  if (epoch != member.epoch() || member.phase() != Phase::active) return false;
  // Else the run was left, and ended, before its last commit was complete.
  return !finished_ || finished_->epoch != epoch || finished_->run < run;
}

void WorldActor::on(Flushed done) {
  if (counts(done.epoch, done.run)) parts_->member.flushed(done.step);
}

void WorldActor::on(const Committed& done) {
  if (!counts(done.epoch, done.run)) return;
  if (done.outcome.ok()) {
    if (core_->options().slow_factor == 0) return parts_->member.committed(done.step);
    const auto reading = PaceMeter::read(core_->device().flight().times(), context().now());
    return parts_->member.committed(done.step,
                                    parts_->pace.at_commit(done.epoch, done.run, reading));
  }
  const auto code = done.outcome.code();
  if (code != Errc::device_lost && code != Errc::world_reformed)  // else the world re-forms
    core_->status().run().fail_commit(done.outcome.error());
}

void WorldActor::on(Finished done) {
  finished_ = done;
  if (done.epoch == parts_->member.epoch()) parts_->member.finished(done.step);
}

void WorldActor::on(const EndEpoch& end) {
  auto& member = parts_->member;
  if (end.epoch != member.epoch() || member.phase() != Phase::active) return;  // it has ended
  member.device_event(DeviceFault{kKindError, end.error, context().now(), context().now()});
}

void WorldActor::on(Regrouped done) {
  core_->status().members().regroup(std::move(done.group), parts_->member.regrouped(done.round));
}

bool WorldActor::on(Conclude conclude) {
  if (conclude.all_left && parts_->leader) parts_->leader->conclude();
  return true;
}

}  // namespace troupe::rank_process
