#include "rank/device/host/host_links.hpp"

#include <utility>

#include "common/core/log.hpp"

namespace troupe::rank_process {

Result<void> HostLinks::start(Watcher::Handlers handlers) {
  auto watcher = Watcher::start(port_, std::move(handlers));
  if (!watcher) return watcher.error();
  watcher_ = std::move(*watcher);
  return {};
}

Result<void> HostLinks::spawn(Link link, bool standby) {
  if (auto spawned = link->spawn(standby); !spawned) return spawned;
  log::debug("device", "device host {} started as {} (pid {})", link->id(),
             standby ? "standby" : "active", link->pid());
  add(std::move(link));
  return {};
}

void HostLinks::adopt(Link link) {
  log::debug("device", "device host {} has been started ahead of the rank (pid {})", link->id(),
             link->pid());
  add(std::move(link));
}

void HostLinks::add(Link link) {
  watcher_->add(link);
  const auto id = link->id();
  links_[id] = std::move(link);
}

HostLinks::Link HostLinks::find(std::optional<HostId> host) const {
  return host ? links_.at(*host) : nullptr;
}

HostLinks::Link HostLinks::known(HostId host) const {
  const auto it = links_.find(host);
  return it == links_.end() ? nullptr : it->second;
}

std::vector<HostLinks::Link> HostLinks::of(const std::vector<HostId>& hosts) const {
  std::vector<Link> all;
  for (const auto host : hosts) all.push_back(at(host));
  return all;
}

std::string HostLinks::last_words(HostId host) const {
  const auto link = known(host);
  return link ? link->header().last_words.text() : "";
}

bool HostLinks::was_wrapper(HostId host) {
  const auto link = known(host);
  if (!link || !link->host_is_there()) return false;
  watcher_->await_host(*link);
  return true;
}

void HostLinks::leave(HostId host) {
  ending_.push_back(at(host));
  watcher_->remove(host);
  links_.erase(host);
  reap();
}

void HostLinks::reap() {
  std::erase_if(ending_, [](const Link& link) { return link->try_reap().has_value(); });
}

void HostLinks::dismiss(HostId host) {
  const auto& link = at(host);
  watcher_->remove(host);
  link->dismiss();
  dismissed_.push_back(link);
}

void HostLinks::await_dismissed() {
  const auto since = SteadyClock::time();
  for (const auto& host : dismissed_) host->await_end(since);
  dismissed_.clear();
  links_.clear();
  ending_.clear();
}

void HostLinks::clear() noexcept {
  watcher_.reset();
  dismissed_.clear();
  links_.clear();
  ending_.clear();
}

}  // namespace troupe::rank_process
