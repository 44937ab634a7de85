#include "device_simulation.hpp"

#include <algorithm>
#include <cstdio>

namespace troupe::rank_process {

namespace {

constexpr auto kLookEvery = std::chrono::milliseconds(100);
constexpr auto kHeartbeatTimeout = std::chrono::seconds(3);
constexpr auto kRejoinAfter = std::chrono::seconds(5);
constexpr auto kPhaseTimeout = std::chrono::seconds(30);
const Error kNobody{Errc::io, 0, "no process can be started"};

}  // namespace

DeviceSimulation::DeviceSimulation(const Options& options)
    : options_(options), random_(options.seed), device_(options.device, this) {
  device_.start(now_);
  check();
  after(kLookEvery, [this] { look(); });
}

DeviceSimulation::~DeviceSimulation() = default;

// What goes wrong

void DeviceSimulation::strike_at(Micros when, Ill how) {
  after(when, [this, how] {
    std::vector<HostId> alive;
    for (const auto& [id, one] : hosts_)
      if (!one.exited && one.well) alive.push_back(id);
    if (!alive.empty()) strike(alive[random_() % alive.size()], how);
  });
}

void DeviceSimulation::strike_active_at(Micros when, Ill how) {
  after(when, [this, how] {
    if (const auto next = device_.hosts().successor()) return strike(*next, how);
    if (const auto active = device_.hosts().active()) strike(*active, how);
  });
}

void DeviceSimulation::break_communicator_at(Micros when) {
  after(when, [this] {
    if (const auto id = device_.hosts().serving())
      device_.communicator_broken(*id, "a peer is gone", now_);
  });
}

void DeviceSimulation::delay_operation_at(Micros when) {
  after(when, [this] {
    if (device_.watches_operations()) device_.overdue({Errc::timeout, 0, "late"}, now_);
  });
}

void DeviceSimulation::fault_elsewhere_at(Micros when) {
  after(when, [this] {
    if (phase_ != Phase::halt && phase_ != Phase::quiesce) begin_round();
  });
}

void DeviceSimulation::leave_at(Micros when) {
  after(when, [this] {
    if (!begun_ || stopped_) return;
    trace("the GPU is left");
    device_.give_up({Errc::device_failed, 0, "the GPU says that it is failing"});
  });
}

void DeviceSimulation::behave() {
  options_.start_fails_percent = options_.never_answers_percent = options_.refuses_percent = 0;
  struck_.clear();
}

// Processes

DeviceSimulation::Host& DeviceSimulation::host(HostId id) {
  if (!hosts_.contains(id)) violation("an action for a host that was never started");
  return hosts_[id];
}

void DeviceSimulation::strike(HostId id, Ill how) {
  auto& one = host(id);
  if (one.exited || !one.well) return;
  trace("host " + std::to_string(id) + " falls ill");
  one.well = false;
  switch (how) {
    case Ill::dies:
      if (chance(50)) after(some_time(30'000), [this, id] { device_.closed(id, now_); });
      after(some_time(60'000), [this, id] { exits(id); });
      break;
    case Ill::loses_context:
      after(some_time(150'000), [this, id] {
        const bool still = host(id).still = chance(70);
        device_.fatal(id, "sticky", {Errc::device_lost, 700, "illegal address"}, still, now_);
      });
      break;
    case Ill::fails_for_good:
      after(some_time(150'000), [this, id] {
        device_.fatal(id, "ecc", {Errc::device_failed, 214, "uncorrectable memory error"}, false,
                      now_);
      });
      break;
    case Ill::hangs: break;  // look() sees
  }
}

void DeviceSimulation::exits(HostId id) {
  auto& one = host(id);
  if (one.exited || one.reaped) return;
  one.exited = true;
  one.well = false;
  trace("host " + std::to_string(id) + " has ended");
  device_.exited(id, now_);
  if (chance(30)) after(some_time(5'000), [this, id] { device_.closed(id, now_); });
}

void DeviceSimulation::answer(HostId id, std::uint32_t limit_us, std::function<void()> then) {
  after(some_time(limit_us), [this, id, then = std::move(then)] {
    const auto& one = host(id);
    if (one.well && !one.reaped) then();
  });
}

Result<void> DeviceSimulation::start(HostId id, Start as) {
  if (chance(options_.start_fails_percent)) return kNobody;
  if (hosts_.contains(id)) violation("a host's number is used again");
  trace("host " + std::to_string(id) + " starts");
  hosts_[id] = {.as = as};
  if (as == Start::first) commands_ = id;
  if (!chance(options_.never_answers_percent)) {
    answer(id, 400'000, [this, id] {
      host(id).up = true;
      device_.ready(id, now_);
    });
  }
  return {};
}

void DeviceSimulation::halt(HostId id) {
  auto& one = host(id);
  if (!one.up || one.reaped) violation("a host is halted that has not started");
  one.halted = true;
}

Result<void> DeviceSimulation::carry_out(HostId id, const DeviceOrder& order) {
  const auto& one = host(id);
  if (!one.up || one.reaped) violation("an order for a host that has not started");
  if (order.prepares() && one.memory) violation("a host that serves prepares as a standby");
  const bool may_fail = order.what == Order::contribute || order.what == Order::connect;
  if (may_fail && chance(options_.refuses_percent)) return Error{Errc::io, 0, "cannot be asked"};
  const auto limit = order.what == Order::quiesce ? 20'000u : 300'000u;
  if (chance(options_.never_answers_percent)) return {};
  if (order.prepares()) host(id).formation = 0;
  answer(id, limit, [this, id, order, may_fail] {
    if (order.what == Order::quiesce) host(id).drained = true;
    if (host(id).mourned) return;
    if (may_fail && chance(options_.refuses_percent))
      return device_.answered(id, order, Error{Errc::library, 0, "no communicator"});
    if (order.what == Order::connect) host(id).formation = order.formation;
    device_.answered(id, order, std::vector<std::byte>(order.what == Order::contribute ? 1 : 0));
  });
  return {};
}

void DeviceSimulation::resume(HostId id) {
  host(id).drained = host(id).halted = false;
}

void DeviceSimulation::promote(HostId id) {
  auto& next = host(id);
  for (const auto& [other, one] : hosts_) {
    if (other != id && one.memory && !one.reaped && !one.handed_over && !one.still)
      violation("host " + std::to_string(id) + " is given the memory while host " +
                std::to_string(other) + " may write to it");
  }
  if (commands_ != id) violation("a host is promoted whose ring has not the commands");
  if (next.memory) violation("a host is promoted twice");
  if (!next.up) violation("a host is promoted before it has started");
  next.memory = true;
  answer(id, 5'000, [this, id] {
    if (chance(options_.refuses_percent))
      return device_.promoted(id, Error{Errc::io, 0, "a mapping failed"}, now_);
    device_.promoted(id, {}, now_);
  });
}

void DeviceSimulation::serves(HostId id) {
  if (!host(id).memory) violation("a host serves without memory");
}

void DeviceSimulation::settle() {
  if (!device_.hosts().serving()) violation("nobody's commands are settled");
}

void DeviceSimulation::hand_over(HostId old, HostId next) {
  if (commands_ != old) violation("commands are handed over by a host that has none");
  if (host(old).mourned) violation("a lost host hands over");
  if (host(old).memory && !host(old).drained && host(old).well)
    violation("a host hands over that has not drained");
  commands_ = next;
  host(old).handed_over = true;
  ++promotions_;
}

void DeviceSimulation::mourn(HostId id, const DeviceFault&) {
  if (host(id).mourned) violation("a host is lost twice");
  host(id).mourned = true;
}

void DeviceSimulation::kill(HostId id) {
  if (host(id).reaped) violation("a host is killed that is reaped");
  if (!host(id).mourned && !host(id).handed_over) violation("a good host is killed");
  after(some_time(chance(20) ? 3'000'000 : 90'000), [this, id] { exits(id); });
}

void DeviceSimulation::reap(HostId id) {
  auto& one = host(id);
  if (one.reaped) violation("a host is reaped twice");
  one.reaped = one.exited = true;
  one.well = false;
}

void DeviceSimulation::bury(HostId old, HostId next, const DeviceFault&) {
  if (!host(old).exited) violation("a host is buried alive");
  if (commands_ != old) violation("commands are taken from a host that has none");
  if (host(next).reaped || host(next).memory) violation("the wrong host inherits");
  commands_ = next;
  reap(old);
}

void DeviceSimulation::outlive(HostId old, HostId next, const DeviceFault&) {
  if (!host(old).still) violation("a host is outlived that may write");
  if (!host(old).mourned) violation("a host is outlived that is not lost");
  if (commands_ != old) violation("commands are taken from a host that has none");
  if (host(next).reaped || host(next).memory) violation("the wrong host inherits");
  commands_ = next;
  host(old).handed_over = true;
  ++outlived_;
}

void DeviceSimulation::drop_standby(HostId id, const Error&) {
  if (host(id).memory) violation("a host with memory is dropped as a standby");
  reap(id);
}
void DeviceSimulation::drop_successor(HostId id, const Error&) {
  if (host(id).memory) violation("a host with memory is dropped as a successor");
  reap(id);
}
void DeviceSimulation::drop(HostId id) {
  const auto& one = host(id);
  if (one.memory && !one.handed_over && !device_.failure()) violation("the active host is dropped");
  reap(id);
}
void DeviceSimulation::dismiss(HostId id) {
  if (!shut_) violation("a host is dismissed before the end");
  reap(id);
}

void DeviceSimulation::give_up(const Error&) {
  trace("the device is given up");
}
void DeviceSimulation::begin_again(HostId id) {
  commands_ = id;
  ++revivals_;
}

void DeviceSimulation::disturbed(const std::string&) {
  disturbed_ = true;
}

void DeviceSimulation::report(DeviceEvent event) {
  if (!begun_) return;
  if (const auto* done = std::get_if<DeviceDone>(&event); done != nullptr) {
    const std::pair key(done->order, done->formation != 0 ? done->formation : done->round);
    if (key.second != 0 && !given_.contains(key)) violation("an answer to no order");
    if (key.second != 0 && !answered_.insert(key).second) violation("an order is answered twice");
    if (done->formation == 0 && done->round != 0 && done->round != round_)
      violation("an order of an earlier round is answered");
    const auto serving = device_.hosts().serving();
    if (done->order == Order::promote && done->outcome.ok() &&
        (!serving || host(*serving).formation != promoted_))
      violation("the wrong standby is promoted");
  }
  heard_at_ = std::max(heard_at_, now_ + some_time(3'000));  // they arrive in order
  after(heard_at_ - now_, [this, event] { hears(event); });
}

// The world

void DeviceSimulation::order(Order what, std::uint32_t formation) {
  const bool prepares = formation != 0 && what != Order::promote;
  const DeviceOrder order{what, prepares ? 0 : round_, formation};
  given_.insert({what, prepares ? formation : round_});
  trace("order " + std::to_string(static_cast<int>(what)) + " of round " + std::to_string(round_));
  if (!device_.order(order, now_)) violation("a legal order is refused");
  const auto serving = device_.hosts().serving();
  if (what == Order::halt && serving && !host(*serving).halted)
    violation("the host that serves is not halted");
}

void DeviceSimulation::enter(Phase phase) {
  phase_ = phase;
  phase_since_ = now_;
  if (spectator_) {  // the others do it
    if (phase == Phase::restore) return after(some_time(2'000'000), [this] { goes_active(); });
    return after(some_time(300'000), [this, phase, round = round_] {
      if (round == round_ && phase_ == phase)
        enter(static_cast<Phase>(static_cast<int>(phase) + 1));
    });
  }
  switch (phase) {
    case Phase::halt: return order(Order::halt);
    case Phase::quiesce: return order(Order::quiesce);
    case Phase::replace:
      promoted_ = std::exchange(formed_, 0);
      if (promoted_ != 0) return order(Order::promote, promoted_);
      return order(Order::replace);
    case Phase::form: return order(Order::connect);
    case Phase::verify:
      return after(some_time(50'000), [this, round = round_] {
        if (round == round_ && phase_ == Phase::verify) enter(Phase::restore);
      });
    case Phase::restore:
      return after(some_time(200'000), [this, round = round_] {
        if (round == round_ && phase_ == Phase::restore) goes_active();
      });
    case Phase::active: return;
  }
}

void DeviceSimulation::begin_round() {
  if (!begun_ || stopped_) return;
  ++round_;
  formation_ = 0;
  enter(Phase::halt);
}

void DeviceSimulation::goes_active() {
  if (phase_ != Phase::restore) return;
  trace("the world is active");
  phase_ = Phase::active;
  device_.world_active(now_);
  revived_at_ = now_;
}

void DeviceSimulation::hears(const DeviceEvent& event) {
  if (stopped_) return;
  if (std::holds_alternative<DeviceRevived>(event)) {
    spectator_ = false;
    return begin_round();
  }
  if (spectator_) return;
  if (std::holds_alternative<DeviceExhausted>(event)) ++exhausted_;
  if (const auto* done = std::get_if<DeviceDone>(&event)) return hears_done(*done);
  if (std::holds_alternative<DeviceFault>(event)) {
    if (phase_ != Phase::halt && phase_ != Phase::quiesce) begin_round();
  }
  if (std::holds_alternative<DeviceFailed>(event)) {
    if (!options_.shrink) {
      stopped_ = true;
      return;
    }
    spectator_ = true;
    begin_round();
  }
  if (const auto* standby = std::get_if<DeviceStandby>(&event)) {
    if (!standby->ready && chance(50)) formed_ = 0;  // else the news comes too late
    if (standby->ready && options_.standby_world && phase_ == Phase::active) {
      formation_ = 1000 + static_cast<std::uint32_t>(given_.size());
      order(Order::contribute, formation_);
    }
  }
}

void DeviceSimulation::hears_done(const DeviceDone& done) {
  if (done.formation != 0) {
    if (done.formation != formation_ || phase_ != Phase::active || !done.outcome.ok()) return;
    if (done.order == Order::contribute) return order(Order::connect, formation_);
    formed_ = formation_;
    return;
  }
  if (done.round == 0 || done.round != round_) return;
  if (!done.outcome.ok()) return begin_round();
  const auto next = [this, round = round_, from = phase_](Phase into) {  // once all have
    after(some_time(100'000), [this, round, from, into] {
      if (round == round_ && phase_ == from && !spectator_) enter(into);
    });
  };
  switch (done.order) {
    case Order::halt: return next(Phase::quiesce);
    case Order::quiesce: return next(Phase::replace);
    case Order::replace: return order(Order::contribute);
    case Order::promote: return next(Phase::verify);
    case Order::contribute: return next(Phase::form);
    case Order::connect: return next(Phase::verify);
  }
}

// Time

void DeviceSimulation::after(std::chrono::nanoseconds delay, std::function<void()> run) {
  events_.push({now_ + delay, ++sequence_, std::move(run)});
}

void DeviceSimulation::look() {
  after(kLookEvery, [this] { look(); });
  if (const auto id = device_.hosts().beating(); id && !device_.failure() && !host(*id).well)
    after(kHeartbeatTimeout, [this, id = *id] {
      if (device_.hosts().beating() == id && !device_.failure())
        device_.lost(id, "hang", {Errc::timeout, 0, "its heartbeat stands still"}, now_);
    });
  device_.tick(now_);
  if (options_.world && !begun_ && device_.state() != DeviceState::starting) {
    begun_ = true;
    device_.listen();
    if (device_.failure()) {
      stopped_ = true;
      return;
    }
    ++round_;
    enter(Phase::replace);
  }
  if (spectator_ && phase_ == Phase::active && now_ - revived_at_ > kRejoinAfter) {
    revived_at_ = now_;
    device_.revive(now_);
  }
  if (!options_.world && device_.failure()) stopped_ = true;
  if (!begun_ || stopped_ || phase_ == Phase::active || now_ - phase_since_ < kPhaseTimeout) return;
  if (phase_ == Phase::halt || phase_ == Phase::quiesce)
    return violation("an order to stop is not answered in time");
  begin_round();
}

bool DeviceSimulation::settled() const {
  const auto serving = device_.hosts().serving();
  if (device_.failure() || !serving || !hosts_.at(*serving).well || commands_ != *serving)
    return false;
  if (device_.state() != DeviceState::idle) return false;
  for (const auto& [id, one] : hosts_)
    if (device_.hosts().state_of(id) == HostState::retired) return false;
  if (options_.device.standby && !device_.hosts().standby()) return false;
  return !options_.world || (phase_ == Phase::active && begun_ && !spectator_);
}

bool DeviceSimulation::run(const std::function<bool()>& until) {
  for (int steps = 0; steps < 100'000 && !broken_; ++steps) {
    if (until()) return true;
    auto event = events_.top();
    events_.pop();
    now_ = event.at;
    event.run();
    check();
  }
  return false;
}

void DeviceSimulation::shut_down() {
  shut_ = true;
  device_.shut_down();
  for (const auto& [id, one] : hosts_)
    if (!one.reaped) violation("host " + std::to_string(id) + " is left behind");
}

/// The rules that hold between any two events.
void DeviceSimulation::check() {
  int active = 0, serving = 0, successors = 0, standbys = 0, lost = 0;
  for (const auto& [id, one] : hosts_) {
    const auto state = device_.hosts().state_of(id);
    if (state.has_value() == one.reaped)
      violation("host " + std::to_string(id) +
                (one.reaped ? " is reaped and not forgotten" : " is forgotten and not reaped"));
    if (!state) continue;
    host_states_.insert(*state);
    serving += *state == HostState::serving;
    standbys += *state == HostState::rising || *state == HostState::standby;
    successors += *state == HostState::coming || *state == HostState::waiting;
    lost += *state == HostState::faulty || *state == HostState::gone;
    active += *state >= HostState::starting && *state <= HostState::gone;
    if ((*state == HostState::faulty || *state == HostState::gone) && !device_.failure() &&
        !one.mourned)
      violation("a lost host is not mourned");
    if (*state != std::exchange(last_[id], *state)) {
      const auto hit = std::find_if(struck_.begin(), struck_.end(),
                                    [&](const auto& entry) { return entry.first == *state; });
      if (hit != struck_.end()) {
        after(some_time(3'000), [this, id = id, how = hit->second] { strike(id, how); });
        struck_.erase(hit);
      }
    }
  }
  device_states_.insert(device_.state());
  if (serving > 1 || active > 1) violation("two hosts are active");
  if (active == 0 && !device_.failure()) violation("no host is active");
  if (successors > 1 || standbys > 1) violation("there are too many hosts");
  if (successors == 1 && lost == 0 && !device_.failure()) violation("a successor of nobody");
  if (lost == 1 && !device_.failure() && !disturbed_ && begun_ && phase_ != Phase::active)
    violation("a fault is not recorded");
}

void DeviceSimulation::violation(const std::string& what) {
  ADD_FAILURE() << "at " << to_ms(now_) << " ms: " << what << "; " << where();
  broken_ = true;
}

std::string DeviceSimulation::where() const {
  auto text = "device " + std::to_string(static_cast<int>(device_.state())) + ", phase " +
              std::to_string(static_cast<int>(phase_)) + " of round " + std::to_string(round_);
  for (const auto& [id, one] : hosts_) {
    if (const auto state = device_.hosts().state_of(id))
      text += ", host " + std::to_string(id) + ": " + std::to_string(static_cast<int>(*state));
  }
  return text;
}

void DeviceSimulation::trace(const std::string& what) const {
  if (options_.trace)
    std::printf("%10.3f ms  %s; %s\n", to_ms(now_), what.c_str(), where().c_str());
}

}  // namespace troupe::rank_process
