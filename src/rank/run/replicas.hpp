#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include <troupe/checkpoint.hpp>
#include <troupe/corruption.hpp>

#include "rank/run/device_exchange.hpp"
#include "rank/world/world_core.hpp"

namespace troupe::rank_process {

/// Compares the entries that all ranks have alike (Checkpoint::add_replicated). All members call
/// each function alike. The program's thread.
class Replicas {
 public:
  Replicas(WorldCore& core, Checkpoint& checkpoint, DeviceExchange& exchange)
      : core_(&core), checkpoint_(&checkpoint), exchange_(&exchange) {}

  /// True if there are such entries, and other ranks.
  [[nodiscard]] bool any() const;
  /// The first entry that is not the same on all ranks, and the rank that alone has it otherwise,
  /// if more than half of them have it alike; nullopt: all are the same. Waits for the device.
  [[nodiscard]] std::optional<Corruption> odd();

 private:
  [[nodiscard]] std::vector<std::size_t> entries() const;

  WorldCore* core_;
  Checkpoint* checkpoint_;
  DeviceExchange* exchange_;
  GpuRef<std::uint64_t> digests_;
};

}  // namespace troupe::rank_process
