#include "rank/device/host/device_course.hpp"

#include <utility>

namespace troupe::rank_process {

using Order = DeviceDone::Order;

std::optional<DeviceState> DeviceCourse::next(DeviceState from, Event event) {
#define TROUPE_DEVICE(state, on, into) \
  if (from == DeviceState::state && event == Event::on) return DeviceState::into;
#include "rank/device/host/device_transitions.def"
#undef TROUPE_DEVICE
  return std::nullopt;
}

DeviceCourse::Event DeviceCourse::event_of(Order order) {
#define TROUPE_RECOVERY_ORDER(name, phase, message, fault) \
  if (order == Order::name) return Event::name;
#include <troupe/recovery.def>
  check(false, "an unknown order");
  return Event::halt;
}

bool DeviceCourse::may(Order order) const {
  return next(state_, event_of(order)).has_value();
}

bool DeviceCourse::move(Event event) {
  const auto into = next(state_, event);
  if (into) state_ = *into;
  return into.has_value();
}

bool DeviceCourse::move(Order order) {
  return move(event_of(order));
}

void DeviceCourse::answer(Event event, Outcome outcome) {
  if (move(event)) report_done(open_, std::move(outcome));
}

void DeviceCourse::answer_if_serving() {
  if (hosts_.serving()) answer(Event::serves);
}

void DeviceCourse::report_done(const DeviceOrder& order, Outcome outcome) {
  actions_.report(DeviceDone{order.what, order.round, order.prepares() ? order.formation : 0,
                             std::move(outcome)});
}

void DeviceCourse::give_up(const Error& error) {
  if (failed_) return;
  failed_ = error;
  move(Event::given_up);
  for (const auto& [id, host] : hosts_.all()) hosts_.at(id).preparing.reset();
  actions_.give_up(error);
  actions_.report(DeviceFailed{error});
}

void DeviceCourse::come_back(HostId host) {
  failed_.reset();
  move(Event::came_up);
  actions_.begin_again(host);
  actions_.report(DeviceRevived{});
}

void DeviceCourse::end(const Error& why) {
  failed_ = why;
  state_ = DeviceState::ended;
}

Result<HostId> start_host(HostTable& hosts, DeviceActions& actions, DeviceActions::Start as,
                          HostState state, TimePoint now) {
  const auto id = hosts.new_id();
  if (auto started = actions.start(id, as); !started.ok()) return started.error();
  hosts.add(id, state, now);
  return id;
}

}  // namespace troupe::rank_process
