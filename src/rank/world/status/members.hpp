#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "rank/net/session.hpp"
#include "rank/world/status/status_parts.hpp"
#include "rank/world/status/world_monitor.hpp"

namespace troupe::rank_process {

/// Which ranks of the job are members of the world: in the newest epoch, in the one that the
/// program has acknowledged, and those that it has turned to.
class Members {
 public:
  Members(WorldMonitor& monitor, Session& mpi);

  /// The ranks that the program has turned to, of an epoch that it has acknowledged. Any thread.
  [[nodiscard]] const HostGroup& now() const noexcept { return *now_.load(); }

  // The WorldActor.

  /// The members of the epoch that is being formed, nullptr: all ranks. Not `current` any more: the
  /// group is only kept, because to free it waits for all of its ranks.
  void regroup(std::shared_ptr<const HostGroup> group, bool current);
  /// The ranks of the job that are out of the newest epoch.
  [[nodiscard]] const std::vector<std::int32_t>& excluded() const noexcept { return excluded_; }

  // The program's thread.

  /// The members of the acknowledged epoch are not those that the program works with.
  [[nodiscard]] bool have_changed() const { return acknowledged_.number != settled_; }
  /// The program turns to the members of the acknowledged epoch.
  void turn_to_new() { now_ = acknowledged_.group; }
  /// The program has made its share among them.
  void settle();
  /// This rank was started in the place of one that has died, and has no state yet.
  [[nodiscard]] bool is_new() const noexcept { return new_; }
  /// Ranks that had died are back, and the program is to work with as many as before.
  [[nodiscard]] bool are_back() const noexcept {
    return renewed_ && (watches() || acknowledged_.group->size() == now().size());
  }
  /// A rank has died, and the epoch in which it is back is not acknowledged yet.
  [[nodiscard]] bool is_one_dead() const {
    const std::lock_guard lock(monitor_->mutex);
    return mpi_->respawns().deaths() != acknowledged_.deaths;
  }
  /// The acknowledged epoch goes on without this rank.
  [[nodiscard]] bool watches() const noexcept { return acknowledged_.group->rank() < 0; }

  // With the monitor's mutex held.

  /// The newest epoch is one without these ranks, of the group that was formed for it. False: both
  /// are those of the epoch before.
  bool exclude(const std::vector<std::int32_t>& excluded);
  /// The program acknowledges the newest epoch.
  void acknowledge(const StatusParts& parts);
  /// Nothing has to be made for the members of the acknowledged epoch.
  void settle_locked() { settled_ = acknowledged_.number; }
  /// The newest epoch is one in which ranks that had died are back: the program has to deal the
  /// state out, also if the members' numbers are the same.
  void renew();
  /// It has not done so yet.
  [[nodiscard]] bool are_renewed() const noexcept { return renewed_; }
  /// The program has the state of the newest epoch's members.
  [[nodiscard]] bool are_settled() const { return newest_.number == settled_; }

 private:
  struct Membership {
    std::uint32_t number = 0;           ///< counts the changes
    std::uint32_t era = 0, deaths = 0;  ///< see Session::begin_era
    const HostGroup* group = nullptr;   ///< nobody_ where this rank is out
  };

  WorldMonitor* monitor_;
  Session* mpi_;
  const HostGroup nobody_;
  std::atomic<const HostGroup*> now_;  ///< written by the program's thread
  /// To the end, when all free them together: another member may still be about to use one.
  std::vector<std::shared_ptr<const HostGroup>> kept_;
  const HostGroup* forming_;            ///< of the newest regroup()
  std::vector<std::int32_t> excluded_;  ///< from the newest epoch
  Membership newest_, acknowledged_;    ///< of the newest epoch, of the acknowledged one
  std::atomic<bool> renewed_{false};
  std::atomic<bool> new_;
  std::uint32_t settled_ = 0;  ///< number of that which the program works with
};

}  // namespace troupe::rank_process
