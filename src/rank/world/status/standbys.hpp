#pragma once

#include <cstdint>
#include <optional>

#include "rank/world/status/world_monitor.hpp"

namespace troupe::rank_process {

/// Whether standbys are ready to take over. Any thread.
class Standbys {
 public:
  explicit Standbys(WorldMonitor& monitor) : monitor_(&monitor) {}

  /// All standbys are ready and have formed their communicator.
  [[nodiscard]] bool all_ready() const {
    const std::lock_guard lock(monitor_->mutex);
    return monitor_->active && ready_ && world_formed_;
  }
  /// This rank's own is, in this epoch.
  [[nodiscard]] bool own_ready() const {
    const std::lock_guard lock(monitor_->mutex);
    return monitor_->active && ready_;
  }
  /// Bytes of device memory that this rank's own takes.
  [[nodiscard]] std::optional<std::uint64_t> memory() const {
    const std::lock_guard lock(monitor_->mutex);
    return memory_;
  }

  // The WorldActor.

  void set_ready(bool ready) {
    const std::lock_guard lock(monitor_->mutex);
    ready_ = ready;
  }
  void set_world(bool formed) {
    const std::lock_guard lock(monitor_->mutex);
    world_formed_ = formed;
  }
  void set_memory(std::uint64_t bytes) {
    const std::lock_guard lock(monitor_->mutex);
    memory_ = bytes;
  }

  /// An epoch begins: the device tells of its standby again. With the monitor's mutex held.
  void epoch_began() { ready_ = false; }

 private:
  WorldMonitor* monitor_;
  bool ready_ = false;
  bool world_formed_ = true;  ///< rank 0 knows; elsewhere, and if not wanted, true
  std::optional<std::uint64_t> memory_;
};

}  // namespace troupe::rank_process
