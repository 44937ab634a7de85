#include "rank/protocol/follower.hpp"

#include <algorithm>
#include <utility>

namespace troupe::rank_process {

using Kind = WorldMessage::Kind;

void WorldFollower::receive(const WorldMessage& message) {
  switch (message.kind) {
    case Kind::order:
      if (message.round >= round_) carry_out(message);
      return;
    case Kind::prepare:
      if (message.epoch == epoch_ && phase_ == Phase::active) prepare(message);
      return;
    case Kind::activate: {
      if (message.round != round_) return;
      phase_ = Phase::active;
      epoch_ = message.epoch;
      newest_ = spectator_ ? kAnyStep : message.step;
      if (message.stopping != 0) actions_->stopping(message.step);
      auto reports = decode_reports(message.payload);
      actions_->activate(epoch_, message.step,
                         reports.ok() ? std::move(*reports) : std::vector<Recovery>{});
      return assent();
    }
    case Kind::all_flushed: return actions_->all_flushed(message.step);
    case Kind::stable:
      if (message.stopping != 0) actions_->stopping(message.step);
      return actions_->stable(message.step);
    case Kind::all_finished:
      newest_ = spectator_ ? kAnyStep : -1;  // the next run counts from its own first step
      actions_->all_finished(message.step);
      return assent();
    case Kind::run_left:
      return actions_->run_left(message.step, message.rank,
                                {static_cast<Errc>(message.code), message.native, message.text});
    case Kind::health_told:
      return actions_->health_told({message.rank, static_cast<HealthKind>(message.code),
                                    message.text, message.repeated != 0,
                                    static_cast<std::uint64_t>(message.step)});
    case Kind::inquire: return actions_->answer(message.formation);
    case Kind::stop:
      return actions_->stop({static_cast<Errc>(message.code), message.native, message.text});
    default: return;  // a rank's own to say
  }
}

void WorldFollower::carry_out(const WorldMessage& order) {
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
    return report_done({.step = kAnyStep});
  }
  actions_->strike(phase_);
  switch (order.phase) {
    case Phase::halt: actions_->close_world(); return actions_->halt(round_);
    case Phase::quiesce: return actions_->quiesce(round_);
    case Phase::replace:
      if (order.formation != 0) return actions_->promote(round_, order.formation);
      return actions_->replace(round_);
    case Phase::form: {
      auto contributions = decode_blobs(order.payload);
      if (!contributions.ok()) return report_fault("form", contributions.error(), 0);
      return actions_->connect(round_, std::move(*contributions));
    }
    case Phase::verify: return actions_->verify(round_, order.epoch);
    case Phase::restore:
      asked_iteration_ = std::any_of(order.parts.begin(), order.parts.end(),
                                     [&](const RankPart& part) { return part.rank == rank_; });
      restore_step_ = order.step;
      if (excluded_ != grouped_) {
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
  for (const auto kind : {Kind::flushed, Kind::committed, Kind::finished, Kind::standby}) {
    actions_->send(
        {.kind = kind, .round = round_, .epoch = epoch_, .rank = rank_, .step = kAnyStep});
  }
}

void WorldFollower::prepare(const WorldMessage& order) {
  using Order = DeviceDone::Order;
  const bool contribute = order.phase == Phase::replace;
  if (spectator_) {
    return prepared(
        {.order = contribute ? Order::contribute : Order::connect, .formation = order.formation});
  }
  if (contribute) return actions_->prepare_contribute(order.formation);
  auto contributions = decode_blobs(order.payload);
  if (contributions.ok()) actions_->prepare_connect(order.formation, std::move(*contributions));
}

void WorldFollower::prepared(const DeviceDone& event) {
  WorldMessage message{
      .kind = Kind::prepared,
      .phase = event.order == DeviceDone::Order::connect ? Phase::form : Phase::replace,
      .round = round_,
      .epoch = epoch_,
      .rank = rank_,
      .formation = event.formation};
  if (event.outcome.ok()) {
    if (!event.outcome->empty()) message.parts = {{.rank = rank_, .contribution = *event.outcome}};
  } else {
    message.code = static_cast<std::uint32_t>(event.outcome.code());
    message.native = event.outcome.error().native;
    message.text = event.outcome.error().message;
  }
  actions_->send(message);
}

void WorldFollower::device_event(const DeviceEvent& event) {
  if (std::holds_alternative<DeviceRevived>(event))
    return actions_->send({.kind = Kind::rejoin, .round = round_, .rank = rank_});
  if (const auto* health = std::get_if<DeviceHealth>(&event)) {
    return actions_->send({.kind = Kind::health,
                           .round = round_,
                           .rank = rank_,
                           .code = static_cast<std::uint32_t>(health->event.kind),
                           .step = static_cast<std::int64_t>(health->event.xid),
                           .repeated = health->event.failing ? 1 : 0,
                           .text = health->event.text});
  }
  if (spectator_) return;  // nobody counts on its device
  if (std::holds_alternative<DeviceExhausted>(event)) return ask_to_stop();
  if (const auto* fault = std::get_if<DeviceFault>(&event)) {
    const auto detect = fault->detected_at - fault->struck_at;
    return report_fault(fault->kind, fault->error,
                        std::chrono::duration_cast<std::chrono::microseconds>(detect).count());
  }
  if (const auto* failed = std::get_if<DeviceFailed>(&event)) {
    return actions_->send({.kind = Kind::failed,
                           .round = round_,
                           .rank = rank_,
                           .code = static_cast<std::uint32_t>(failed->error.code),
                           .native = failed->error.native,
                           .text = "rank " + std::to_string(rank_) + ": " + failed->error.message});
  }
  if (const auto* loss = std::get_if<DeviceLoss>(&event)) {
    return actions_->send(
        {.kind = Kind::loss,
         .round = round_,
         .epoch = epoch_,
         .rank = rank_,
         .lost_buffers = loss->lost_buffers,
         .end_us = std::chrono::duration_cast<std::chrono::microseconds>(loss->end).count(),
         .text = loss->kind});
  }
  if (const auto* standby = std::get_if<DeviceStandby>(&event)) {
    const auto code = standby->ready ? Errc::ok : Errc::device_lost;
    return actions_->send({.kind = Kind::standby,
                           .round = round_,
                           .epoch = epoch_,
                           .rank = rank_,
                           .code = static_cast<std::uint32_t>(code)});
  }
  done(std::get<DeviceDone>(event));
}

void WorldFollower::done(const DeviceDone& event) {
  using Order = DeviceDone::Order;
  if (event.formation != 0) return prepared(event);
  if (event.round == 0 || event.round != round_) return;
  if (!event.outcome.ok()) {
    const char* const what = event.order == Order::connect   ? "form"
                             : event.order == Order::promote ? "promote"
                                                             : "contribute";
    return report_fault(what, event.outcome.error(), 0);
  }
  if (event.order == Order::halt && phase_ == Phase::halt) return report_done();
  if (event.order == Order::quiesce && phase_ == Phase::quiesce) return report_done();
  if (event.order == Order::replace && phase_ == Phase::replace)
    return actions_->contribute(round_);
  if (event.order == Order::promote && phase_ == Phase::replace)
    return report_done({.step = newest_});
  if (event.order == Order::contribute && phase_ == Phase::replace) {
    WorldMessage message{.step = newest_};
    if (!event.outcome->empty()) message.parts = {{.rank = rank_, .contribution = *event.outcome}};
    return report_done(std::move(message));
  }
  if (event.order == Order::connect && phase_ == Phase::form) {
    return report_done();
  }
}

void WorldFollower::verified(std::uint32_t round, const Result<void>& outcome) {
  if (round != round_ || phase_ != Phase::verify) return;
  if (!outcome.ok()) return report_fault("verify", outcome.error(), 0);
  report_done();
}

void WorldFollower::restored(std::uint32_t round, const Result<void>& outcome,
                             std::int64_t iteration, std::int64_t repeated) {
  if (round != round_ || phase_ != Phase::restore) return;
  if (!outcome.ok()) return report_fault("restore", outcome.error(), 0);
  WorldMessage message{.repeated = repeated};
  if (asked_iteration_) message.parts = {{.rank = rank_, .iteration = iteration}};
  report_done(std::move(message));
}

void WorldFollower::flushed(std::int64_t step) {
  if (phase_ != Phase::active) return;
  actions_->send(
      {.kind = Kind::flushed, .round = round_, .epoch = epoch_, .rank = rank_, .step = step});
}

void WorldFollower::committed(std::int64_t step) {
  // Heard of during a re-formation it comes too late: to roll back to an older one, other ranks may
  // have given it up.
  if (phase_ != Phase::active) return;
  newest_ = std::max(newest_, step);
  actions_->send(
      {.kind = Kind::committed, .round = round_, .epoch = epoch_, .rank = rank_, .step = step});
}

void WorldFollower::finished(std::int64_t step) {
  if (phase_ != Phase::active) return;
  WorldMessage message{.kind = Kind::finished, .round = round_, .epoch = epoch_, .rank = rank_};
  if (step != kAnyStep) message.parts = {{.rank = rank_, .iteration = step}};
  actions_->send(message);
}

void WorldFollower::left(std::int64_t run, const Error& error) {
  actions_->send({.kind = Kind::left,
                  .round = round_,
                  .epoch = epoch_,
                  .rank = rank_,
                  .code = static_cast<std::uint32_t>(error.code),
                  .native = error.native,
                  .step = run,
                  .text = error.message});
}

void WorldFollower::groups_changed(bool standby_ready) {
  if (spectator_ || phase_ != Phase::active || !standby_ready) return;
  for (const auto code : {Errc::stale, Errc::ok}) {
    actions_->send({.kind = Kind::standby,
                    .round = round_,
                    .epoch = epoch_,
                    .rank = rank_,
                    .code = static_cast<std::uint32_t>(code)});
  }
}

void WorldFollower::ask_to_stop() {
  actions_->send({.kind = Kind::stop_asked, .round = round_, .epoch = epoch_, .rank = rank_});
}

void WorldFollower::withdraw() {
  if (spectator_ || phase_ != Phase::active) return;
  withdrawing_ = true;
  actions_->send({.kind = Kind::withdraw, .round = round_, .epoch = epoch_, .rank = rank_});
}

void WorldFollower::report_done(WorldMessage message) {
  message.kind = Kind::done;
  message.phase = phase_;
  message.round = round_;
  message.rank = rank_;
  actions_->send(message);
}

void WorldFollower::report_fault(std::string kind, const Error& error, std::int64_t detect_us) {
  actions_->send({.kind = Kind::fault,
                  .phase = phase_,
                  .round = round_,
                  .epoch = epoch_,
                  .rank = rank_,
                  .code = static_cast<std::uint32_t>(error.code),
                  .native = error.native,
                  .detect_us = detect_us,
                  .text = std::move(kind)});
}

}  // namespace troupe::rank_process
