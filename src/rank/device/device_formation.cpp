#include <algorithm>

#include "common/core/log.hpp"
#include "rank/device/device_actor.hpp"

// The DeviceActor's part in forming communicators and in handing over to a standby.

namespace troupe::rank_process {

using namespace device_message;
using wire::ControlKind;

namespace {

const Error kNoHost{Errc::device_lost, 0, "there is no device host"};

Result<std::vector<std::byte>> contribution_in(const Result<wire::ControlMessage>& answer) {
  if (!answer.ok()) return answer.error();
  auto blobs = wire::unpack_blobs(answer->fd.get());
  if (!blobs.ok()) return blobs.error();
  if (blobs->size() != 1) return Error{Errc::internal, 0, "a malformed contribution"};
  return std::move(blobs->front());
}

}  // namespace

DeviceActor::Incarnation* DeviceActor::host_for(const Purpose& purpose) {
  if (purpose.formation == 0) return next_in_line();
  return standby_ ? &*standby_ : nullptr;
}

void DeviceActor::report_formed(DeviceDone::Order order, const Purpose& purpose,
                                Result<std::vector<std::byte>> outcome) {
  report(DeviceDone{order, purpose.round, purpose.formation, std::move(outcome)});
}

void DeviceActor::report_standby() {
  if (!world_active_ || !standby_ || !standby_->ready) return;
  report(DeviceStandby{true});
  measure_standby(true, [] {});
}

void DeviceActor::measure_standby(bool raised, const std::function<void()>& then) {
  // Later ones come up while hosts that have handed over are on their way out.
  const bool later = !raised && std::exchange(standby_measured_, true);
  if (later) before_standby_.reset();
  if (!active_ || !active_->serving || later || (raised && !before_standby_)) return then();
  std::uint64_t slabs = 0;
  for (const auto& [region, slab] : slabs_) slabs += slab.bytes;
  request(*active_, {.kind = ControlKind::memory_use}, -1,
          [this, raised, slabs, then](Result<wire::ControlMessage> answer) {
            const auto free = answer.ok() ? answer->head.bytes : 0;
            if (!raised) before_standby_ = free + slabs;
            if (free == 0) before_standby_.reset();  // nobody knows
            if (raised && before_standby_) {
              standby_bytes_ = *before_standby_ - std::min(*before_standby_, free + slabs);
              report(DeviceStandbyMemory{standby_bytes_});
            }
            then();
          });
}

void DeviceActor::on(Contribute order) {
  auto* const host = host_for(order.purpose);
  if (host == nullptr || !host->ready) return;  // a loss is on its way to whoever waits
  host->formation = 0;                          // contributing gives up what there was
  const auto report = [this, order](Result<std::vector<std::byte>> outcome) {
    report_formed(DeviceDone::Order::contribute, order.purpose, std::move(outcome));
  };
  UniqueFd groups;
  if (!order.groups.empty()) {
    auto packed = wire::pack_blobs({wire::encode_groups(order.groups)});
    if (!packed.ok()) return report(packed.error());
    groups = std::move(*packed);
  }
  request(*host, {.kind = ControlKind::contribute, .rank = order.rank, .size = order.size},
          groups.get(),
          [report](Result<wire::ControlMessage> answer) { report(contribution_in(answer)); });
}

void DeviceActor::on(Connect order) {
  auto* const host = host_for(order.purpose);
  if (host == nullptr || !host->ready) return;
  auto blobs = *order.contributions;
  if (!order.groups.empty()) blobs.push_back(wire::encode_groups(order.groups));
  const auto packed = wire::pack_blobs(blobs);
  if (!packed.ok()) return report_formed(DeviceDone::Order::connect, order.purpose, packed.error());
  request(*host, {.kind = ControlKind::connect, .rank = order.rank, .size = order.size},
          packed->get(),
          [this, order, link = host->link->id()](Result<wire::ControlMessage> answer) {
            if (!answer.ok())
              return report_formed(DeviceDone::Order::connect, order.purpose, answer.error());
            if (order.purpose.formation == 0) {
              connected_ = order.purpose.round;
              return report_serving();
            }
            if (auto* const standby = find(link)) standby->formation = order.purpose.formation;
            measure_standby(true, [this, order] {
              report_formed(DeviceDone::Order::connect, order.purpose, std::vector<std::byte>());
            });
          });
}

void DeviceActor::on(ContributeGroup order) {
  if (!active_ || !active_->serving || fault_) return (void)order.contributed->resolve(kNoHost);
  request(*active_,
          {.kind = ControlKind::contribute_group,
           .region = order.number,
           .rank = order.rank,
           .size = order.size},
          -1, [order](const Result<wire::ControlMessage>& answer) {
            order.contributed->resolve(contribution_in(answer));
          });
}

void DeviceActor::on(ConnectGroup order) {
  if (!active_ || !active_->serving || fault_) return (void)order.connected->resolve(kNoHost);
  const auto packed = wire::pack_blobs(*order.contributions);
  if (!packed.ok()) return (void)order.connected->resolve(packed.error());
  request(*active_,
          {.kind = ControlKind::connect_group,
           .region = order.number,
           .rank = order.rank,
           .size = order.size},
          packed->get(), [order](const Result<wire::ControlMessage>& answer) {
            order.connected->resolve(answer.ok() ? Result<void>() : answer.error());
          });
}

void DeviceActor::on(DropGroup order) {
  for (const auto* host : {&active_, &successor_}) {
    if (*host && (*host)->link->spawned()) {
      (void)wire::send_control((*host)->link->socket(),
                               {.kind = ControlKind::drop_group, .region = order.number});
    }
  }
}

void DeviceActor::on(Promote order) {
  if (failed_) return report(DeviceFailed{*failed_});
  if (!standby_ || !standby_->ready || standby_->formation != order.formation || successor_) {
    return report_done(DeviceDone::Order::promote, order.round,
                       Error{Errc::device_lost, 0, "the standby to promote is gone"});
  }
  if (!fault_) {
    hand_over();
  } else {
    if (!spend_restart()) return;
    successor_ = std::move(*standby_);
    standby_.reset();
  }
  promoting_ = order.round;
  advance_replacement();
}

/// The active host is drained and in good health: the standby takes its place at once.
void DeviceActor::hand_over() {
  const auto old = active_->link->id();
  fail_requests(old, {Errc::device_lost, 0, "the device host is replaced"});
  const auto settled = port_->move_to(
      standby_->link,
      {Errc::world_reformed, 0, "the world is re-formed: call World::wait_active()"});
  report(DeviceLoss{"", static_cast<std::uint32_t>(settled.lost_buffers.size())});
  log::debug("device", "device host {} hands over: {} commands go on", old, settled.resubmitted);
  retired_.push_back(std::move(*active_));
  active_ = std::move(*standby_);
  standby_.reset();
}

void DeviceActor::report_serving() {
  if (!active_->serving) return;
  if (promoting_) report_done(DeviceDone::Order::promote, *std::exchange(promoting_, std::nullopt));
  if (connected_) report_done(DeviceDone::Order::connect, *std::exchange(connected_, std::nullopt));
}

}  // namespace troupe::rank_process
