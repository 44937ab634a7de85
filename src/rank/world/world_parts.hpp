#pragma once

#include <memory>
#include <optional>

#include <troupe/actor/actor.hpp>

#include "rank/protocol/follower.hpp"
#include "rank/protocol/relay.hpp"
#include "rank/world/formations.hpp"
#include "rank/world/leading.hpp"
#include "rank/world/member_actions.hpp"
#include "rank/world/pace_meter.hpp"
#include "rank/world/progress_watch.hpp"
#include "rank/world/recovery_trace.hpp"
#include "rank/world/verification.hpp"
#include "rank/world/world_core.hpp"
#include "rank/world/world_leader.hpp"

namespace troupe::rank_process {

/// The parts of a WorldActor. They call each other by this; what they hold is their own.
struct WorldParts {
  WorldParts(WorldCore& its_core, std::shared_ptr<VerificationBuffers> buffers,
             Context<WorldActor> its_context);

  [[nodiscard]] TimePoint now() const { return context.now(); }
  [[nodiscard]] int rank() const { return core.mpi().rank(); }

  WorldCore& core;
  Context<WorldActor> context;
  RecoveryTrace trace;
  MemberActions actions;  ///< what the protocol wants of this rank is done by
  WorldFollower member;
  WorldRelay relay;
  Leading leading;  ///< what leadership wants is done by
  Leadership leadership;
  std::optional<WorldLeader> leader;  ///< of all ranks, if this rank is that
  Formations formations;              ///< communicators that the device is to form
  Verification verification;          ///< of one that it has formed
  ProgressWatch progress;
  PaceMeter pace;
};

}  // namespace troupe::rank_process
