#pragma once

#include <cstdint>
#include <vector>

#include "common/wire/formation.hpp"
#include "rank/device/device_order.hpp"

namespace troupe::rank_process {

struct WorldParts;

/// Orders to this rank's device: with its place among the members, and the communicators that it is
/// to form, those of the world and of its groups. The WorldActor's turns.
class Formations {
 public:
  explicit Formations(WorldParts& parts) : parts_(parts) {}

  /// Gives the device what the protocol orders; or answers for it, if it cannot be.
  void order(DeviceOrder order);
  /// The program has one group more, or some were freed.
  void groups_changed();
  /// This rank's place among the members of the world that is being formed, and their number.
  [[nodiscard]] std::int32_t place() const;
  [[nodiscard]] std::int32_t members() const;

 private:
  /// Fills the order in. Errors: the device cannot have it.
  Result<void> complete(DeviceOrder& order);
  Result<void> complete_contribute(DeviceOrder& order);
  /// What the device is to form from all ranks' contributions: the world, and of the groups that it
  /// has contributed to those that live. Errors: internal.
  Result<void> complete_connect(DeviceOrder& order);

  WorldParts& parts_;
  std::vector<wire::FormingGroup> contributed_;  ///< the groups of the device's last contribution
  std::vector<wire::FormingGroup> prepared_;     ///< of the standby's, and that it has formed since
};

}  // namespace troupe::rank_process
