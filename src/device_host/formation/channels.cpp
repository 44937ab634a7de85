#include "device_host/formation/channels.hpp"

#include <string>
#include <utility>

namespace troupe::host {

Result<void> Channels::add(std::uint64_t number, EndPtr end) {
  const std::lock_guard lock(mutex_);
  if (given_up_early_.erase(number) != 0)
    return Error{Errc::world_reformed, 0,
                 "the end number " + std::to_string(number) + " was given up before it was made"};
  if (ends_.emplace(number, std::move(end)).second) return {};
  return Error{Errc::invalid, 0, "there is an end number " + std::to_string(number) + " already"};
}

Result<Channels::EndPtr> Channels::find(std::uint64_t number) {
  const std::lock_guard lock(mutex_);
  const auto found = ends_.find(number);
  if (found != ends_.end()) return found->second;
  return Error{Errc::world_reformed, 0,
               "there is no channel with an end number " + std::to_string(number)};
}

void Channels::drop(std::uint64_t number, bool may_come) {
  const std::lock_guard lock(mutex_);
  const auto found = ends_.find(number);
  if (found == ends_.end()) {
    if (may_come) given_up_early_.insert(number);
    return;
  }
  found->second->abort();
  given_up_.push_back(std::move(found->second));
  ends_.erase(found);
}

void Channels::abort() {
  const std::lock_guard lock(mutex_);
  for (auto& [number, end] : ends_) {
    end->abort();
    given_up_.push_back(std::move(end));
  }
  ends_.clear();
  given_up_early_.clear();
}

void Channels::bury(Helpers& helpers) {
  std::vector<EndPtr> ends;
  {
    const std::lock_guard lock(mutex_);
    ends.swap(given_up_);
  }
  if (ends.empty()) return;
  (void)helpers.start([ends = std::move(ends)]() mutable -> Helpers::Finish {
    ends.clear();
    return [] {};
  });
}

}  // namespace troupe::host
