#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include <troupe/ids.hpp>
#include <troupe/recovery.hpp>

#include "rank/net/session.hpp"
#include "rank/protocol/message.hpp"
#include "rank/world/status/members.hpp"
#include "rank/world/status/run_status.hpp"
#include "rank/world/status/standbys.hpp"
#include "rank/world/status/status_parts.hpp"
#include "rank/world/status/world_monitor.hpp"
#include "rank/world/whereabouts.hpp"

namespace troupe::rank_process {

/// The epochs of the world: when one ends and the next one begins, and that the program turns to
/// it.
class Epochs {
 public:
  Epochs(WorldMonitor& monitor, StatusParts& parts, Session& mpi, Whereabouts& whereabouts,
         Members& members, RunStatus& run, Standbys& standbys)
      : monitor_(&monitor),
        parts_(&parts),
        mpi_(&mpi),
        whereabouts_(&whereabouts),
        members_(&members),
        run_(&run),
        standbys_(&standbys) {}

  // Any thread.

  /// The epoch that the program has acknowledged.
  [[nodiscard]] Epoch acknowledged() const noexcept {
    return Epoch(monitor_->program_epoch.load(std::memory_order_acquire));
  }
  [[nodiscard]] std::vector<Recovery> recoveries() const;

  // The WorldActor.

  /// The process of a rank has died.
  void note_death(std::int32_t rank);
  /// The epoch has ended.
  void close();
  /// `back`: the ranks that had died and are back, but for this one.
  void activate(const from_supervisor::Activate& activate, const std::vector<std::int32_t>& back);
  /// The world has ended.
  void stop(const Error& error);

  // The program's thread.

  Result<Epoch> wait_active();
  /// The epoch that is active, acknowledged or not, and the ranks of the job that are out of it.
  struct Active {
    std::uint32_t epoch = 0;
    std::vector<std::int32_t> excluded{};
  };
  /// Waits for it, except in a run, which a fault ends. Errors: world_reformed, what ended the
  /// world.
  Result<Active> wait_for_one();
  /// Waits until this epoch has ended, for so long at most.
  bool wait_for_end_of(std::uint32_t epoch, std::chrono::nanoseconds limit);
  /// Until the epoch that the program has acknowledged has ended. Throws WorldStopped.
  void wait_for_end();
  /// The newest run, where it was left by an exception and has not ended on all ranks: its number
  /// and the active epoch. nullopt: there is none, or the world has ended.
  std::optional<std::pair<std::uint32_t, std::uint32_t>> wait_for_abandoned_run();
  /// Until that run or that epoch has ended.
  void wait_for_end_of_run(std::uint32_t epoch);

 private:
  /// Nothing of what was between this rank and a dead one is left. With the monitor's mutex held.
  void forget(const std::vector<std::int32_t>& dead, const std::vector<std::int32_t>& excluded);

  WorldMonitor* monitor_;
  StatusParts* parts_;
  Session* mpi_;
  Whereabouts* whereabouts_;
  Members* members_;
  RunStatus* run_;
  Standbys* standbys_;
  std::vector<Recovery> recoveries_;
};

}  // namespace troupe::rank_process
