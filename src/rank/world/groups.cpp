#include "rank/world/groups.hpp"

#include <algorithm>

namespace troupe::rank_process {

const GroupEntry::View& GroupEntry::view(const HostGroup& world) {
  const std::lock_guard lock(mutex_);
  for (const auto& view : views_) {
    if (view->world == &world) return *view;
  }
  auto made = std::make_unique<View>(View{.world = &world});
  const auto& present = world.ranks();
  for (const int rank : ranks_) {
    if (std::find(present.begin(), present.end(), rank) == present.end()) continue;
    if (rank == mpi_->rank()) made->rank = static_cast<int>(made->ranks.size());
    made->ranks.push_back(rank);
  }
  if (made->rank < 0) made->ranks.clear();  // of no concern to a spectator
  return *views_.emplace_back(std::move(made));
}

const HostGroup& GroupEntry::hosts(const std::vector<int>& ranks) {
  {
    const std::lock_guard lock(mutex_);
    if (const auto found = hosts_.find(ranks); found != hosts_.end()) return *found->second;
  }
  auto made = mpi_->make_group(ranks, Session::GroupTag::split, static_cast<int>(number_));
  const std::lock_guard lock(mutex_);
  return *hosts_.emplace(ranks, std::move(made)).first->second;
}

std::vector<wire::FormingGroup> Groups::listing(const std::vector<std::int32_t>& excluded,
                                                bool returns) const {
  std::vector<wire::FormingGroup> list;
  const std::lock_guard lock(mutex_);
  for (const auto& [number, listed] : entries_) {
    const auto& [entry, state] = listed;
    if (entry->gone()) continue;
    const bool returning = returns && state == wire::GroupState::held;
    auto& group = list.emplace_back(
        wire::FormingGroup{number, returning ? wire::GroupState::returning : state, {}});
    for (const int rank : entry->ranks()) {
      const auto before = std::lower_bound(excluded.begin(), excluded.end(), rank);
      if (before != excluded.end() && *before == rank) continue;
      group.members.push_back(rank - static_cast<std::int32_t>(before - excluded.begin()));
    }
  }
  return list;
}

void Groups::forget(const std::vector<wire::FormingGroup>& listed,
                    const std::vector<wire::Contribution>& contributions) {
  const auto formed = wire::groups_to_form(listed, contributions);
  const std::lock_guard lock(mutex_);
  for (const auto& group : listed) {
    const bool alive = std::any_of(formed.begin(), formed.end(),
                                   [&](const auto& one) { return one.number == group.number; });
    const auto found = entries_.find(group.number);
    if (alive || found == entries_.end()) continue;
    // A group that others have yet to hear of is not gone.
    if (found->second.state != wire::GroupState::forming) found->second.entry->set_gone();
  }
}

bool Groups::all_in(const std::vector<wire::FormingGroup>& formed) const {
  const std::lock_guard lock(mutex_);
  return std::all_of(entries_.begin(), entries_.end(), [&](const auto& one) {
    const auto& [number, listed] = one;
    return listed.entry->gone() || listed.state == wire::GroupState::dropped ||
           std::any_of(formed.begin(), formed.end(),
                       [&, n = number](const auto& group) { return group.number == n; });
  });
}

bool Groups::lacks_any(const std::vector<wire::FormingGroup>& formed) const {
  const std::lock_guard lock(mutex_);
  return std::any_of(formed.begin(), formed.end(),
                     [&](const auto& group) { return !entries_.contains(group.number); });
}

std::uint32_t Groups::next() const {
  const std::lock_guard lock(mutex_);
  return newest_ + 1;
}

std::shared_ptr<GroupEntry> Groups::add(std::uint32_t number, std::vector<int> ranks) {
  const std::lock_guard lock(mutex_);
  newest_ = std::max(newest_, number);
  if (ranks.empty()) return nullptr;
  auto entry = std::make_shared<GroupEntry>(*mpi_, number, std::move(ranks));
  entries_.emplace(number, Listed{entry});
  return entry;
}

std::shared_ptr<GroupEntry> Groups::find(std::uint32_t number) const {
  const std::lock_guard lock(mutex_);
  const auto found = entries_.find(number);
  return found != entries_.end() ? found->second.entry : nullptr;
}

void Groups::set(const GroupEntry& entry, wire::GroupState state) {
  const std::lock_guard lock(mutex_);
  if (const auto found = entries_.find(entry.number()); found != entries_.end())
    found->second.state = state;
}

std::vector<std::shared_ptr<GroupEntry>> Groups::dropped() const {
  std::vector<std::shared_ptr<GroupEntry>> list;
  const std::lock_guard lock(mutex_);
  for (const auto& [number, listed] : entries_) {
    if (!listed.entry->gone() && listed.state == wire::GroupState::dropped)
      list.push_back(listed.entry);
  }
  return list;
}

void Groups::erase(std::uint32_t number) {
  std::shared_ptr<GroupEntry> ending;  // its host groups are freed unlocked
  const std::lock_guard lock(mutex_);
  const auto entry = entries_.find(number);
  if (entry == entries_.end()) return;
  ending = std::move(entry->second.entry);
  entries_.erase(entry);
}

void Groups::close() {
  const std::lock_guard lock(mutex_);
  for (const auto& [number, listed] : entries_) listed.entry->free_hosts();
}

}  // namespace troupe::rank_process
