#include "rank/world/status/members.hpp"

#include <algorithm>
#include <utility>

namespace troupe::rank_process {

Members::Members(WorldMonitor& monitor, Session& mpi)
    : monitor_(&monitor),
      mpi_(&mpi),
      now_(&mpi.everyone()),
      forming_(&mpi.everyone()),
      newest_{.group = &mpi.everyone()},
      acknowledged_(newest_),
      new_(mpi.respawns().incarnation() > 0) {}

void Members::regroup(std::shared_ptr<const HostGroup> group, bool current) {
  const std::lock_guard lock(monitor_->mutex);
  if (current) forming_ = group ? group.get() : &mpi_->everyone();
  if (group) kept_.push_back(std::move(group));
}

void Members::settle() {
  const std::lock_guard lock(monitor_->mutex);
  renewed_ = false;
  new_ = false;
  settle_locked();
}

void Members::renew() {
  renewed_ = true;
  ++newest_.number;
  newest_.era = monitor_->epoch;
  newest_.deaths = mpi_->respawns().deaths();
}

bool Members::exclude(const std::vector<std::int32_t>& excluded) {
  const bool out = std::binary_search(excluded.begin(), excluded.end(), mpi_->rank());
  const auto* const group = out ? &nobody_ : forming_;
  if (excluded == excluded_ && group == newest_.group) return false;
  ++newest_.number;
  newest_.group = group;
  excluded_ = excluded;
  return true;
}

void Members::acknowledge(const StatusParts& parts) {
  if (newest_.era != acknowledged_.era) mpi_->respawns().begin_era(newest_.era, newest_.deaths);
  acknowledged_ = newest_;
  monitor_->program_epoch.store(monitor_->epoch, std::memory_order_release);
  parts.tokens->begin_epoch(monitor_->epoch);
}

}  // namespace troupe::rank_process
