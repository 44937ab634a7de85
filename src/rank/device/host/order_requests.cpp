#include "rank/device/host/order_requests.hpp"

#include <utility>

namespace troupe::rank_process {

using Order = DeviceDone::Order;

namespace {

const Error kNoHost{Errc::device_lost, 0, "there is no device host"};

using Bytes = std::vector<std::byte>;

Result<Bytes> contribution_in(Result<wire::from_host::Contributed>& answer) {
  if (!answer.ok()) return answer.error();
  return std::move(answer->contribution);
}

Result<void> outcome_of(const Result<wire::from_host::Done>& answer) {
  return answer.ok() ? Result<void>() : answer.error();
}

}  // namespace

Result<void> ask_for(HostRequests& requests, const HostLink& host, const DeviceOrder& order,
                     std::function<void(Result<Bytes>)> then) {
  const auto done = [then](const Result<wire::from_host::Done>& answer) {
    then(answer.ok() ? Result<Bytes>(Bytes()) : answer.error());
  };
  constexpr auto kForget = HostRequests::IfLost::forget;
  switch (order.what) {
    case Order::quiesce:
      host.header().surrenders.advance();
      return requests.ask(host, wire::to_host::Quiesce{}, done, kForget);
    case Order::contribute:
      return requests.ask(
          host, wire::to_host::Contribute{order.rank, order.size, order.groups},
          [then](Result<wire::from_host::Contributed> answer) { then(contribution_in(answer)); },
          kForget);
    case Order::connect:
      return requests.ask(
          host, wire::to_host::Connect{order.rank, order.size, *order.contributions, order.groups},
          done, kForget);
    case Order::halt:
    case Order::replace:
    case Order::promote: break;
  }
  check(false, "an order that is not a host's to carry out");
  return {};
}

void ask_for(HostRequests& requests, const HostLink* host,
             const device_message::ContributeGroup& order) {
  if (host == nullptr) return (void)order.contributed->resolve(kNoHost);
  (void)requests.ask(*host, wire::to_host::ContributeGroup{order.number, order.rank, order.size},
                     [order](Result<wire::from_host::Contributed> answer) {
                       order.contributed->resolve(contribution_in(answer));
                     });
}

void ask_for(HostRequests& requests, const HostLink* host,
             const device_message::ConnectGroup& order) {
  if (host == nullptr) return (void)order.connected->resolve(kNoHost);
  (void)requests.ask(
      *host,
      wire::to_host::ConnectGroup{order.number, order.rank, order.size, *order.contributions},
      [order](const Result<wire::from_host::Done>& answer) {
        order.connected->resolve(outcome_of(answer));
      });
}

}  // namespace troupe::rank_process
