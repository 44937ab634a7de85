#include "rank/device/host/device_protocol.hpp"

#include <algorithm>
#include <utility>

namespace troupe::rank_process {

using Order = DeviceDone::Order;

enum class DeviceProtocol::Event : std::uint8_t {
#define TROUPE_RECOVERY_ORDER(name, phase, message, fault) name,
#include <troupe/recovery.def>
  came_up,
  carried_out,
  refused,
  serves,
  lost,
  lost_alone,
  given_up,
  revive
};

namespace {

/// Before a new standby follows one that died.
constexpr auto kStandbyPause = std::chrono::seconds(1);

const Error kSlow{Errc::timeout, 0, "the device host did not start within its time"};

Error down(const Error& cause) {
  return {Errc::device_lost, cause.native, "the device host died: " + cause.message};
}

}  // namespace

std::optional<DeviceState> DeviceProtocol::next(DeviceState from, Event event) {
#define TROUPE_DEVICE(state, on, into) \
  if (from == DeviceState::state && event == Event::on) return DeviceState::into;
#include "rank/device/host/device_transitions.def"
#undef TROUPE_DEVICE
  return std::nullopt;
}

DeviceProtocol::Event DeviceProtocol::event_of(Order order) {
#define TROUPE_RECOVERY_ORDER(name, phase, message, fault) \
  if (order == Order::name) return Event::name;
#include <troupe/recovery.def>
  check(false, "an unknown order");
  return Event::halt;
}

bool DeviceProtocol::move(Event event) {
  const auto into = next(state_, event);
  if (into) state_ = *into;
  return into.has_value();
}

DeviceProtocol::DeviceProtocol(Options options, DeviceActions* actions)
    : options_(options),
      actions_(actions),
      budget_(options.restart_budget, options.restart_window),
      overdue_(options.restart_budget, options.restart_window) {}

bool DeviceProtocol::watches_operations() const {
  return !failed_ && hosts_.serving() && (!governed_ || world_active_);
}

// Hosts begin

Result<HostId> DeviceProtocol::start_host(DeviceActions::Start as, HostState state, TimePoint now) {
  const auto id = hosts_.new_id();
  if (auto started = actions_->start(id, as); !started.ok()) return started.error();
  hosts_.add(id, state, now);
  return id;
}

void DeviceProtocol::start(TimePoint now) {
  const auto first = start_host(DeviceActions::Start::first, HostState::starting, now);
  if (!first.ok()) give_up(first.error());
}

void DeviceProtocol::raise_standby(TimePoint now) {
  if (!options_.standby || hosts_.standby() || failed_) return;
  if (standby_not_before_ && now < *standby_not_before_) return;
  const auto raised = start_host(DeviceActions::Start::standby, HostState::rising, now);
  if (!raised.ok()) standby_not_before_ = now + kStandbyPause;
}

void DeviceProtocol::report_standby() {
  if (world_active_ && !failed_ && hosts_.ready_standby()) actions_->report(DeviceStandby{true});
}

void DeviceProtocol::ready(HostId id, TimePoint now) {
  if (!hosts_.move(id, HostTable::Event::ready)) return;
  if (hosts_.ready_standby() == id) return report_standby();
  if (state_ == DeviceState::reviving) {
    failed_.reset();
    move(Event::came_up);
    actions_->begin_again(id);
    return actions_->report(DeviceRevived{});
  }
  if (state_ == DeviceState::starting) move(Event::came_up);
  advance(now);
}

void DeviceProtocol::promoted(HostId id, const Result<void>& outcome, TimePoint now) {
  if (hosts_.state_of(id) != HostState::promoting) return;
  if (!outcome.ok()) return lost(id, "promotion", outcome.error(), now);
  hosts_.move(id, HostTable::Event::promoted);
  actions_->serves(id);
  if (!governed_ && !options_.in_world) {
    actions_->all_is_well();
    end_retired();
    raise_standby(now);
  }
  answer_if_serving();
}

// Hosts end

void DeviceProtocol::fatal(HostId id, const std::string& kind, const Error& error, bool still,
                           TimePoint now) {
  const auto state = hosts_.state_of(id);
  const bool standby = state == HostState::rising || state == HostState::standby;
  if (error.code != Errc::device_failed || standby || state_ == DeviceState::reviving)
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
  if (state_ == DeviceState::starting)
    return lost(id, "", {Errc::device_failed, 0, "the device host ended while it started" + why},
                now);
  lost(id, "", {Errc::device_lost, 0, "its process ended" + why}, now);
}

void DeviceProtocol::exited(HostId id, TimePoint now, const std::string& words) {
  closed(id, now, words);
  if (!hosts_.move(id, HostTable::Event::exited)) return;
  if (hosts_.state_of(id) == HostState::ended || failed_) {
    actions_->drop(id);
    hosts_.erase(id);
    return;
  }
  advance(now);
}

void DeviceProtocol::lost(HostId id, const std::string& kind, const Error& error, TimePoint now,
                          bool still) {
  const auto before = hosts_.state_of(id);
  if (!hosts_.move(id, HostTable::Event::lost)) return;
  if (before == HostState::rising || before == HostState::standby)
    return lose_standby(id, error, now);
  if (hosts_.state_of(id) == HostState::ended) return lose_successor(id, error, now);
  if (state_ == DeviceState::reviving) {
    move(Event::lost);
    actions_->drop(id);
    hosts_.erase(id);
    return;
  }
  if (state_ == DeviceState::starting) return give_up(error);
  if (!failed_) lose_active(id, {kind, error, TimePoint{}, now, still}, now);
}

void DeviceProtocol::lose_standby(HostId id, const Error& error, TimePoint now) {
  const auto preparing = hosts_.at(id).preparing;
  actions_->drop_standby(id, error);
  hosts_.erase(id);
  if (preparing) report_done(*preparing, down(error));
  standby_not_before_ = now + kStandbyPause;
  if (world_active_) actions_->report(DeviceStandby{false});
}

void DeviceProtocol::lose_successor(HostId id, const Error& error, TimePoint now) {
  const auto preparing = hosts_.at(id).preparing;
  actions_->drop_successor(id, error);
  hosts_.erase(id);
  if (preparing) report_done(*preparing, down(error));
  if (!failed_) after_loss({"successor", error, now, now}, now);
}

void DeviceProtocol::lose_active(HostId id, DeviceFault fault, TimePoint now) {
  auto& host = hosts_.at(id);
  host.fault = fault;
  const auto preparing = std::exchange(host.preparing, std::nullopt);
  actions_->mourn(id, fault);
  actions_->disturbed("fault: " + fault.error.message);
  if (preparing) report_done(*preparing, down(fault.error));
  after_loss(std::move(fault), now);
}

/// What was ordered is answered, as far as the loss is no answer itself: who has lost its host has
/// halted and drained. What follows is the world's business, unless a replacement is under way.
void DeviceProtocol::after_loss(DeviceFault fault, TimePoint now) {
  const auto was = state_;
  const auto order = open_;
  move(governed_ ? Event::lost : Event::lost_alone);
  if (was == DeviceState::quiescing) report_done(order, std::vector<std::byte>{});
  if (was == DeviceState::contributing || was == DeviceState::connecting)
    report_done(order, down(fault.error));
  if (state_ != DeviceState::replacing) return actions_->report(std::move(fault));
  if (was != DeviceState::replacing) open_ = {.what = Order::replace};
  advance(now);
}

void DeviceProtocol::communicator_broken(HostId id, const std::string& text, TimePoint now) {
  if (failed_ || hosts_.beating() != id) return;  // it is known, or nobody's loss
  actions_->disturbed("fault: the communicator is broken");
  actions_->report(DeviceFault{"communicator", {Errc::peer_lost, 0, text}, now, now});
}

void DeviceProtocol::overdue(const Error& late, TimePoint now) {
  const auto host = hosts_.serving();
  if (!host || failed_) return;
  if (!governed_) return lost(*host, "timeout", late, now);
  if (!spend(overdue_, &Costs::overdue, now) && !ask_to_stop()) {
    return give_up({Errc::budget_exhausted, 0,
                    stands_still(&Costs::overdue)
                        ? "more than " + std::to_string(options_.restart_budget) +
                              " operations past their deadline without a commit in between; the "
                              "last: " +
                              late.message
                        : "too many operations past their deadline"});
  }
  // Mostly it is a collective that not all ranks have joined. The world aborts the communicator and
  // lets the lanes drain; the device host is given up only if they do not.
  actions_->disturbed("fault: " + late.message);
  actions_->report(DeviceFault{"timeout", late, now, now});
}

void DeviceProtocol::tick(TimePoint now) {
  if (failed_ && state_ != DeviceState::reviving) return;
  const auto late = [&](HostId id) {
    return !hosts_.has_started(id) && now - hosts_.at(id).since > options_.start_timeout;
  };
  const bool stuck = state_ == DeviceState::quiescing && now - open_since_ > options_.drain_timeout;
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
  if (state_ == DeviceState::idle && hosts_.serving() && standby_not_before_) raise_standby(now);
}

// Orders

bool DeviceProtocol::order(const DeviceOrder& order, TimePoint now) {
  if (order.what == Order::halt) world_active_ = false;
  if (failed_) {
    if (!order.prepares()) actions_->report(DeviceFailed{*failed_});
    return true;
  }
  if (order.prepares()) {
    prepare(order);
    return true;
  }
  if (!next(state_, event_of(order.what))) return false;
  switch (order.what) {
    case Order::halt:
      actions_->disturbed("the world is re-formed");
      stop(order, now);
      break;
    case Order::quiesce: stop(order, now); break;
    case Order::replace: {
      move(Event::replace);
      open_ = order;
      if (const auto host = hosts_.serving()) actions_->resume(*host);
      if (state_ == DeviceState::replacing) advance(now);
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
  move(event_of(order.what));
  if (state_ == DeviceState::starting) {  // nothing runs yet
    open_ = {.what = Order::replace};     // an older one is superseded
    return report_done(order, std::vector<std::byte>{});
  }
  open_ = order;
  open_since_ = now;
  const auto host = hosts_.next_in_line();
  const bool there = host && hosts_.has_started(*host);
  if (order.what == Order::halt) {
    if (there) actions_->halt(*host);
    return report_done(order, std::vector<std::byte>{});
  }
  if (!there) return answer(Event::carried_out);
  pass_on(*host, order);
}

void DeviceProtocol::form(const DeviceOrder& order) {
  const auto host = hosts_.next_in_line();
  if (!host || !hosts_.has_started(*host)) return;  // a loss is on its way to whoever waits
  move(event_of(order.what));
  open_ = order;
  if (order.what == Order::contribute) {
    hosts_.at(*host).formation = 0;  // it gives up what there was
    end_retired();                   // nobody waits for a word of theirs in what is formed now
  }
  pass_on(*host, order);
}

void DeviceProtocol::prepare(const DeviceOrder& order) {
  const auto host = hosts_.ready_standby();
  if (!host) return;  // as above
  auto& standby = hosts_.at(*host);
  if (order.what == Order::contribute) standby.formation = 0;
  standby.preparing = order;
  pass_on(*host, order);
}

void DeviceProtocol::promote_standby(const DeviceOrder& order, TimePoint now) {
  const auto standby = hosts_.ready_standby();
  if (!standby || hosts_.at(*standby).formation != order.formation || hosts_.successor()) {
    return report_done(order, Error{Errc::device_lost, 0, "the standby to promote is gone"});
  }
  const auto old = hosts_.active();
  if (old &&
      !hosts_.at(*old).fault) {  // drained and in good health: the standby takes its place at once
    actions_->hand_over(*old, *standby);
    hosts_.move(*old, HostTable::Event::hands_over);
    hosts_.move(*standby, HostTable::Event::takes_over);
  } else {
    if (!spend_restart(now)) return;
    hosts_.move(*standby, HostTable::Event::chosen);
  }
  move(Event::promote);
  open_ = order;
  advance(now);
}

void DeviceProtocol::answered(HostId id, const DeviceOrder& order,
                              Result<std::vector<std::byte>> outcome) {
  if (!hosts_.state_of(id) || failed_) return;
  if (order.prepares()) {
    auto& host = hosts_.at(id);
    if (!host.preparing || !host.preparing->same(order)) return;  // superseded
    host.preparing.reset();
    if (order.what == Order::connect && outcome.ok()) host.formation = order.formation;
    return report_done(order, std::move(outcome));
  }
  if (!open_.same(order)) return;
  switch (state_) {
    case DeviceState::quiescing:
      if (outcome.ok() && hosts_.serving()) actions_->settle();
      return answer(Event::carried_out);
    case DeviceState::contributing:
      return answer(outcome.ok() ? Event::carried_out : Event::refused, std::move(outcome));
    case DeviceState::connecting:
      if (!outcome.ok()) return answer(Event::refused, std::move(outcome));
      move(Event::carried_out);
      return answer_if_serving();
    default: return;  // superseded
  }
}

void DeviceProtocol::answer(Event event, Result<std::vector<std::byte>> outcome) {
  if (move(event)) report_done(open_, std::move(outcome));
}

/// Answers an order that is carried out once the host serves.
void DeviceProtocol::answer_if_serving() {
  if (hosts_.serving()) answer(Event::serves);
}

void DeviceProtocol::report_done(const DeviceOrder& order, Result<std::vector<std::byte>> outcome) {
  actions_->report(DeviceDone{order.what, order.round, order.prepares() ? order.formation : 0,
                              std::move(outcome)});
}

// Replacement

void DeviceProtocol::advance(TimePoint now) {
  if (failed_) return;
  const auto faulty = hosts_.faulty();
  if (faulty) {
    if (!hosts_.successor() && (state_ != DeviceState::replacing || !choose_successor(now))) return;
    const auto& old = hosts_.at(*faulty);
    if (old.state == HostState::gone || old.fault->still) {
      bury();
    } else {
      actions_->kill(*faulty);  // exited() brings us back
    }
  }
  const auto next = hosts_.next_in_line();
  if (!next || !hosts_.has_started(*next)) return;
  if (state_ == DeviceState::replacing) answer(Event::carried_out);
  if (hosts_.at(*next).state != HostState::ready) return;
  hosts_.move(*next, HostTable::Event::promote);
  actions_->promote(*next);
}

void DeviceProtocol::progress(bool in_run) {
  since_commit_ = in_run ? std::optional(Costs()) : std::nullopt;
}

bool DeviceProtocol::stands_still(int Costs::*cost) const {
  return since_commit_ && (*since_commit_).*cost > options_.restart_budget;
}

bool DeviceProtocol::spend(RestartBudget& budget, int Costs::*cost, TimePoint now) {
  if (since_commit_) ++((*since_commit_).*cost);
  const bool in_time = budget.spend(now);
  return in_time && !stands_still(cost);
}

/// False, and the device is given up, if too many of its hosts were lost.
bool DeviceProtocol::spend_restart(TimePoint now) {
  if (spend(budget_, &Costs::lost, now) || ask_to_stop()) return true;
  const auto& last = hosts_.at(*hosts_.faulty()).fault->error;
  if (stands_still(&Costs::lost)) {
    give_up({Errc::budget_exhausted, last.native,
             "more than " + std::to_string(options_.restart_budget) +
                 " device hosts lost without a commit in between; the last: " + last.message});
    return false;
  }
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(budget_.window()).count();
  give_up({Errc::budget_exhausted, last.native,
           "more than " + std::to_string(budget_.max_restarts()) + " device hosts lost within " +
               std::to_string(seconds) + " s; the last: " + last.message});
  return false;
}

/// Once, where that is the policy.
bool DeviceProtocol::ask_to_stop() {
  if (!options_.asks_to_stop || !governed_ || std::exchange(asked_to_stop_, true)) return false;
  actions_->report(DeviceExhausted{});
  return true;
}

bool DeviceProtocol::choose_successor(TimePoint now) {
  if (!spend_restart(now)) return false;
  if (const auto host = hosts_.standby()) return hosts_.move(*host, HostTable::Event::chosen);
  const auto started = start_host(DeviceActions::Start::successor, HostState::coming, now);
  if (!started.ok()) give_up(started.error());
  return started.ok();
}

void DeviceProtocol::bury() {
  const auto old = *hosts_.faulty(), heir = *hosts_.successor();
  const auto fault = *hosts_.at(old).fault;
  hosts_.move(heir, HostTable::Event::inherits);
  if (hosts_.move(old, HostTable::Event::outlives)) return actions_->outlive(old, heir, fault);
  hosts_.move(old, HostTable::Event::buried);
  actions_->bury(old, heir, fault);
  hosts_.erase(old);
}

/// exited() takes them out.
void DeviceProtocol::end_retired() {
  for (const auto& [id, host] : hosts_.all())
    if (host.state == HostState::retired) actions_->kill(id);
}

// The world goes on, and the end

void DeviceProtocol::world_active(TimePoint now) {
  if (state_ == DeviceState::failed || state_ == DeviceState::ended) return drop_all();
  actions_->all_is_well();
  world_active_ = true;
  end_retired();
  raise_standby(now);
  report_standby();
}

void DeviceProtocol::drop_all() {
  for (const auto& [id, host] : hosts_.all()) actions_->drop(id);
  hosts_.clear();
}

void DeviceProtocol::revive(TimePoint now) {
  if (state_ != DeviceState::failed || !hosts_.all().empty()) return;  // they end in world_active()
  if (!start_host(DeviceActions::Start::revival, HostState::starting, now).ok()) return;
  budget_ = RestartBudget(options_.restart_budget, options_.restart_window);
  if (since_commit_) since_commit_ = Costs();
  asked_to_stop_ = false;
  open_ = {};
  move(Event::revive);
}

void DeviceProtocol::give_up(const Error& error) {
  if (failed_) return;
  failed_ = error;
  move(Event::given_up);
  for (const auto& [id, host] : hosts_.all()) hosts_.at(id).preparing.reset();
  actions_->give_up(error);
  actions_->report(DeviceFailed{error});
}

void DeviceProtocol::shut_down() {
  failed_ = Error{Errc::stopped, 0, "the device is shut down"};
  state_ = DeviceState::ended;
  for (const auto& [id, host] : hosts_.all())
    host.state == HostState::retired ? actions_->drop(id) : actions_->dismiss(id);
  hosts_.clear();
}

}  // namespace troupe::rank_process
