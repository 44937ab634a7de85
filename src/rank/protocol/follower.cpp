#include "rank/protocol/follower.hpp"

#include <algorithm>
#include <utility>

namespace troupe::rank_process {
namespace {

struct OrderOfPhase {
  DeviceDone::Order order;
  Phase phase;
  const char* fault;  ///< what its failure is reported as
};
constexpr OrderOfPhase kOrders[] = {
#define TROUPE_RECOVERY_ORDER(name, phase, message, fault) \
  {DeviceDone::Order::name, Phase::phase, #fault},
#include <troupe/recovery.def>
};

const OrderOfPhase& row_of(DeviceDone::Order order) {
  return kOrders[static_cast<std::size_t>(order)];
}

}  // namespace

void WorldFollower::receive(const SupervisorMessage& message) {
  std::visit(
      [&]<class Message>(const Message& said) {
        if constexpr (kHears<Message>) {
          on(said);
        } else {
          actions_->pass_on(message);
        }
      },
      message);
}

void WorldFollower::give(DeviceDone::Order what, std::uint32_t formation,
                         std::vector<std::vector<std::byte>> contributions) {
  DeviceOrder order{.what = what, .formation = formation};
  if (!order.prepares()) order.round = round_;
  if (what == DeviceDone::Order::connect)
    order.contributions = std::make_shared<const DeviceOrder::Blobs>(std::move(contributions));
  actions_->order(std::move(order));
}

void WorldFollower::on(const from_supervisor::Activate& activate) {
  if (activate.round != round_) return;
  phase_ = Phase::active;
  epoch_ = activate.epoch;
  newest_ = spectator_ ? kAnyStep : activate.stable;
  actions_->activate(activate);
  assent();
}

void WorldFollower::on(const from_supervisor::Stable& stable) {
  if (stable.stopping) actions_->stopping(stable.step);
  actions_->stable(stable.step);
}

void WorldFollower::on(const from_supervisor::AllFinished& ended) {
  newest_ = spectator_ ? kAnyStep : -1;  // the next run counts from its own first step
  actions_->all_finished(ended.step);
  assent();
}

void WorldFollower::on(const from_supervisor::Order& order) {
  if (order.round < round_) return;
  round_ = order.round;
  phase_ = order.phase;
  excluded_ = order.excluded;
  spectator_ = std::binary_search(excluded_.begin(), excluded_.end(), rank_);
  if (spectator_) {
    newest_ = kAnyStep;
    grouped_.reset();
    regrouping_ = 0;
    if (phase_ == Phase::halt) actions_->close_world();
    if (std::exchange(withdrawing_, false)) actions_->retire();
    return report_done({.newest = kAnyStep});
  }
  if (in_refuge_)
    return actions_->send(
        from_rank::Failed{rank_, Error{Errc::device_failed, 0,
                                       "rank " + std::to_string(rank_) +
                                           "'s node is lost, and there is no other GPU for it"}});
  actions_->strike(phase_);
  using Device = DeviceDone::Order;
  switch (order.phase) {
    case Phase::halt: actions_->close_world(); return give(Device::halt);
    case Phase::quiesce: return give(Device::quiesce);
    case Phase::replace:
      return order.formation != 0 ? give(Device::promote, order.formation) : give(Device::replace);
    case Phase::form: return give(Device::connect, 0, order.contributions.by_rank());
    case Phase::verify: return actions_->verify(round_, order.epoch);
    case Phase::restore:
      asked_iteration_ =
          std::find(order.asked.begin(), order.asked.end(), rank_) != order.asked.end();
      restore_step_ = order.step;
      // One that has joined knows none of the groups that the others have made before.
      if (excluded_ != grouped_ || (!excluded_.empty() && !order.joined.empty())) {
        grouped_ = excluded_;
        regrouping_ = round_;
        actions_->regroup(round_);
      } else if (regrouping_ == 0) {
        restore();
      }
      return;
    case Phase::active: return;
  }
}

bool WorldFollower::regrouped(std::uint32_t round) {
  if (round != regrouping_) return false;
  regrouping_ = 0;
  if (phase_ == Phase::restore) restore();
  return true;
}

void WorldFollower::restore() {
  // One that has just become a member has nothing to go back to: the new epoch begins anew.
  if (newest_ == kAnyStep) return actions_->restore(round_, -1);
  newest_ = std::min(newest_, restore_step_);  // newer commits are given up
  actions_->restore(round_, restore_step_);
}

void WorldFollower::assent() {
  if (!spectator_) return;
  actions_->send(from_rank::Flushed{.rank = rank_, .epoch = epoch_, .step = kAnyStep});
  actions_->send(from_rank::Committed{.rank = rank_, .epoch = epoch_, .step = kAnyStep});
  actions_->send(from_rank::Finished{.rank = rank_, .epoch = epoch_});
  actions_->send(from_rank::Standby{.rank = rank_, .epoch = epoch_});
}

void WorldFollower::on(const from_supervisor::Prepare& order) {
  if (order.epoch != epoch_ || phase_ != Phase::active) return;
  const bool contribute = order.step == Preparation::contribute;
  if (spectator_) {
    using Done = DeviceDone::Order;
    return prepared(
        {.order = contribute ? Done::contribute : Done::connect, .formation = order.formation});
  }
  if (contribute) return give(DeviceDone::Order::contribute, order.formation);
  give(DeviceDone::Order::connect, order.formation, order.contributions.by_rank());
}

void WorldFollower::prepared(const DeviceDone& event) {
  from_rank::Prepared message{.rank = rank_,
                              .epoch = epoch_,
                              .formation = event.formation,
                              .step = event.order == DeviceDone::Order::connect
                                          ? Preparation::connect
                                          : Preparation::contribute};
  if (!event.outcome.ok()) {
    message.error = event.outcome.error();
  } else if (!event.outcome->empty()) {
    message.contributions = {{rank_, *event.outcome}};
  }
  actions_->send(message);
}

void WorldFollower::device_event(const DeviceEvent& event) {
  if (std::holds_alternative<DeviceRevived>(event)) return actions_->send(from_rank::Rejoin{rank_});
  if (const auto* health = std::get_if<DeviceHealth>(&event))
    return actions_->send(from_rank::Health{rank_, health->event});
  if (spectator_) return;  // nobody counts on its device
  if (std::holds_alternative<DeviceExhausted>(event)) return ask_to_stop();
  if (const auto* fault = std::get_if<DeviceFault>(&event)) {
    const auto detect = fault->detected_at - fault->struck_at;
    return report_fault(fault->kind, fault->error,
                        std::chrono::duration_cast<std::chrono::microseconds>(detect).count());
  }
  if (const auto* failed = std::get_if<DeviceFailed>(&event)) {
    auto error = failed->error;
    error.message = "rank " + std::to_string(rank_) + ": " + error.message;
    return actions_->send(from_rank::Failed{rank_, std::move(error)});
  }
  if (const auto* loss = std::get_if<DeviceLoss>(&event)) {
    return actions_->send(from_rank::Loss{
        .rank = rank_,
        .kind = loss->kind,
        .lost_buffers = loss->lost_buffers,
        .end_us = std::chrono::duration_cast<std::chrono::microseconds>(loss->end).count()});
  }
  if (const auto* standby = std::get_if<DeviceStandby>(&event)) {
    using Is = from_rank::Standby::State;
    return actions_->send(from_rank::Standby{
        .rank = rank_, .epoch = epoch_, .state = standby->ready ? Is::ready : Is::lost});
  }
  done(std::get<DeviceDone>(event));
}

void WorldFollower::done(const DeviceDone& event) {
  using Order = DeviceDone::Order;
  if (event.formation != 0) return prepared(event);
  if (event.round == 0 || event.round != round_) return;
  if (!event.outcome.ok()) return report_fault(row_of(event.order).fault, event.outcome.error());
  if (row_of(event.order).phase != phase_) return;
  if (event.order == Order::replace) return give(Order::contribute);
  from_rank::Done message;
  if (phase_ == Phase::replace) {
    const auto keeping = actions_->keeping();
    message.newest = newest_;
    message.kept = newest_ == kAnyStep ? kAnyStep : keeping.kept;
    message.stable = newest_ == kAnyStep ? -1 : keeping.stable;
    message.runs_ended = keeping.runs_ended;
    message.stop_asked = stop_asked_;
  }
  if (event.order == Order::contribute && !event.outcome->empty())
    message.contributions = {{rank_, *event.outcome}};
  report_done(std::move(message));
}

void WorldFollower::verified(std::uint32_t round, const Result<void>& outcome) {
  if (round != round_ || phase_ != Phase::verify) return;
  if (!outcome.ok()) return report_fault("verify", outcome.error());
  report_done();
}

void WorldFollower::restored(std::uint32_t round, const Result<void>& outcome,
                             std::int64_t iteration, std::int64_t repeated) {
  if (round != round_ || phase_ != Phase::restore) return;
  if (!outcome.ok()) return report_fault("restore", outcome.error());
  from_rank::Done message{.repeated = repeated};
  if (asked_iteration_) message.iterations = {{rank_, iteration}};
  report_done(std::move(message));
}

void WorldFollower::flushed(std::int64_t step) {
  if (phase_ != Phase::active) return;
  actions_->send(from_rank::Flushed{.rank = rank_, .epoch = epoch_, .step = step});
}

void WorldFollower::committed(std::int64_t step, std::optional<RankPace> pace) {
  // Heard of during a re-formation it comes too late: to roll back to an older one, other ranks may
  // have given it up.
  if (phase_ != Phase::active) return;
  newest_ = std::max(newest_, step);
  from_rank::Committed message{.rank = rank_, .epoch = epoch_, .step = step};
  if (pace) {
    pace->rank = rank_;
    message.paces.push_back(*pace);
  }
  actions_->send(message);
}

void WorldFollower::finished(std::int64_t step) {
  if (phase_ != Phase::active) return;
  from_rank::Finished message{.rank = rank_, .epoch = epoch_};
  if (step != kAnyStep) message.ends = {{rank_, step}};
  actions_->send(message);
}

void WorldFollower::left(std::int64_t run, const Error& error) {
  actions_->send(from_rank::Left{rank_, run, error});
}

void WorldFollower::groups_changed(bool standby_ready) {
  using Is = from_rank::Standby::State;
  if (spectator_ || phase_ != Phase::active || !standby_ready) return;
  for (const auto state : {Is::stale, Is::ready})
    actions_->send(from_rank::Standby{.rank = rank_, .epoch = epoch_, .state = state});
}

void WorldFollower::ask_to_stop() {
  stop_asked_ = true;
  actions_->send(from_rank::StopAsked{rank_});
}

void WorldFollower::withdraw() {
  if (spectator_ || phase_ != Phase::active) return;
  withdrawing_ = true;
  actions_->send(from_rank::Withdraw{rank_, epoch_});
}

void WorldFollower::report_done(from_rank::Done message) {
  message.rank = rank_;
  message.round = round_;
  message.phase = phase_;
  actions_->send(message);
}

void WorldFollower::report_fault(std::string kind, Error error, std::int64_t detect_us) {
  actions_->send(from_rank::Fault{.rank = rank_,
                                  .round = round_,
                                  .kind = std::move(kind),
                                  .detect_us = detect_us,
                                  .error = std::move(error)});
}

}  // namespace troupe::rank_process
