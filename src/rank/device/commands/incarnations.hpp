#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "common/wire/record.hpp"
#include "rank/device/commands/command_ring.hpp"
#include "rank/device/commands/gate.hpp"
#include "rank/device/commands/port_shared.hpp"
#include "rank/device/commands/replay.hpp"
#include "rank/device/commands/replies.hpp"

namespace troupe::rank_process {

/// The device hosts that serve one after another: what becomes of the commands of one that stopped.
/// Used by the DeviceActor; any thread.
class Incarnations {
 public:
  /// What happened to the commands of a host that stopped.
  struct Settled {
    std::uint32_t completed = 0;    ///< answered before the end
    std::uint32_t failed = 0;       ///< were in flight, or depended on what was
    std::uint32_t resubmitted = 0;  ///< go on as if nothing had happened
    std::uint32_t repeated = 0;     ///< of these, may have run before
    std::vector<std::uint32_t> lost_buffers;
    ByteRanges lost_pinned;  ///< as lost_buffers, for what reads it later in the program
  };

  Incarnations(PortShared& shared, Gate& gate, CommandRing& ring, Replies& replies)
      : shared_(&shared), gate_(&gate), ring_(&ring), replies_(&replies) {}

  /// The first device host's rings.
  void attach(std::shared_ptr<HostLink> link);
  /// A device host has come up: its process is known from now on.
  void ready(const HostLink& link);
  /// The current host is dead, or lost and silent: its in-flight commands fail with `error`,
  /// buffers they were writing go stale, and whatever it had not taken moves to `next`, where
  /// submissions go from now on.
  ///
  /// With Options::replay, unless the gate is closed (then the state is rolled back anyway),
  /// in-flight commands that ReplayPlan allows move to `next` too. There each runs alone, so that
  /// the next death names the one that caused it: a command that was in flight at two deaths fails,
  /// and its neighbours go on. A culprit costs two device hosts.
  Settled move_to(std::shared_ptr<HostLink> next, const Error& error);
  /// The current host has drained and issues nothing: its in-flight commands fail with `error`, and
  /// what it has not taken is kept where it still makes sense.
  Settled settle_in_place(const Error& error);
  /// No host will ever serve this port again: whatever is unanswered, and all that comes, fails
  /// with `error`, also what would pass a closed gate.
  void end(const Error& error);
  /// After end(): a host serves again. No command is pending; what had been lost stays lost.
  void begin_again(std::shared_ptr<HostLink> link);

 private:
  /// Which commands the host that stopped may have issued.
  class InFlight;

  void turn_to(const std::shared_ptr<HostLink>& link);
  /// What a host that stopped has answered.
  Settled take_answers(Resolved& resolved);
  /// The error of the commands that were in flight in a host that died: with their names.
  Error with_what_ran(const Error& error, const InFlight& in_flight) const;
  /// Which of these commands may run again; nullopt: none, because the ring cannot be trusted.
  std::optional<ReplayPlan> plan_replay(const InFlight& in_flight) const;
  void fail(std::uint64_t ticket, const Error& error, Settled& settled, Resolved& resolved);

  PortShared* shared_;
  Gate* gate_;
  CommandRing* ring_;
  Replies* replies_;
};

}  // namespace troupe::rank_process
