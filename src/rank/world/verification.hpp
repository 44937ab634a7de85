#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include <troupe/device.hpp>

#include "rank/world/world_messages.hpp"

namespace troupe::rank_process {

struct WorldParts;

/// For the verification of a new communicator: one element each.
struct VerificationBuffers {
  GpuRef<std::int64_t> on_device;
  PinnedBuffer<std::int64_t> on_host;
};

/// An all_reduce of known values by a new communicator: nothing is rolled back before it is right.
/// The WorldActor's turns.
class Verification {
 public:
  Verification(WorldParts& parts, std::shared_ptr<VerificationBuffers> buffers)
      : parts_(parts), buffers_(std::move(buffers)) {}

  void begin(std::uint32_t round, std::uint32_t epoch);
  /// Submits what there is room for. A full ring is no reason to wait in here: the supervisor, on
  /// rank 0, must hear of a device host that dies with it.
  void on(world_message::VerifyOn next);
  void on(world_message::Verified done);

 private:
  Future<void> submit_next();

  WorldParts& parts_;
  std::shared_ptr<VerificationBuffers> buffers_;
  std::uint32_t round_ = 0, epoch_ = 0;
  std::vector<Future<void>> commands_;  ///< that are submitted
};

}  // namespace troupe::rank_process
