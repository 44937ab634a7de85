#include "rank/device/host/device_protocol.hpp"

#include <algorithm>
#include <utility>

namespace troupe::rank_process {

using Order = DeviceDone::Order;

namespace {

const Error kSlow{Errc::timeout, 0, "the device host did not start within its time"};

}  // namespace

DeviceProtocol::DeviceProtocol(Options options, DeviceActions* actions)
    : options_(options),
      actions_(actions),
      course_(hosts_, *actions),
      standbys_(hosts_, *actions, course_, options.standby),
      succession_(hosts_, *actions, course_, {options.restart_budget, options.restart_window},
                  options.asks_to_stop) {}

bool DeviceProtocol::watches_operations() const {
  return !failure() && hosts_.serving() && (!course_.governed() || course_.world_active());
}

// Hosts begin

void DeviceProtocol::start(TimePoint now) {
  const auto first =
      start_host(hosts_, *actions_, DeviceActions::Start::first, HostState::starting, now);
  if (!first.ok()) give_up(first.error());
}

void DeviceProtocol::ready(HostId id, TimePoint now) {
  if (!hosts_.move(id, HostTable::Event::ready)) return;
  if (hosts_.ready_standby() == id) return standbys_.report();
  if (course_.is(DeviceState::reviving)) return course_.come_back(id);
  if (course_.is(DeviceState::starting)) course_.move(Event::came_up);
  succession_.advance(now);
}

void DeviceProtocol::promoted(HostId id, const Result<void>& outcome, TimePoint now) {
  if (hosts_.state_of(id) != HostState::promoting) return;
  if (!outcome.ok()) return lost(id, "promotion", outcome.error(), now);
  hosts_.move(id, HostTable::Event::promoted);
  actions_->serves(id);
  if (!course_.governed() && !options_.in_world) {
    actions_->all_is_well();
    succession_.end_retired();
    standbys_.raise(now);
  }
  course_.answer_if_serving();
}

// Hosts end

void DeviceProtocol::fatal(HostId id, const std::string& kind, const Error& error, bool still,
                           TimePoint now) {
  const auto state = hosts_.state_of(id);
  const bool standby = state == HostState::rising || state == HostState::standby;
  if (error.code != Errc::device_failed || standby || course_.is(DeviceState::reviving))
    return lost(id, kind, error, now, still);
  if (!state || state == HostState::retired) return;
  hosts_.move(id, HostTable::Event::lost);
  if (hosts_.at(id).state == HostState::ended) {
    actions_->drop_successor(id, error);
    hosts_.erase(id);
  }
  give_up(error);
}

void DeviceProtocol::closed(HostId id, TimePoint now, const std::string& words) {
  const auto why = words.empty() ? words : ": " + words;
  if (course_.is(DeviceState::starting))
    return lost(id, "", {Errc::device_failed, 0, "the device host ended while it started" + why},
                now);
  lost(id, "", {Errc::device_lost, 0, "its process ended" + why}, now);
}

void DeviceProtocol::exited(HostId id, TimePoint now, const std::string& words) {
  closed(id, now, words);
  if (!hosts_.move(id, HostTable::Event::exited)) return;
  if (hosts_.state_of(id) == HostState::ended || failure()) {
    actions_->drop(id);
    hosts_.erase(id);
    return;
  }
  succession_.advance(now);
}

void DeviceProtocol::lost(HostId id, const std::string& kind, const Error& error, TimePoint now,
                          bool still) {
  const auto before = hosts_.state_of(id);
  if (!hosts_.move(id, HostTable::Event::lost)) return;
  if (before == HostState::rising || before == HostState::standby)
    return standbys_.lost(id, error, now);
  if (hosts_.state_of(id) == HostState::ended) return lose_successor(id, error, now);
  if (course_.is(DeviceState::reviving)) {
    course_.move(Event::lost);
    actions_->drop(id);
    hosts_.erase(id);
    return;
  }
  if (course_.is(DeviceState::starting)) return give_up(error);
  if (!failure()) lose_active(id, {kind, error, TimePoint{}, now, still}, now);
}

void DeviceProtocol::lose_successor(HostId id, const Error& error, TimePoint now) {
  const auto preparing = hosts_.at(id).preparing;
  actions_->drop_successor(id, error);
  hosts_.erase(id);
  if (preparing) course_.report_done(*preparing, host_died(error));
  if (!failure()) after_loss({"successor", error, now, now}, now);
}

void DeviceProtocol::lose_active(HostId id, DeviceFault fault, TimePoint now) {
  auto& host = hosts_.at(id);
  host.fault = fault;
  const auto preparing = std::exchange(host.preparing, std::nullopt);
  actions_->mourn(id, fault);
  actions_->disturbed("fault: " + fault.error.message);
  if (preparing) course_.report_done(*preparing, host_died(fault.error));
  after_loss(std::move(fault), now);
}

/// What was ordered is answered, as far as the loss is no answer itself: who has lost its host has
/// halted and drained. What follows is the world's business, unless a replacement is under way.
void DeviceProtocol::after_loss(DeviceFault fault, TimePoint now) {
  const auto was = course_.state();
  const auto order = course_.open();
  course_.move(course_.governed() ? Event::lost : Event::lost_alone);
  if (was == DeviceState::quiescing) course_.report_done(order, std::vector<std::byte>{});
  if (was == DeviceState::contributing || was == DeviceState::connecting)
    course_.report_done(order, host_died(fault.error));
  if (!course_.is(DeviceState::replacing)) return actions_->report(std::move(fault));
  if (was != DeviceState::replacing) course_.set_open({.what = Order::replace});
  succession_.advance(now);
}

void DeviceProtocol::communicator_broken(HostId id, const std::string& text, TimePoint now) {
  if (failure() || hosts_.beating() != id) return;  // it is known, or nobody's loss
  actions_->disturbed("fault: the communicator is broken");
  actions_->report(DeviceFault{"communicator", {Errc::peer_lost, 0, text}, now, now});
}

void DeviceProtocol::overdue(const Error& late, TimePoint now) {
  const auto host = hosts_.serving();
  if (!host || failure()) return;
  if (!course_.governed()) return lost(*host, "timeout", late, now);
  if (!succession_.survives(succession_.limits().outlast_deadline(late, now))) return;
  // Mostly it is a collective that not all ranks have joined. The world aborts the communicator and
  // lets the lanes drain; the device host is given up only if they do not.
  actions_->disturbed("fault: " + late.message);
  actions_->report(DeviceFault{"timeout", late, now, now});
}

void DeviceProtocol::tick(TimePoint now) {
  if (failure() && !course_.is(DeviceState::reviving)) return;
  const auto late = [&](HostId id) {
    return !hosts_.has_started(id) && now - hosts_.at(id).since > options_.start_timeout;
  };
  const bool stuck =
      course_.is(DeviceState::quiescing) && now - course_.open_since() > options_.drain_timeout;
  if (const auto next = hosts_.successor()) {
    if (late(*next) || stuck) lost(*next, "successor", kSlow, now);
  } else if (const auto host = hosts_.active()) {
    if (late(*host)) {
      lost(*host, "start", kSlow, now);
    } else if (stuck) {
      lost(*host, "hang", {Errc::timeout, 0, "its lanes do not drain"}, now);
    }
  }
  // One that died is followed by another.
  if (course_.is(DeviceState::idle) && hosts_.serving()) standbys_.raise_again(now);
}

// Orders

bool DeviceProtocol::order(const DeviceOrder& order, TimePoint now) {
  if (order.what == Order::halt) course_.set_world_active(false);
  if (failure()) {
    if (!order.prepares()) actions_->report(DeviceFailed{*failure()});
    return true;
  }
  if (order.prepares()) {
    standbys_.prepare(order);
    return true;
  }
  if (!course_.may(order.what)) return false;
  switch (order.what) {
    case Order::halt:
      actions_->disturbed("the world is re-formed");
      stop(order, now);
      break;
    case Order::quiesce: stop(order, now); break;
    case Order::replace: {
      course_.move(order.what);
      course_.set_open(order);
      if (const auto host = hosts_.serving()) actions_->resume(*host);
      if (course_.is(DeviceState::replacing)) succession_.advance(now);
      break;
    }
    case Order::promote: promote_standby(order, now); break;
    case Order::contribute:
    case Order::connect: form(order); break;
  }
  return true;
}

void DeviceProtocol::pass_on(HostId host, const DeviceOrder& order) {
  if (const auto asked = actions_->carry_out(host, order); !asked.ok())
    answered(host, order, asked.error());
}

void DeviceProtocol::stop(const DeviceOrder& order, TimePoint now) {
  course_.move(order.what);
  if (course_.is(DeviceState::starting)) {       // nothing runs yet
    course_.set_open({.what = Order::replace});  // an older one is superseded
    return course_.report_done(order, std::vector<std::byte>{});
  }
  course_.set_open(order, now);
  const auto host = hosts_.next_in_line();
  const bool there = host && hosts_.has_started(*host);
  if (order.what == Order::halt) {
    if (there) actions_->halt(*host);
    return course_.report_done(order, std::vector<std::byte>{});
  }
  if (!there) return course_.answer(Event::carried_out);
  pass_on(*host, order);
}

void DeviceProtocol::form(const DeviceOrder& order) {
  const auto host = hosts_.next_in_line();
  if (!host || !hosts_.has_started(*host)) return;  // a loss is on its way to whoever waits
  course_.move(order.what);
  course_.set_open(order);
  if (order.what == Order::contribute) {
    hosts_.at(*host).formation = 0;  // it gives up what there was
    succession_.end_retired();       // nobody waits for a word of theirs in what is formed now
  }
  pass_on(*host, order);
}

void DeviceProtocol::promote_standby(const DeviceOrder& order, TimePoint now) {
  const auto standby = hosts_.ready_standby();
  if (!standby || hosts_.at(*standby).formation != order.formation || hosts_.successor()) {
    return course_.report_done(order,
                               Error{Errc::device_lost, 0, "the standby to promote is gone"});
  }
  const auto old = hosts_.active();
  if (old &&
      !hosts_.at(*old).fault) {  // drained and in good health: the standby takes its place at once
    actions_->hand_over(*old, *standby);
    hosts_.move(*old, HostTable::Event::hands_over);
    hosts_.move(*standby, HostTable::Event::takes_over);
  } else {
    if (!succession_.spend_restart(now)) return;
    hosts_.move(*standby, HostTable::Event::chosen);
  }
  course_.move(order.what);
  course_.set_open(order);
  succession_.advance(now);
}

void DeviceProtocol::answered(HostId id, const DeviceOrder& order,
                              Result<std::vector<std::byte>> outcome) {
  if (!hosts_.state_of(id) || failure()) return;
  if (order.prepares()) return standbys_.answered(id, order, std::move(outcome));
  if (!course_.open().same(order)) return;
  switch (course_.state()) {
    case DeviceState::quiescing:
      if (outcome.ok() && hosts_.serving()) actions_->settle();
      return course_.answer(Event::carried_out);
    case DeviceState::contributing:
      return course_.answer(outcome.ok() ? Event::carried_out : Event::refused, std::move(outcome));
    case DeviceState::connecting:
      if (!outcome.ok()) return course_.answer(Event::refused, std::move(outcome));
      course_.move(Event::carried_out);
      return course_.answer_if_serving();
    default: return;  // superseded
  }
}

// The world goes on, and the end

void DeviceProtocol::world_active(TimePoint now) {
  if (course_.is(DeviceState::failed) || course_.is(DeviceState::ended)) {
    for (const auto& [id, host] : hosts_.all()) actions_->drop(id);
    return hosts_.clear();
  }
  actions_->all_is_well();
  course_.set_world_active(true);
  succession_.end_retired();
  standbys_.raise(now);
  standbys_.report();
}

void DeviceProtocol::revive(TimePoint now) {
  // Hosts that are still there end in world_active().
  if (!course_.is(DeviceState::failed) || !hosts_.all().empty()) return;
  const auto started =
      start_host(hosts_, *actions_, DeviceActions::Start::revival, HostState::starting, now);
  if (!started.ok()) return;
  succession_.limits().renew();
  course_.set_open({});
  course_.move(Event::revive);
}

void DeviceProtocol::shut_down() {
  course_.end({Errc::stopped, 0, "the device is shut down"});
  for (const auto& [id, host] : hosts_.all())
    host.state == HostState::retired ? actions_->drop(id) : actions_->dismiss(id);
  hosts_.clear();
}

}  // namespace troupe::rank_process
