#include "rank/device/host/order_requests.hpp"

#include <utility>

#include "common/wire/formation.hpp"

namespace troupe::rank_process {

using wire::ControlKind;
using Order = DeviceDone::Order;

namespace {

const Error kNoHost{Errc::device_lost, 0, "there is no device host"};

Result<std::vector<std::byte>> contribution_in(const Result<wire::ControlMessage>& answer) {
  if (!answer.ok()) return answer.error();
  auto blobs = wire::unpack_blobs(answer->fd.get());
  if (!blobs.ok()) return blobs.error();
  if (blobs->size() != 1) return Error{Errc::internal, 0, "a malformed contribution"};
  return std::move(blobs->front());
}

ControlKind kind_of(Order order) {
  switch (order) {
    case Order::quiesce: return ControlKind::quiesce;
    case Order::contribute: return ControlKind::contribute;
    case Order::connect: return ControlKind::connect;
    case Order::halt:
    case Order::replace:
    case Order::promote: break;
  }
  check(false, "an order that is not a host's to carry out");
  return {};
}

}  // namespace

Result<void> ask_for(HostRequests& requests, const HostLink& host, const DeviceOrder& order,
                     std::function<void(Result<std::vector<std::byte>>)> then) {
  const bool connects = order.what == Order::connect;
  auto blobs = connects ? *order.contributions : DeviceOrder::Blobs();
  if (!order.groups.empty()) blobs.push_back(wire::encode_groups(order.groups));
  UniqueFd packed;
  if (connects || !blobs.empty()) {
    auto made = wire::pack_blobs(blobs);
    if (!made.ok()) return made.error();
    packed = std::move(*made);
  }
  if (order.what == Order::quiesce) host.header().surrenders.advance();
  requests.ask(
      host, {.kind = kind_of(order.what), .rank = order.rank, .size = order.size}, packed.get(),
      [what = order.what, then = std::move(then)](const Result<wire::ControlMessage>& answer) {
        if (what == Order::contribute) return then(contribution_in(answer));
        if (!answer.ok()) return then(answer.error());
        then(std::vector<std::byte>());
      },
      HostRequests::IfLost::forget);
  return {};
}

void ask_for(HostRequests& requests, const HostLink* host,
             const device_message::ContributeGroup& order) {
  if (host == nullptr) return (void)order.contributed->resolve(kNoHost);
  requests.ask(*host,
               {.kind = ControlKind::contribute_group,
                .region = order.number,
                .rank = order.rank,
                .size = order.size},
               -1, [order](const Result<wire::ControlMessage>& answer) {
                 order.contributed->resolve(contribution_in(answer));
               });
}

void ask_for(HostRequests& requests, const HostLink* host,
             const device_message::ConnectGroup& order) {
  if (host == nullptr) return (void)order.connected->resolve(kNoHost);
  const auto packed = wire::pack_blobs(*order.contributions);
  if (!packed.ok()) return (void)order.connected->resolve(packed.error());
  requests.ask(*host,
               {.kind = ControlKind::connect_group,
                .region = order.number,
                .rank = order.rank,
                .size = order.size},
               packed->get(), [order](const Result<wire::ControlMessage>& answer) {
                 order.connected->resolve(answer.ok() ? Result<void>() : answer.error());
               });
}

}  // namespace troupe::rank_process
