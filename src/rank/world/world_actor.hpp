#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>

#include <troupe/actor/actor.hpp>

#include "rank/world/world_messages.hpp"
#include "rank/world/world_parts.hpp"

namespace troupe::rank_process {

/// A rank's place in the world: carries messages between the network, the device, the program and
/// the protocol, which is in WorldFollower, WorldRelay and, on rank 0, WorldSupervisor. This gives
/// each of its parts what it is told.
class WorldActor
    : public Actor<WorldActor, world_message::FromNetwork, world_message::FromDevice,
                   world_message::Begin, world_message::Verified, world_message::Regrouped,
                   world_message::Restored, world_message::Flushed, world_message::Committed,
                   world_message::Finished, world_message::Left, world_message::EndEpoch,
                   world_message::AskToStop, world_message::Withdraw, world_message::Conclude,
                   world_message::GroupsChanged, world_message::VerifyOn, world_message::Deadline> {
 public:
  /// The core outlives the actor.
  WorldActor(WorldCore* core, std::shared_ptr<VerificationBuffers> buffers)
      : core_(core), buffers_(std::move(buffers)) {}

  void on_start() override;
  void on(const world_message::FromNetwork& message);
  void on(const world_message::FromDevice& event);
  void on(world_message::Begin);
  void on(world_message::Verified done) { parts_->verification.on(std::move(done)); }
  void on(world_message::Regrouped done);
  void on(const world_message::Restored& done) {
    parts_->member.restored(done.round, done.outcome, done.iteration, done.repeated);
  }
  void on(world_message::Flushed done);
  void on(const world_message::Committed& done);
  void on(world_message::Finished done);
  void on(const world_message::Left& run) { parts_->member.left(run.run, run.error); }
  void on(const world_message::EndEpoch& end);
  void on(world_message::AskToStop) { parts_->member.ask_to_stop(); }
  void on(world_message::Withdraw) { parts_->member.withdraw(); }
  bool on(world_message::Conclude conclude);
  void on(world_message::GroupsChanged) { parts_->formations.groups_changed(); }
  void on(world_message::VerifyOn next) { parts_->verification.on(next); }
  void on(world_message::Deadline);

 private:
  /// This rank's GPU says that it is failing.
  void consider_leaving(const std::string& text);
  void tell_library(const OpenedLibrary& library);
  /// Whether word from this run, in this epoch, still counts.
  [[nodiscard]] bool counts(std::uint32_t epoch, std::uint32_t run) const;

  WorldCore* core_;
  std::shared_ptr<VerificationBuffers> buffers_;
  std::chrono::nanoseconds look_every_{};
  std::optional<world_message::Finished> finished_;  ///< the newest
  bool asks_for_place_ = false;                      ///< its GPU has failed
  std::unique_ptr<WorldParts> parts_;                ///< from on_start() on
};

}  // namespace troupe::rank_process
