#include "rank/world/status/members.hpp"

#include <algorithm>
#include <utility>

namespace troupe::rank_process {

Members::Members(WorldMonitor& monitor, Session& mpi)
    : monitor_(&monitor),
      mpi_(&mpi),
      now_(&mpi.everyone()),
      forming_(&mpi.everyone()),
      newest_{0, &mpi.everyone()},
      acknowledged_(newest_) {}

void Members::regroup(std::shared_ptr<const HostGroup> group, bool current) {
  const std::lock_guard lock(monitor_->mutex);
  if (current) forming_ = group ? group.get() : &mpi_->everyone();
  if (group) kept_.push_back(std::move(group));
}

void Members::settle() {
  const std::lock_guard lock(monitor_->mutex);
  settle_locked();
}

bool Members::exclude(const std::vector<std::int32_t>& excluded) {
  if (excluded == excluded_) return false;
  const bool out = std::binary_search(excluded.begin(), excluded.end(), mpi_->rank());
  newest_ = {newest_.number + 1, out ? &nobody_ : forming_};
  excluded_ = excluded;
  return true;
}

void Members::acknowledge(const StatusParts& parts) {
  acknowledged_ = newest_;
  monitor_->program_epoch.store(monitor_->epoch, std::memory_order_release);
  parts.tokens->begin_epoch(monitor_->epoch);
}

}  // namespace troupe::rank_process
