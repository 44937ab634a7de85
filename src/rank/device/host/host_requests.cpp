#include "rank/device/host/host_requests.hpp"

#include <utility>
#include <vector>

namespace troupe::rank_process {

Result<void> HostRequests::send(const HostLink& host, const wire::ToHost& request, AnyAnswer answer,
                                IfLost if_lost) {
  const auto number = next_++;
  requests_.emplace(number, Request{host.id(), std::move(answer), if_lost});
  const auto sent = wire::send_control(host.socket(), request, number);
  if (sent.ok() || sent.code() == Errc::stopped) return {};
  const auto unsent = requests_.extract(number);
  if (if_lost == IfLost::tell) unsent.mapped().answer(sent.error());
  return sent;
}

void HostRequests::answered(std::uint64_t host, wire::FromDeviceHost message) {
  const auto it = requests_.find(message.request);
  if (it == requests_.end() || it->second.host != host) return;
  const auto answer = std::move(it->second.answer);
  requests_.erase(it);
  if (!message.whole.ok()) return answer(message.whole.error());
  if (auto* const failed = std::get_if<wire::from_host::Failed>(&message.message))
    return answer(std::move(failed->error));
  answer(std::move(message.message));
}

void HostRequests::fail(std::uint64_t host, const Error& error) {
  fail_those([host](const Request& request) { return request.host == host; }, error);
}

void HostRequests::fail_all(const Error& error) {
  fail_those([](const Request&) { return true; }, error);
}

/// An answer may ask for something else, so all are taken out first.
template <class Which>
void HostRequests::fail_those(Which which, const Error& error) {
  std::vector<AnyAnswer> answers;
  std::erase_if(requests_, [&](auto& entry) {
    auto& request = entry.second;
    if (!which(request)) return false;
    if (request.if_lost == IfLost::tell) answers.push_back(std::move(request.answer));
    return true;
  });
  for (auto& answer : answers) answer(error);
}

}  // namespace troupe::rank_process
