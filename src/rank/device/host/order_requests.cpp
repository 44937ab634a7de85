#include "rank/device/host/order_requests.hpp"

#include <type_traits>
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
Result<Bytes> contribution_in(const Result<wire::from_host::Done>& answer) {
  return answer.ok() ? Result<Bytes>(Bytes()) : answer.error();
}

/// Stands in recovery.def for the message of an order that no device host is asked for.
struct none {};

template <class Message>
Message message_of(const DeviceOrder&) {
  return {};
}
template <>
wire::to_host::Contribute message_of<wire::to_host::Contribute>(const DeviceOrder& order) {
  return {order.rank, order.size, order.groups};
}
template <>
wire::to_host::Connect message_of<wire::to_host::Connect>(const DeviceOrder& order) {
  return {order.rank, order.size, *order.contributions, order.groups};
}

Result<void> outcome_of(const Result<wire::from_host::Done>& answer) {
  return answer.ok() ? Result<void>() : answer.error();
}

}  // namespace

Result<void> ask_for(HostRequests& requests, const HostLink& host, const DeviceOrder& order,
                     std::function<void(Result<Bytes>)> then) {
  using namespace wire::to_host;
  const auto ask = [&]<class Message>(Message message) -> Result<void> {
    if constexpr (std::is_same_v<Message, none>) {
      check(false, "an order that is not a host's to carry out");
      return {};
    } else {
      return requests.ask(
          host, std::move(message),
          [then](Result<typename Message::Answer> answer) { then(contribution_in(answer)); },
          HostRequests::IfLost::forget);
    }
  };
  if (order.what == Order::quiesce) host.header().surrenders.advance();
#define TROUPE_RECOVERY_ORDER(name, phase, message, fault) \
  if (order.what == Order::name) return ask(message_of<message>(order));
#include <troupe/recovery.def>
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
