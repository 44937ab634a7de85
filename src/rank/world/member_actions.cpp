#include "rank/world/member_actions.hpp"

#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <utility>
#include <variant>

#include "common/core/log.hpp"
#include "rank/exit_status.hpp"
#include "rank/world/world_actor.hpp"

namespace troupe::rank_process {

void MemberActions::send(const RankMessage& message) {
  if (const auto* const fault = std::get_if<from_rank::Fault>(&message)) {
    log::info("world", "round {}: {}: {}", fault->round,
              fault->kind.empty() ? "a loss" : fault->kind, fault->error.message);
  }
  parts_.relay.up(message);
}

void MemberActions::close_world() {
  parts_.core.device().flight().board().active.store(0, std::memory_order_relaxed);
  parts_.core.status().epochs().close();
}

void MemberActions::order(DeviceOrder order) {
  parts_.formations.order(std::move(order));
}

void MemberActions::verify(std::uint32_t round, std::uint32_t epoch) {
  parts_.verification.begin(round, epoch);
}

void MemberActions::regroup(std::uint32_t round) {
  auto& core = parts_.core;
  const auto& excluded = parts_.member.excluded();
  if (excluded.empty()) {
    core.status().members().regroup(nullptr, parts_.member.regrouped(round));
    return;
  }
  std::vector<int> ranks;
  for (int rank = 0; rank < core.mpi().size(); ++rank) {
    if (!std::binary_search(excluded.begin(), excluded.end(), rank)) ranks.push_back(rank);
  }
  core.make_group(std::move(ranks), round);
}

void MemberActions::restore(std::uint32_t round, std::int64_t step) {
  if (!parts_.core.status().run().ask_restore(round, step))
    (void)parts_.core.actor().tell(world_message::Restored{round, {}, -1, 0});
}

void MemberActions::activate(const from_supervisor::Activate& activate) {
  auto& core = parts_.core;
  if (parts_.member.spectator() && failed_)
    log::warn("world", "the world goes on without this rank: {}", failed_->to_string());
  failed_.reset();
  parts_.trace.recovered(activate.epoch, activate.reports);
  const auto back = parts_.leadership.settle();
  core.status().epochs().activate(activate, back);
  auto& board = core.device().flight().board();
  board.epoch.store(activate.epoch, std::memory_order_relaxed);
  board.recoveries.store(static_cast<std::uint32_t>(core.status().epochs().recoveries().size()),
                         std::memory_order_relaxed);
  board.active.store(1, std::memory_order_relaxed);
  revived_at_ = parts_.now();
  core.device().tell(device_message::WorldActive{});
}

FollowerActions::Keeping MemberActions::keeping() const {
  return parts_.core.status().keeping();
}

void MemberActions::stable(std::int64_t step) {
  parts_.core.device().tell(device_message::RunProgress{true});
  parts_.core.status().run().set_stable(step);
}

void MemberActions::stopping(std::int64_t since) {
  parts_.core.status().run().set_stopping(since);
}

void MemberActions::all_finished(std::int64_t step) {
  parts_.core.status().run().set_finished(step);
}

void MemberActions::retire() {
  left_gpu_ = true;
  const auto why = parts_.core.status().health().failing().value_or(std::string());
  parts_.core.device().tell(
      device_message::GiveUp{{Errc::device_failed, 0, "the GPU says that it is failing: " + why}});
}

void MemberActions::strike(Phase phase) {
  if (const auto death = parts_.core.status().faults().take_death(phase)) suffer(*death);
  if (const auto kind = parts_.core.status().faults().take(phase))
    parts_.core.device().tell(device_message::Suffer{*kind});
}

void MemberActions::look() {
  const auto& member = parts_.member;
  const auto pause = parts_.core.options().rejoin_after;
  // Only once the epoch has begun: a rank is called spectator as soon as the world is halted for
  // it.
  if (!member.spectator() || left_gpu_ || member.phase() != Phase::active || pause.count() == 0 ||
      parts_.now() - revived_at_ <= pause)
    return;
  revived_at_ = parts_.now();
  parts_.core.device().tell(device_message::Revive{});
}

// What is for the program

void MemberActions::pass_on(const SupervisorMessage& message) {
  std::visit(
      [this]<class Kind>(const Kind& said) {
        if constexpr (!WorldFollower::kHears<Kind>) this->on(said);
      },
      message);
}

void MemberActions::on(const from_supervisor::AllFlushed& flushed) {
  parts_.core.status().run().set_all_flushed(flushed.step);
}

void MemberActions::on(const from_supervisor::Inquire& inquire) {
  parts_.progress.answer(inquire.inquiry);
}

void MemberActions::on(const from_supervisor::HealthTold& told) {
  parts_.core.status().health().add(told.event);
}

void MemberActions::on(const from_supervisor::RunLeft& left) {
  parts_.core.status().run().set_left(left.run, left.rank, left.error);
}

void MemberActions::on(const from_supervisor::Stop& stop) {
  if (stop.at_once) {
    if (parts_.leader) log::error("world", "{}", stop.error.to_string());
    Session::abort(exit_status(stop.error.code));
  }
  parts_.core.stop(stop.error);
}

void MemberActions::on(const from_supervisor::SplitAgreed& agreed) {
  parts_.core.status().splits().set_answer(agreed);
}

void MemberActions::on(const from_supervisor::AskCall&) {
  parts_.progress.answer_call();
}

void MemberActions::on(const from_supervisor::Slow& slow) {
  parts_.core.status().slowness().set(slow);
}

}  // namespace troupe::rank_process
