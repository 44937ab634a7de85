#include "rank/device/host/host_requests.hpp"

#include <utility>
#include <vector>

namespace troupe::rank_process {

void HostRequests::ask(const HostLink& host, wire::Control head, int fd, Answer answer,
                       IfLost if_lost) {
  head.request = next_++;
  requests_.emplace(head.request, Request{host.id(), std::move(answer), if_lost});
  (void)wire::send_control(host.socket(), head, {}, fd);  // a dead socket is seen by its watcher
}

void HostRequests::answered(std::uint64_t host, wire::ControlMessage message) {
  const auto it = requests_.find(message.head.request);
  if (it == requests_.end() || it->second.host != host) return;
  const auto answer = std::move(it->second.answer);
  requests_.erase(it);
  if (message.head.kind == wire::ControlKind::failed) {
    answer(message.error());
  } else if (const auto whole = message.check_descriptor(); !whole.ok()) {
    answer(whole.error());
  } else {
    answer(std::move(message));
  }
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
  std::vector<Answer> answers;
  std::erase_if(requests_, [&](auto& entry) {
    auto& request = entry.second;
    if (!which(request)) return false;
    if (request.if_lost == IfLost::tell) answers.push_back(std::move(request.answer));
    return true;
  });
  for (auto& answer : answers) answer(error);
}

}  // namespace troupe::rank_process
