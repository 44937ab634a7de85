#include "rank/device/host/succession.hpp"

namespace troupe::rank_process {

bool Succession::survives(const std::optional<Error>& passed) {
  if (!passed) return true;
  if (asks_to_stop_ && course_.governed() && limits_.take_last()) {
    actions_.report(DeviceExhausted{});
    return true;
  }
  course_.give_up(*passed);
  return false;
}

bool Succession::spend_restart(TimePoint now) {
  return survives(limits_.lose_host(hosts_.at(*hosts_.faulty()).fault->error, now));
}

void Succession::advance(TimePoint now) {
  if (course_.failure()) return;
  const auto faulty = hosts_.faulty();
  if (faulty) {
    if (!hosts_.successor() && (!course_.is(DeviceState::replacing) || !choose(now))) return;
    const auto& old = hosts_.at(*faulty);
    if (old.state == HostState::gone || old.fault->still) {
      bury();
    } else {
      actions_.kill(*faulty);  // its end brings us back
    }
  }
  const auto next = hosts_.next_in_line();
  if (!next || !hosts_.has_started(*next)) return;
  if (course_.is(DeviceState::replacing)) course_.answer(DeviceCourse::Event::carried_out);
  if (hosts_.at(*next).state != HostState::ready) return;
  hosts_.move(*next, HostTable::Event::promote);
  actions_.promote(*next);
}

bool Succession::choose(TimePoint now) {
  if (!spend_restart(now)) return false;
  if (const auto host = hosts_.standby()) return hosts_.move(*host, HostTable::Event::chosen);
  const auto started =
      start_host(hosts_, actions_, DeviceActions::Start::successor, HostState::coming, now);
  if (!started.ok()) course_.give_up(started.error());
  return started.ok();
}

void Succession::bury() {
  const auto old = *hosts_.faulty(), heir = *hosts_.successor();
  const auto fault = *hosts_.at(old).fault;
  hosts_.move(heir, HostTable::Event::inherits);
  if (hosts_.move(old, HostTable::Event::outlives)) return actions_.outlive(old, heir, fault);
  hosts_.move(old, HostTable::Event::buried);
  actions_.bury(old, heir, fault);
  hosts_.erase(old);
}

void Succession::end_retired() {
  for (const auto& [id, host] : hosts_.all())
    if (host.state == HostState::retired) actions_.kill(id);
}

}  // namespace troupe::rank_process
