#pragma once

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "rank/store/state_keeper.hpp"
#include "rank/world/status/world_monitor.hpp"

namespace troupe::rank_process {

/// The keeper of the run that is under way, or of the last one: what the world has to tell it goes
/// by here.
class KeeperStatus {
 public:
  explicit KeeperStatus(WorldMonitor& monitor) : monitor_(&monitor) {}

  /// What it has saved so far. Any thread.
  [[nodiscard]] std::vector<SavedCheckpoint> saved() const {
    const std::lock_guard lock(monitor_->mutex);
    return keeper_ ? keeper_->saved() : std::vector<SavedCheckpoint>();
  }

  // The program's thread.

  [[nodiscard]] StateKeeper* get() const noexcept { return keeper_.get(); }
  /// From now on this keeper, or none, hears of the run's commits. The one before.
  std::unique_ptr<StateKeeper> exchange(std::unique_ptr<StateKeeper> keeper) {
    const std::lock_guard lock(monitor_->mutex);
    std::swap(keeper_, keeper);
    if (keeper_) keeper_->activated(monitor_->epoch, -1);
    return keeper;
  }

  // With the monitor's mutex held. See StateKeeper.

  [[nodiscard]] std::int64_t kept() const { return keeper_ ? keeper_->kept() : -1; }
  /// The newest commit that all ranks have, as far as is known here; -1: none.
  [[nodiscard]] std::int64_t stable() const noexcept { return stable_; }

  void stable(std::int64_t step) {
    stable_ = step;
    if (keeper_) keeper_->stable(step);
  }
  void activated(std::int64_t step) {
    stable_ = step;
    if (keeper_) keeper_->activated(monitor_->epoch, step);
  }
  void stopped() {
    stable_ = -1;
    if (keeper_) keeper_->stopped();
  }

 private:
  WorldMonitor* monitor_;
  std::int64_t stable_ = -1;
  std::unique_ptr<StateKeeper> keeper_;  ///< replaced by the program's thread alone
};

}  // namespace troupe::rank_process
