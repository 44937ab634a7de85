#include "rank/device/host/device_standbys.hpp"

#include <utility>

namespace troupe::rank_process {
namespace {

/// Before a new standby follows one that died.
constexpr auto kPause = std::chrono::seconds(1);

}  // namespace

void DeviceStandbys::raise(TimePoint now) {
  if (!wanted_ || hosts_.standby() || course_.failure()) return;
  if (not_before_ && now < *not_before_) return;
  const auto raised =
      start_host(hosts_, actions_, DeviceActions::Start::standby, HostState::rising, now);
  if (!raised.ok()) not_before_ = now + kPause;
}

void DeviceStandbys::report() {
  if (course_.world_active() && !course_.failure() && hosts_.ready_standby())
    actions_.report(DeviceStandby{true});
}

void DeviceStandbys::lost(HostId id, const Error& error, TimePoint now) {
  const auto preparing = hosts_.at(id).preparing;
  actions_.drop_standby(id, error);
  hosts_.erase(id);
  if (preparing) course_.report_done(*preparing, host_died(error));
  not_before_ = now + kPause;
  if (course_.world_active()) actions_.report(DeviceStandby{false});
}

void DeviceStandbys::prepare(const DeviceOrder& order) {
  const auto host = hosts_.ready_standby();
  if (!host) return;  // its loss is on its way to whoever waits
  auto& standby = hosts_.at(*host);
  if (order.what == DeviceDone::Order::contribute) standby.formation = 0;
  standby.preparing = order;
  if (const auto asked = actions_.carry_out(*host, order); !asked.ok())
    answered(*host, order, asked.error());
}

void DeviceStandbys::answered(HostId id, const DeviceOrder& order, DeviceCourse::Outcome outcome) {
  auto& host = hosts_.at(id);
  if (!host.preparing || !host.preparing->same(order)) return;  // superseded
  host.preparing.reset();
  if (order.what == DeviceDone::Order::connect && outcome.ok()) host.formation = order.formation;
  course_.report_done(order, std::move(outcome));
}

}  // namespace troupe::rank_process
