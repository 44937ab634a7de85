#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "common/wire/formation.hpp"
#include "rank/device/device_events.hpp"

namespace troupe::rank_process {

/// What the world orders of a rank's device, in a round of a re-formation. Each order is answered
/// by one DeviceDone, or superseded: by the order of a later round, by a DeviceFault, by
/// DeviceFailed.
struct DeviceOrder {
  using Blobs = std::vector<std::vector<std::byte>>;

  DeviceDone::Order what{};
  std::uint32_t round = 0;
  /// contribute, connect: not 0: it is the standby that takes part, in the standby world of this
  /// number, and the order belongs to no round. promote: the standby that has this communicator
  /// takes over, fault or no fault.
  std::uint32_t formation = 0;
  // contribute and connect:
  std::int32_t rank = 0, size = 0;
  std::vector<wire::FormingGroup> groups{};      ///< this rank's, or (connect) those to form
  std::shared_ptr<const Blobs> contributions{};  ///< connect

  /// The order is carried out by the standby, beside what the device host does.
  [[nodiscard]] bool prepares() const noexcept {
    return formation != 0 && what != DeviceDone::Order::promote;
  }
  [[nodiscard]] bool same(const DeviceOrder& other) const noexcept {
    return what == other.what && round == other.round && formation == other.formation;
  }
};

}  // namespace troupe::rank_process
