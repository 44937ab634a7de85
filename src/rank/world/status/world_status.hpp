#pragma once

#include <atomic>

#include "rank/net/session.hpp"
#include "rank/protocol/follower.hpp"
#include "rank/world/status/corruption_status.hpp"
#include "rank/world/status/epochs.hpp"
#include "rank/world/status/health_status.hpp"
#include "rank/world/status/members.hpp"
#include "rank/world/status/phase_faults.hpp"
#include "rank/world/status/run_status.hpp"
#include "rank/world/status/slowness.hpp"
#include "rank/world/status/splits.hpp"
#include "rank/world/status/standbys.hpp"
#include "rank/world/status/status_parts.hpp"
#include "rank/world/status/world_monitor.hpp"

namespace troupe::rank_process {

/// What the world is at and what the program is asked to do: where the program's thread and the
/// WorldActor meet. The functions of each part say which of the two calls them.
class WorldStatus {
 public:
  WorldStatus(Session& mpi, Whereabouts& whereabouts)
      : members_(monitor_, mpi),
        standbys_(monitor_),
        splits_(monitor_),
        run_(monitor_, parts_, whereabouts, members_),
        epochs_(monitor_, parts_, mpi, whereabouts, members_, run_, standbys_) {}
  WorldStatus(const WorldStatus&) = delete;
  WorldStatus& operator=(const WorldStatus&) = delete;
  /// Before the WorldActor begins. They outlive the status.
  void set_parts(const StatusParts& parts) { parts_ = parts; }

  /// The rank that leads the world, as far as is known here. Any thread.
  [[nodiscard]] int leader() const noexcept { return leader_; }
  void set_leader(int rank) noexcept { leader_ = rank; }
  /// A rank has died. The WorldActor.
  void note_death(std::int32_t rank) { epochs_.note_death(rank); }
  /// See FollowerActions::keeping.
  [[nodiscard]] FollowerActions::Keeping keeping() const {
    const std::lock_guard lock(monitor_.mutex);
    return {.kept = members_.is_new() ? kAnyStep : run_.keeper().kept(),
            .stable = run_.keeper().stable(),
            .runs_ended = static_cast<std::int64_t>(monitor_.finished)};
  }

  [[nodiscard]] Epochs& epochs() noexcept { return epochs_; }
  [[nodiscard]] const Epochs& epochs() const noexcept { return epochs_; }
  [[nodiscard]] Members& members() noexcept { return members_; }
  [[nodiscard]] const Members& members() const noexcept { return members_; }
  [[nodiscard]] RunStatus& run() noexcept { return run_; }
  [[nodiscard]] const RunStatus& run() const noexcept { return run_; }
  [[nodiscard]] Splits& splits() noexcept { return splits_; }
  [[nodiscard]] Standbys& standbys() noexcept { return standbys_; }
  [[nodiscard]] const Standbys& standbys() const noexcept { return standbys_; }
  [[nodiscard]] HealthStatus& health() noexcept { return health_; }
  [[nodiscard]] const HealthStatus& health() const noexcept { return health_; }
  [[nodiscard]] CorruptionStatus& corruptions() noexcept { return corruptions_; }
  [[nodiscard]] const CorruptionStatus& corruptions() const noexcept { return corruptions_; }
  [[nodiscard]] Slowness& slowness() noexcept { return slowness_; }
  [[nodiscard]] const Slowness& slowness() const noexcept { return slowness_; }
  [[nodiscard]] PhaseFaults& faults() noexcept { return faults_; }

 private:
  std::atomic<int> leader_{0};
  WorldMonitor monitor_;
  StatusParts parts_;
  HealthStatus health_;
  CorruptionStatus corruptions_;
  Slowness slowness_;
  PhaseFaults faults_;
  Members members_;
  Standbys standbys_;
  Splits splits_;
  RunStatus run_;
  Epochs epochs_;
};

}  // namespace troupe::rank_process
